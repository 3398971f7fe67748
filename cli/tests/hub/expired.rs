//! Credentials that were valid once: tokens that an API server signed, and that have expired.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_tests::control_plane::ApiServer;
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::kubeconfig::Credential;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, Testbed};
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, beside, clusters, clusters_as, ended, hub_user, is_void, joining, member, test};

const LIMIT: Duration = Duration::from_secs(30);
/// How long ago a token expired, and how long others are valid, in seconds.
const HOUR: i64 = 3600;

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "expired::one's own token for the hub, and the second try", of_hub),
        test(fixture, "expired::one's own token for a member, and the second try", of_member),
        test(fixture, "expired::a registered token, and what gives it another", registered),
    ]
}

/// `token` as the API server called `name` would have issued it, with an expiry in that many
/// `seconds`.
fn ending(testbed: &Testbed, name: &str, token: &str, seconds: i64) -> Result<String> {
    let mut parts = token.split('.');
    let (head, claims) = parts.next().zip(parts.next()).context("a JWT")?;
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    for (claim, time) in [("iat", now - 2 * HOUR), ("nbf", now - 2 * HOUR), ("exp", now + seconds)] {
        claims[claim] = json!(time);
    }
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let pem = std::fs::read(testbed.launcher().file(&format!("{name}-service-accounts.key")))?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).map_err(|error| anyhow!("no PEM: {error}"))?;
    let key = RsaKeyPair::from_pkcs8(&pem.contents).map_err(|error| anyhow!("no key: {error}"))?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| anyhow!("no signature"))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A valid token and an expired one, which differ in nothing else.
fn pair(testbed: &Testbed, server: &ApiServer, name: &str, token: &str) -> Result<[String; 2]> {
    let [good, expired] = [HOUR, -HOUR].map(|seconds| ending(testbed, name, token, seconds));
    let (good, expired) = (good?, expired?);
    ensure!(!is_void(server, &good)? && is_void(server, &expired)?, "not for its time");
    Ok([good, expired])
}

fn of_hub(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("cli-expired", &[CLUSTER], ALL_VERBS)?;
    let [good, expired] = pair(testbed, &testbed.hub.server, "hub", &token)?;
    let program = clusters_as(testbed, &hub_user(testbed, "expired", &expired)?);
    let join = format!("join bergen {} --rights view", joining(testbed));
    let tunnel = format!("join bergen {} --rights view --tunnel", member(testbed));
    let install = format!("install --set image.repository=r/x --helm {}", provide(Tool::Helm)?.display());
    let reads = ["list", "check", "probe member", "get pods --all", "exec-each --all -- true"];
    let writes =
        ["label member a=b", "alias member A", "rotate member", "rename member member-1", "detach member --yes"];
    for line in reads.into_iter().chain(writes).chain([&*join, &*tunnel, &*install]) {
        let told = ended(&program, line, 3)?.stderr;
        ensure!(told.contains("Unauthorized"), "`{line}`: {told}");
        ensure!(told.contains("remedy: renew the credential in your kubeconfig"), "`{line}`: {told}");
    }
    let program = clusters_as(testbed, &hub_user(testbed, "expired", &good)?);
    ended(&program, &format!("get namespaces {CLUSTER}"), 0).map(drop)
}

fn of_member(testbed: &Testbed) -> Result<()> {
    let server = &testbed.member.server;
    let token = testbed.member.create_admin("cli-bergen")?;
    let [good, expired] = pair(testbed, server, "member", &token)?;
    let by = |name: &str, token: String| -> Result<String> {
        let kubeconfig = server.kubeconfig(&format!("cli-bergen-{name}"), Credential::Token(token))?;
        Ok(format!("--member-kubeconfig {}", kubeconfig.display()))
    };
    let (good, expired) = (by("good", good)?, by("expired", expired)?);
    let program = clusters(testbed);
    let fails = |line: &str| -> Result<()> {
        let told = ended(&program, &format!("{line} {expired}"), 1)?.stderr;
        ensure!(told.contains("member: ") && told.contains("Unauthorized"), "`{line}`: {told}");
        ensure!(told.contains("remedy: renew the credential for the member in your kubeconfig"), "`{line}`: {told}");
        Ok(())
    };
    let join = "join bergen --rights view --account-namespace cli-bergen-ns";
    let (helm, authority) = (provide(Tool::Helm)?, testbed.tunnel.serving_authority_file());
    let servers = format!("--server 127.0.0.1:1 --server-ca {} --helm {}", authority.display(), helm.display());
    fails(&format!("{join} --endpoint {}", server.url()))?;
    fails(&format!("{join} --tunnel {servers}"))?;
    ensure!(!server.names("namespaces")?.iter().any(|name| name == "cli-bergen-ns"), "something was made");
    let hub = testbed.hub.server.names(&format!("secrets,serviceaccounts -n {SECRET_NAMESPACE}"))?;
    ensure!(!hub.iter().any(|name| name.contains("bergen")), "something was made on the hub: {hub:?}");
    ended(&program, &format!("{join} --endpoint {} {good}", server.url()), 0)?;
    fails("rotate bergen")?;
    fails("detach bergen --yes")?;
    ended(&program, "get pods bergen", 0)?;
    ended(&program, &format!("rotate bergen {good} --grace 1s"), 0)?;
    ended(&program, &format!("detach bergen {good} --yes"), 0).map(drop)
}

/// The refused credential is noticed at once, and told apart from an unreachable member.
fn registered(testbed: &Testbed) -> Result<()> {
    let server = &testbed.member.server;
    let token = testbed.member.create_admin("cli-drammen")?;
    let [_, expired] = pair(testbed, server, "member", &token)?;
    testbed.hub.register_member("drammen", &MemberSecret::with_token(server, &expired))?;
    let program = clusters(testbed);
    let listed: Value = serde_json::from_str(&ended(&program, "list -o json", 0)?.stdout)?;
    let row = listed["clusters"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "drammen"));
    let row = row.context("a row")?;
    ensure!(row["status"] == "CredentialRefused" && row["credentialExpiresIn"] == "expired", "{row}");
    let probed = ended(&program, "probe drammen", 1)?;
    ensure!(probed.stdout.contains("✗ credential") && probed.stderr.contains("`join drammen`"), "{probed:?}");
    let checked = ended(&program, "check drammen", 1)?.stdout;
    ensure!(checked.contains("✗ drammen: its credential has expired"), "{checked}");
    // It has no account that could get another token. A join creates one.
    let unrotated = ended(&program, "rotate drammen", 2)?.stderr;
    ensure!(unrotated.contains("`kubectl clusters join drammen --rights …`"), "{unrotated}");
    // The Secret does not identify the member, and the member cannot be asked now.
    let join = format!("join drammen {} --rights view --account-namespace cli-drammen", joining(testbed));
    let taken = ended(&program, &join, 2)?.stderr;
    ensure!(taken.contains("does not reveal its identity") && taken.contains("detach drammen"), "{taken}");
    ended(&program, "detach drammen --yes", 0)?;
    ended(&program, &join, 0)?;
    ended(&clusters_as(testbed, &beside(testbed, "drammen", server)?), "detach drammen --yes", 0)?;
    wait::until_true("its Secret to be gone", LIMIT, || {
        let left = testbed.hub.server.names(&format!("secrets -n {SECRET_NAMESPACE}"))?;
        Ok(!left.iter().any(|name| name.contains("drammen")))
    })
}
