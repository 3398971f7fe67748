//! Accounts that get no token, and what their status and Events report.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::page::{below, first};
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{
    KIND, LABEL, PLACE, account, condition, failed_one, filled_one, gone, on_member, read, register, start, version,
};
use crate::fixture::{Running, SOON, apply, event, namespace};
use crate::rights::used::none_idle;
use crate::rights::{NAME, rendered, started};

pub fn others(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-others";
    register(testbed, cluster)?;
    let secret = |name: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "person"},
            "metadata": {"name": name, "namespace": cluster, "labels": labels}})
    };
    apply(testbed, &[secret("persons", json!({})), secret("labelled", json!({LABEL: "true"}))])?;
    let before = read(testbed, "secret", cluster, "labelled")?;
    let strong = json!({"name": "strong", "namespace": PLACE});
    let strong = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": strong});
    testbed.member.server.apply(&[namespace(PLACE), strong])?;
    let names = ["persons", "labelled", "strong", "own"];
    apply(testbed, &names.map(|name| account(cluster, name)))?;
    let _controllers = start(testbed)?;
    for name in ["persons", "labelled"] {
        let why = failed_one(testbed, cluster, name)?;
        ensure!(why.contains(&format!("Secret {cluster}/{name}")) && why.contains("another name"), "{why}");
        ensure!(on_member(testbed, name)?.is_null(), "a ServiceAccount for nothing");
        let told = wait::until("an Event", SOON, || event(testbed, cluster, name, "TokenReportFailed"))?;
        ensure!(told.contains(&why), "{told}");
    }
    let after = read(testbed, "secret", cluster, "labelled")?;
    ensure!(version(&before) == version(&after), "written: {}", after["metadata"]);
    // The creator of a ManagedServiceAccount cannot choose among the member's existing accounts.
    let why = failed_one(testbed, cluster, "strong")?;
    ensure!(why.contains("without the label") && why.contains(cluster), "{why}");
    ensure!(read(testbed, "secret", cluster, "strong")?.is_null(), "a token of an account of somebody else");
    filled_one(testbed, cluster, "own")?;
    // The conflicting object is deleted.
    testbed.hub.server.delete(&format!("secret labelled -n {cluster}"))?;
    filled_one(testbed, cluster, "labelled")?;
    testbed.hub.server.delete(&format!("{KIND} strong -n {cluster} --wait=false"))?;
    gone(testbed, KIND, cluster, "strong")?;
    ensure!(!on_member(testbed, "strong")?.is_null(), "an account of somebody else is gone");
    testbed.member.server.delete(&format!("serviceaccount strong -n {PLACE}"))
}

pub fn waiting(testbed: &Testbed) -> Result<()> {
    let (unknown, away, near) = ("accounts-unknown", "accounts-far", "accounts-near");
    let nowhere = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at("https://127.0.0.1:1");
    apply(testbed, &[namespace(unknown), namespace(away)])?;
    testbed.hub.register_member(away, &nowhere)?;
    register(testbed, near)?;
    apply(testbed, &[account(unknown, "a"), account(away, "a"), account(near, "b")])?;
    let controllers = start(testbed)?;
    filled_one(testbed, near, "b")?;
    wait::until("an Event", SOON, || event(testbed, away, "a", "ClusterAway"))?;
    wait::until_true("both to wait", SOON, || {
        let states = "cluster_gateway_controllers_managed_serviceaccounts";
        Ok(controllers.metric(states, "waiting")? >= 2.0)
    })?;
    for cluster in [unknown, away] {
        let account = read(testbed, KIND, cluster, "a")?;
        ensure!(account["status"].is_null() && account["metadata"]["finalizers"].is_null(), "{account}");
    }
    // The accounts are filled as soon as the members can be reached.
    register(testbed, unknown)?;
    register(testbed, away)?;
    filled_one(testbed, unknown, "a")?;
    filled_one(testbed, away, "a")?;
    Ok(())
}

