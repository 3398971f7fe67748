//! Good tokens, Secrets and accounts stay; the others are replaced.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubeconfig::Credential;
use hub_tests::testbed::{CLUSTER, Route, Testbed};
use hub_tests::wait;
use tokio::time::Instant;

use super::{
    KIND, PLACE, account, claims, filled_one, forged, on_member, put_token, read, register, start, value, version,
};
use crate::fixture::{SOON, apply};

const FILLED: &str = "cluster_gateway_controllers_managed_serviceaccounts";
const TOKENS: &str = "cluster_gateway_controllers_managed_serviceaccount_tokens_total";

pub fn still(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-still";
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, "one"), account(cluster, "two")])?;
    let mut controllers = start(testbed)?;
    let before = [filled_one(testbed, cluster, "one")?, filled_one(testbed, cluster, "two")?];
    let uid = on_member(testbed, "one")?;
    controllers.restart()?;
    // Accounts of other tests may exist too; all are counted.
    wait::until_true("a look at both", SOON, || Ok(controllers.metric(FILLED, "filled")? >= 2.0))?;
    testbed.hub.server.annotate(&format!("{KIND} one -n {cluster} touched=yes"))?;
    apply(testbed, &[account(cluster, "three")])?;
    filled_one(testbed, cluster, "three")?;
    for (name, (account, secret)) in ["one", "two"].into_iter().zip(&before) {
        let now = read(testbed, "secret", cluster, name)?;
        ensure!(version(&now) == version(secret), "Secret {name} was written again");
        let now = read(testbed, KIND, cluster, name)?;
        ensure!(now["status"] == account["status"], "{now}");
        ensure!(name == "one" || version(&now) == version(account), "{name} was written again");
    }
    ensure!(version(&on_member(testbed, "one")?) == version(&uid), "the ServiceAccount was written again");
    Ok(())
}

pub fn healed(testbed: &Testbed) -> Result<()> {
    let (cluster, name) = ("accounts-healed", "healed");
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, name)])?;
    let controllers = start(testbed)?;
    let (_, before) = filled_one(testbed, cluster, name)?;
    let issued = controllers.metric(TOKENS, "")?;
    let deleted = Instant::now();
    testbed.member.server.delete(&format!("serviceaccount {name} -n {PLACE}"))?;
    let secret = wait::until("a token of another account", SOON, || {
        let secret = read(testbed, "secret", cluster, name)?;
        ensure!(secret["data"]["token"] != before["data"]["token"], "the old token");
        Ok(secret)
    })?;
    ensure!(deleted.elapsed() < Duration::from_secs(15), "it took {:?}", deleted.elapsed());
    ensure!(secret["metadata"]["uid"] == before["metadata"]["uid"], "another Secret");
    let token = value(&secret, "token")?;
    let uid = on_member(testbed, name)?["metadata"]["uid"].clone();
    ensure!(claims(&token)?["kubernetes.io"]["serviceaccount"]["uid"] == uid, "a token of the account before");
    let me = testbed.kubectl_as(Route::Direct, CLUSTER, "healed", Credential::Token(token))?;
    me.ok("auth whoami").context("a token that the member refuses")?;
    // A token of another subject is not valid for this account.
    let other = forged("somebody", &uid, 0, 86_400);
    put_token(testbed, cluster, name, &other)?;
    wait::until_true("its own token", SOON, || Ok(value(&read(testbed, "secret", cluster, name)?, "token")? != other))?;
    // A deleted Secret is recreated, although its account's condition still reports a token.
    testbed.hub.server.delete(&format!("secret {name} -n {cluster}"))?;
    wait::until_true("another Secret", SOON, || {
        let secret = read(testbed, "secret", cluster, name)?;
        Ok(!secret.is_null() && secret["metadata"]["uid"] != before["metadata"]["uid"])
    })?;
    ensure!(controllers.metric(TOKENS, "")? - issued >= 3.0, "not counted");
    Ok(())
}

pub fn renewed(testbed: &Testbed) -> Result<()> {
    let (cluster, name) = ("accounts-renewed", "renewed");
    register(testbed, cluster)?;
    let mut short = account(cluster, name);
    short["spec"]["rotation"]["validity"] = "15m".into();
    apply(testbed, &[short])?;
    let _controllers = start(testbed)?;
    let (told, secret) = filled_one(testbed, cluster, name)?;
    let issued = claims(&value(&secret, "token")?)?;
    let life = issued["exp"].as_i64().context("an end")? - issued["iat"].as_i64().context("a beginning")?;
    ensure!(life == 900, "{life}");
    ensure!(told["status"]["expirationTimestamp"].is_string());
    let uid = on_member(testbed, name)?["metadata"]["uid"].clone();
    // Four fifths of 600 s are 480 s: this token has 8 s left until then.
    let begun = Instant::now();
    let old = forged(name, &uid, 472, 600);
    put_token(testbed, cluster, name, &old)?;
    let before = read(testbed, "secret", cluster, name)?;
    wait::until_true("its renewal", SOON, || Ok(value(&read(testbed, "secret", cluster, name)?, "token")? != old))?;
    let took = begun.elapsed();
    ensure!(took > Duration::from_secs(5) && took < Duration::from_secs(15), "renewed after {took:?}");
    let secret = read(testbed, "secret", cluster, name)?;
    ensure!(secret["metadata"]["uid"] == before["metadata"]["uid"] && version(&secret) != version(&before));
    // The status reports when the new token expires.
    wait::until_true("the moment", SOON, || {
        let token = claims(&value(&read(testbed, "secret", cluster, name)?, "token")?)?;
        let end = k8s_openapi::jiff::Timestamp::from_second(token["exp"].as_i64().context("an end")?)?;
        let account = read(testbed, KIND, cluster, name)?;
        Ok(account["status"]["expirationTimestamp"] == end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    })
}
