//! `join`, `label`, `alias`, `rename`, `detach`.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Credential;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::{ports, wait};
use libtest_mimic::Trial;
use serde_json::Value;
use std::time::Duration;

use crate::fixture::{Fixture, clusters, ended, joining, member, test};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "join::a member is joined, used, renamed and leaves nothing behind", whole_life),
        test(fixture, "join::callers may do on the member what the rights say, and no more", roles),
        test(fixture, "join::what is wrong is said before anything is made", refused),
        test(fixture, "join::what is half done is completed by the same command", completed),
        test(fixture, "join::one's own credential is registered only when asked for", own),
    ]
}

fn secret(testbed: &Testbed, name: &str) -> Result<Value> {
    testbed.hub.server.field(&format!("secret {name} -n {SECRET_NAMESPACE}"), "")
}

fn whole_life(testbed: &Testbed) -> Result<()> {
    let (program, member, joining) = (clusters(testbed), member(testbed), joining(testbed));
    let joined = ended(
        &program,
        &format!("join paris {joining} --rights view --account-namespace cli-paris -l env=paris --alias Paris"),
        0,
    )?;
    ensure!(
        joined.stdout.contains("cluster paris joined")
            && joined.stdout.contains("as system:serviceaccount:cli-paris:paris"),
        "{joined:?}"
    );
    let listed = ended(&program, "list -l env=paris -o wide", 0)?.stdout;
    ensure!(
        listed.contains("paris") && listed.contains("never") && listed.contains("Paris") && listed.lines().count() == 2,
        "{listed}"
    );
    // The credential has the rights to view, and no others.
    ended(&program, "get pods paris", 0)?;
    let forbidden = ended(&program, "get secrets paris", 1)?.stderr;
    ensure!(forbidden.contains("cannot list resource \"secrets\""), "{forbidden}");
    ended(&program, "label paris tier=web env-", 0)?;
    ended(&program, "alias paris Lutetia", 0)?;
    let told = secret(testbed, "paris")?;
    ensure!(
        told["metadata"]["labels"]["tier"] == "web" && told["metadata"]["labels"]["env"].is_null(),
        "{}",
        told["metadata"]
    );
    ensure!(told["metadata"]["annotations"]["cluster.core.oam.dev/cluster-alias"] == "Lutetia", "{}", told["metadata"]);
    ended(&program, "rename paris lutetia", 0)?;
    ended(&program, "get pods lutetia", 0)?;
    ensure!(
        !ended(&program, "list --no-probe -o name", 0)?.stdout.lines().any(|name| name == "paris"),
        "the old name stays"
    );
    // There is no person to ask, and the registered credential has no right to revoke itself.
    ended(&program, "detach lutetia", 2)?;
    let powerless = ended(&program, "detach lutetia --yes", 1)?.stderr;
    ensure!(
        powerless.contains("ServiceAccount cli-paris/paris") && powerless.contains("--member-context"),
        "{powerless}"
    );
    ended(&program, "get pods lutetia", 0)?;
    ended(&program, &format!("detach lutetia {member} --yes"), 0)?;
    nothing_left(testbed, "lutetia", "cli-paris", "paris")
}

/// [`whole_life`] tests `view`, the rotation tests `cluster-admin`, and [`completed`] tests a file
/// of rules.
fn roles(testbed: &Testbed) -> Result<()> {
    let (program, kubectl) = (clusters(testbed), testbed.hub.server.kubectl());
    let (member, joining) = (member(testbed), joining(testbed));
    let bindings = "create rolebindings.rbac.authorization.k8s.io";
    for (name, rights, may, may_not) in
        [("vaasa", "edit", "create deployments.apps", bindings), ("pori", "admin", bindings, "create namespaces")]
    {
        ended(&program, &format!("join {name} {joining} --rights {rights} --account-namespace cli-{name}"), 0)?;
        let server = format!("--server={}{}", testbed.hub.server.url(), Testbed::proxy_path(name));
        for (what, code, word) in [(may, 0, "yes"), (may_not, 1, "no")] {
            let words = ["auth", "can-i"].into_iter().chain(what.split(' ')).chain(["-n", "default", &server]);
            let said = kubectl.args(words).run()?;
            ensure!(said.status == code && said.stdout.trim() == word, "{rights}, {what}: {said:?}");
        }
        ended(&program, &format!("detach {name} {member} --yes"), 0)?;
        nothing_left(testbed, name, &format!("cli-{name}"), name)?;
    }
    Ok(())
}

fn nothing_left(testbed: &Testbed, cluster: &str, namespace: &str, account: &str) -> Result<()> {
    ensure!(secret(testbed, cluster).is_err(), "the Secret of {cluster} stays");
    wait::until_true("the member to be as it was", LIMIT, || {
        let left = testbed.member.server.names("clusterrolebinding,clusterrole,namespace")?;
        Ok(!left.iter().any(|name| *name == format!("cluster-gateway:{account}") || name == namespace))
    })
}