pub fn forbidden(testbed: &Testbed) -> Result<()> {
    let (cluster, name) = ("accounts-forbidden", "forbidden");
    apply(testbed, &[namespace(cluster)])?;
    let token = testbed.member.server.service_account_token("default", "accounts-poor")?;
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &token))?;
    apply(testbed, &[account(cluster, name)])?;
    let controllers = start(testbed)?;
    let why = failed_one(testbed, cluster, name)?;
    wait::until("the alert's metric", SOON, || {
        promtool::evaluated(&controllers.metrics()?, &["ClusterGatewayServiceAccountsFail"])
    })?;
    let who = "system:serviceaccount:default:accounts-poor";
    ensure!(why.contains(cluster) && why.contains(who) && why.contains("serviceaccounts"), "{why}");
    ensure!(read(testbed, KIND, cluster, name)?["metadata"]["finalizers"].is_null(), "held for nothing");
    // The rights that docs/registration.md grants are enough.
    let page = include_str!("../../../../docs/registration.md");
    let granted = below(page, "<!-- Applied by controllers/tests/hub/accounts/refused.rs::forbidden. -->")?;
    let granted = first(granted, "yaml")?.replace("<namespace>", "default").replace("<name>", "accounts-poor");
    ensure!(granted.contains("serviceaccounts/token"), "no such block");
    testbed.member.server.apply_text(&granted)?;
    let (account, secret) = filled_one(testbed, cluster, name)?;
    ensure!(condition(&account["status"], "TokenReported")["message"] == "", "{account}");
    ensure!(!secret.is_null());
    // They are enough to delete, too.
    testbed.hub.server.delete(&format!("{KIND} {name} -n {cluster} --wait=false"))?;
    gone(testbed, KIND, cluster, name)?;
    ensure!(on_member(testbed, name)?.is_null());
    Ok(())
}

pub fn rights(testbed: &Testbed) -> Result<()> {
    let (cluster, place) = ("accounts-rights", "audited-accounts");
    register(testbed, cluster)?;
    apply(testbed, &[namespace(place)])?;
    let objects = rendered(testbed, place, "controllers.parts.managedServiceAccount=true")?;
    let mark = testbed.audit.mark()?;
    let controllers: Running = started(testbed, place, &objects)?;
    let mut ending = account(cluster, "ending");
    ending["spec"]["ttlSecondsAfterCreation"] = 5.into();
    apply(testbed, &[account(cluster, "one"), account(cluster, "persons"), ending])?;
    let (_, before) = filled_one(testbed, cluster, "one")?;
    gone(testbed, KIND, cluster, "ending")?;
    testbed.member.server.delete(&format!("serviceaccount one -n {PLACE}"))?;
    wait::until_true("another token", SOON, || {
        Ok(read(testbed, "secret", cluster, "one")?["data"]["token"] != before["data"]["token"])
    })?;
    testbed.hub.server.delete(&format!("{KIND} one -n {cluster} --wait=false"))?;
    gone(testbed, KIND, cluster, "one")?;
    for (verb, resource) in [
        ("delete", "secrets"),
        ("update", "secrets"),
        ("create", "managedserviceaccounts.authentication.open-cluster-management.io"),
        ("impersonate", "users"),
        ("create", "serviceaccounts"),
        ("create", "pods"),
    ] {
        let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
        let attributes = json!({"verb": verb, "group": group, "resource": name, "namespace": cluster});
        ensure!(!testbed.hub.server.may(place, NAME, &attributes)?, "it may {verb} {resource}");
    }
    let persons = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken", "namespace": cluster}});
    // The first failure creates an Event; another reason updates the same Event.
    apply(testbed, &[persons, account(cluster, "taken")])?;
    let first = failed_one(testbed, cluster, "taken")?;
    let short = json!({"spec": {"rotation": {"validity": "1m0s"}}});
    testbed.hub.server.patch(&format!("{KIND} taken -n {cluster}"), &short)?;
    testbed.hub.server.delete(&format!("secret taken -n {cluster}"))?;
    wait::until("another reason", SOON, || {
        let why = failed_one(testbed, cluster, "taken")?;
        ensure!(why != first, "{why}");
        Ok(())
    })?;
    none_idle(testbed, place, &objects, mark, &BTreeSet::new())?;
    drop(controllers);
    Ok(())
}
