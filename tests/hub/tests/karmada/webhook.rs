//! A member with an authorizer that lists nothing, as those of cloud providers are: its list of
//! rules is incomplete, and a group that it lacks may be allowed or refused.

use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::prelude::*;
use kit::member::{FakeMember, MemberOptions, Reply};
use tokio::runtime::Builder;

use super::{CLUSTERS, GROUP, LIMIT, NAME, NARROW, USER, grant, narrow};

const CLUSTER: &str = "karmada-webhook";

/// The first request gets through, although it names a group that the member refuses.
pub(super) fn webhook(testbed: &Testbed) -> Result<()> {
    let _alone = GROUP.lock();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let authorizer = runtime.block_on(FakeMember::start(MemberOptions::default()));
    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": {"allowed": false}});
    authorizer.on_any(move |_| Reply::json(200, &review));
    let mut member = testbed.start_api_server_with(CLUSTER, &flags(testbed, &authorizer)?)?;
    member.wait_ready()?;
    let token = narrow(&member)?;
    let knows = format!(
        "auth can-i impersonate groups/system:serviceaccounts:default --as=system:serviceaccount:default:{NARROW}"
    );
    wait::until("the member to know of the right", LIMIT, || member.kubectl().ok(&knows).map(drop))?;
    let bearer = format!("Bearer {token}");
    let identity = [("authorization", &*bearer), ("impersonate-user", USER), ("impersonate-group", "strangers")];
    let refused = member.client(None).get("/version", &identity)?.text();
    ensure!(refused.contains("cannot impersonate resource \\\"groups\\\""), "{refused}");
    testbed.hub.register_member(CLUSTER, &MemberSecret::with_token(&member, &token))?;
    let asked = authorizer.request_count();
    let tried = first(testbed);
    testbed.hub.forget_member(CLUSTER)?;
    tried?;
    // RBAC allows the rest.
    ensure!(authorizer.request_count() > asked, "no group was left to the webhook");
    Ok(())
}

fn first(testbed: &Testbed) -> Result<()> {
    let hub = &testbed.hub;
    let gateway = testbed.start_gateway(
        "karmada-webhook-gateway",
        &hub.gateway_kubeconfig(),
        &["--karmada-dialect=standalone"],
    )?;
    let token = hub.server.service_account_token("default", NAME)?;
    hub.apply(&grant("clusters/proxy", &[CLUSTER]))?;
    let path = format!("{CLUSTERS}/{CLUSTER}/proxy/version");
    let bearer = format!("Bearer {token}");
    // The first answer of the member ends the wait, whatever it is.
    let answer = wait::until("the hub to know of the right", LIMIT, || {
        let answer = gateway.client(None).get(&path, &[("authorization", &bearer)])?;
        ensure!(!answer.text().contains("clusters/proxy"), "{}", answer.text());
        Ok(answer)
    })?;
    ensure!(answer.status == StatusCode::OK, "{}: {}", answer.status, answer.text());
    Ok(())
}

fn flags(testbed: &Testbed, authorizer: &FakeMember) -> Result<Vec<String>> {
    let directory = testbed.directory(CLUSTER)?;
    let authority = directory.join("authorizer-ca.pem");
    std::fs::write(&authority, authorizer.ca_pem())?;
    let kubeconfig = Kubeconfig { server: authorizer.url(), authority, credential: Credential::None };
    let kubeconfig = kubeconfig.write(directory.join("authorizer"))?;
    // Modes add up: it is asked after RBAC.
    Ok(vec![
        "--authorization-mode=Webhook".to_owned(),
        "--authorization-webhook-version=v1".to_owned(),
        format!("--authorization-webhook-config-file={}", kubeconfig.display()),
    ])
}