fn refused(testbed: &Testbed) -> Result<()> {
    let (program, alone, member) = (clusters(testbed), member(testbed), joining(testbed));
    let told = |line: &str, code: i32, parts: &[&str]| -> Result<()> {
        let told = ended(&program, line, code)?.stderr;
        ensure!(told.contains("remedy: ") && parts.iter().all(|part| told.contains(part)), "`{line}`: {told}");
        Ok(())
    };
    told("join bodo --rights view", 2, &["no context \"bodo\"", "--member-context"])?;
    told(&format!("join bodo {member}"), 2, &["--rights is missing", "cluster-admin"])?;
    told(&format!("join bodo {member} --rights root"), 2, &["root"])?;
    told(&format!("join Oslo {member} --rights view"), 2, &["is not a cluster name"])?;
    told("join bodo --member-kubeconfig /nowhere --rights view", 2, &["/nowhere"])?;
    told(&format!("join bodo {alone} --rights view --endpoint 10.0.0.7"), 2, &["https://HOST:PORT"])?;
    // Addresses as kind, minikube and port-forwards have them.
    let local = ["is this machine's own address", "--endpoint https://HOST:PORT"];
    told(&format!("join bodo {alone} --rights view"), 2, &local)?;
    let hub = testbed.hub.server.kubectl().kubeconfig;
    told(
        &format!("join {CLUSTER} --member-kubeconfig {} --rights view --endpoint https://10.0.0.7", hub.display()),
        2,
        &["is taken", "another name"],
    )?;
    told("detach bodo --yes", 1, &["no cluster bodo is registered"])?;
    // A user of the member that may do nothing there.
    let token = testbed.member.server.service_account_token("default", "cli-nobody")?;
    let nobody = testbed.member.server.kubeconfig("cli-nobody", Credential::Token(token))?;
    told(
        &format!("join bodo --member-kubeconfig {} --rights view --endpoint https://10.0.0.7", nobody.display()),
        1,
        &["member: ", "is forbidden"],
    )?;
    ensure!(secret(testbed, "bodo").is_err(), "something was registered");
    Ok(())
}

fn completed(testbed: &Testbed) -> Result<()> {
    let (program, member, joining) = (clusters(testbed), member(testbed), joining(testbed));
    let line = format!("join riga {joining} --rights edit --account-namespace cli-riga");
    // An endpoint where nothing listens.
    let url = testbed.member.server.url();
    let nowhere = || Ok::<_, anyhow::Error>(line.replace(&url, &format!("https://127.0.0.1:{}", ports::free()?)));
    let half = ended(&program, &format!("{} --wait 1s", nowhere()?), 1)?.stderr;
    ensure!(
        half.contains("riga is registered, but the gateway could not use it") && half.contains("--endpoint"),
        "{half}"
    );
    let first = secret(testbed, "riga")?;
    ended(&program, &line, 0)?;
    let second = secret(testbed, "riga")?;
    ensure!(
        first["data"]["token"] == second["data"]["token"] && first["data"]["endpoint"] != second["data"]["endpoint"],
        "another token"
    );
    // What worked before proves nothing about another endpoint.
    let lost = ended(&program, &format!("{} --wait 1s", nowhere()?), 1)?.stderr;
    ensure!(lost.contains("riga is registered, but the gateway could not use it"), "{lost}");
    ended(&program, &line, 0)?;
    // With other rights, from a custom role.
    let rules = testbed.launcher().file("cli-riga.yaml");
    std::fs::write(
        &rules,
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: any}\nrules:\n- {apiGroups: [''], resources: [namespaces], verbs: [list]}\n",
    )?;
    ended(&program, &format!("join riga {joining} --account-namespace cli-riga --rights {}", rules.display()), 0)?;
    wait::until("the new rights", LIMIT, || ended(&program, "get pods riga", 1))?;
    ended(&program, "get namespaces riga", 0)?;
    // Even so, another member cannot take the name.
    let hub = testbed.hub.server.kubectl().kubeconfig;
    let another = format!("join riga --member-kubeconfig {} --rights view --endpoint https://10.0.0.7", hub.display());
    let taken = ended(&program, &another, 2)?.stderr;
    ensure!(taken.contains("is taken"), "{taken}");
    ended(&program, &format!("detach riga {member} --yes"), 0)?;
    nothing_left(testbed, "riga", "cli-riga", "riga")
}

fn own(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let joined = ended(&program, &format!("join kyiv {} --use-own-credential", joining(testbed)), 0)?;
    ensure!(joined.stdout.contains("as member-admin") && joined.stderr.contains("warning"), "{joined:?}");
    let told = secret(testbed, "kyiv")?;
    let kind = told["metadata"]["labels"]["cluster.core.oam.dev/cluster-credential-type"].as_str().context("a type")?;
    ensure!(kind == "X509Certificate", "{kind}");
    ended(&program, "detach kyiv --yes", 0)?;
    ensure!(secret(testbed, "kyiv").is_err(), "the Secret stays");
    Ok(())
}
