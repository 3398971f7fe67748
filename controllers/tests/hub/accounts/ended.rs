//! The end of an account.

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::page::block;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{FINALIZER, KIND, PLACE, account, filled_one, gone, on_member, read, register, start};
use crate::fixture::{SOON, apply, event, script};

const PAGE: &str = include_str!("../../../../docs/registration.md");

fn delete(testbed: &Testbed, cluster: &str, name: &str) -> Result<()> {
    testbed.hub.server.delete(&format!("{KIND} {name} -n {cluster} --wait=false"))
}

pub fn deleted(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-deleted";
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, "gone"), account(cluster, "unlabelled"), account(cluster, "stays")])?;
    let _controllers = start(testbed)?;
    let (held, _) = filled_one(testbed, cluster, "gone")?;
    ensure!(held["metadata"]["finalizers"] == json!([FINALIZER]), "{held}");
    filled_one(testbed, cluster, "unlabelled")?;
    filled_one(testbed, cluster, "stays")?;
    testbed.member.server.label(&format!("serviceaccount unlabelled -n {PLACE} {}-", super::LABEL))?;
    delete(testbed, cluster, "gone")?;
    delete(testbed, cluster, "unlabelled")?;
    gone(testbed, KIND, cluster, "gone")?;
    ensure!(on_member(testbed, "gone")?.is_null(), "its ServiceAccount is left behind");
    gone(testbed, "secret", cluster, "gone")?;
    // Its label was removed: it is no longer ours.
    gone(testbed, KIND, cluster, "unlabelled")?;
    ensure!(!on_member(testbed, "unlabelled")?.is_null(), "a ServiceAccount that is not ours is gone");
    ensure!(!on_member(testbed, "stays")?.is_null() && !read(testbed, "secret", cluster, "stays")?.is_null());
    Ok(())
}

pub fn by_itself(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-ending";
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, "soon"), account(cluster, "late")])?;
    let _controllers = start(testbed)?;
    let end = |name: &str, seconds: u32| {
        let patch = json!({"spec": {"ttlSecondsAfterCreation": seconds}});
        testbed.hub.server.patch(&format!("{KIND} {name} -n {cluster}"), &patch).map(drop)
    };
    for name in ["soon", "late"] {
        filled_one(testbed, cluster, name)?;
    }
    end("late", 3600)?;
    // The time counts from the account's creation.
    end("soon", 1)?;
    gone(testbed, KIND, cluster, "soon")?;
    gone(testbed, "secret", cluster, "soon")?;
    ensure!(on_member(testbed, "soon")?.is_null(), "its ServiceAccount is left behind");
    let late = read(testbed, KIND, cluster, "late")?;
    ensure!(late["metadata"]["deletionTimestamp"].is_null() && !late.is_null(), "{late}");
    Ok(())
}

/// Follows docs/registration.md for a part that is turned off, and for a member that is away.
pub fn let_go(testbed: &Testbed) -> Result<()> {
    let (cluster, theirs) = ("accounts-let-go", "accounts.example/theirs");
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, "first"), account(cluster, "second")])?;
    let mut controllers = start(testbed)?;
    for name in ["first", "second"] {
        filled_one(testbed, cluster, name)?;
    }
    controllers.stop()?;
    let two = json!({"metadata": {"finalizers": [FINALIZER, theirs]}});
    testbed.hub.server.patch(&format!("{KIND} first -n {cluster}"), &two)?;
    let run = |commands: &str| script(testbed, &testbed.directory("accounts-page")?, commands);
    run(block(PAGE, "sh", "kubectl get managedserviceaccounts -A")?)?;
    let finalizers = |name: &str| Ok::<_, anyhow::Error>(read(testbed, KIND, cluster, name)?["metadata"].take());
    let (first, second) = (finalizers("first")?, finalizers("second")?);
    ensure!(first["finalizers"] == json!([theirs]) && second["finalizers"].is_null(), "{first} {second}");
    ensure!(first["uid"].is_string() && second["uid"].is_string(), "they are gone");
    delete(testbed, cluster, "first")?;
    ensure!(!read(testbed, KIND, cluster, "first")?["metadata"]["deletionTimestamp"].is_null(), "nothing holds it");
    let letting = block(PAGE, "sh", "patch managedserviceaccounts <name>")?;
    run(&letting.replace("<cluster>", cluster).replace("<name>", "first"))?;
    gone(testbed, KIND, cluster, "first")?;
    ensure!(!on_member(testbed, "first")?.is_null(), "something was done on the member");
    Ok(())
}

pub fn away(testbed: &Testbed) -> Result<()> {
    let (cluster, name) = ("accounts-away", "away");
    register(testbed, cluster)?;
    apply(testbed, &[account(cluster, name), account(cluster, "unregistered")])?;
    let _controllers = start(testbed)?;
    filled_one(testbed, cluster, name)?;
    filled_one(testbed, cluster, "unregistered")?;
    let nowhere = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at("https://127.0.0.1:1");
    testbed.hub.register_member(cluster, &nowhere)?;
    delete(testbed, cluster, name)?;
    let told = wait::until("an Event", SOON, || event(testbed, cluster, name, "ClusterAway"))?;
    ensure!(told.contains(cluster), "{told}");
    ensure!(!read(testbed, KIND, cluster, name)?.is_null(), "its token is still good");
    ensure!(!on_member(testbed, name)?.is_null());
    // The member is back.
    register(testbed, cluster)?;
    gone(testbed, KIND, cluster, name)?;
    ensure!(on_member(testbed, name)?.is_null(), "its ServiceAccount is left behind");
    // An account of a cluster that is no longer registered ends without waiting for the member.
    testbed.hub.forget_member(cluster)?;
    delete(testbed, cluster, "unregistered")?;
    gone(testbed, KIND, cluster, "unregistered")
}
