use api::status::{Details, Reason, Status as Written, StatusCause};
use http::StatusCode;
use kube::client::AuthError;

use super::*;

fn berlin() -> ClusterName {
    ClusterName::parse("berlin").unwrap()
}

/// Reads `status` as kube does, from the JSON that the gateway writes.
fn told(status: &Written) -> Failure {
    let status: Status = serde_json::from_slice(&status.to_json()).unwrap();
    kube::Error::Api(status.boxed()).into()
}

fn of_cluster(code: StatusCode, message: &'static str) -> Written {
    Written::new(code, Reason::ServiceUnavailable, message).with_details(Details {
        name: "berlin".into(),
        group: GROUP.into(),
        kind: "clustergateways".into(),
        ..Details::default()
    })
}

#[test]
fn the_hop_is_read_where_the_gateway_writes_it() {
    for side in [Side::Hub, Side::Gateway, Side::Tunnel, Side::Member] {
        let reason = side.hop().unwrap().into();
        let cause = StatusCause { reason, message: "dial tcp: refused".into(), field: "".into() };
        let failure = told(&of_cluster(StatusCode::SERVICE_UNAVAILABLE, "unreachable").with_cause(cause));
        assert_eq!((failure.side, &*failure.cause), (Some(side), "dial tcp: refused"));
        assert_eq!((failure.cluster.clone(), failure.kind), (Some(berlin()), Kind::Answered(503)));
        assert!(!failure.is_retryable());
        assert!(!failure.next_step().is_empty() && failure.to_string().contains("dial tcp: refused"), "{failure}");
    }
}

#[test]
fn refusals_of_the_request_are_the_callers() {
    assert_eq!(told(&Written::unauthorized()).side, Some(Side::Caller));
    let absent = told(&of_cluster(StatusCode::NOT_FOUND, "no such cluster berlin"));
    assert_eq!((absent.side, absent.cluster.clone()), (Some(Side::Caller), Some(berlin())));
}

#[test]
fn a_members_own_answer_is_nobodys_failure() {
    let details = Details { name: "p".into(), kind: "pods".into(), ..Details::default() };
    let status = Written::new(StatusCode::NOT_FOUND, Reason::NotFound, "pods \"p\" not found").with_details(details);
    let failure = told(&status);
    assert_eq!((failure.side, failure.cluster.clone(), &*failure.reason), (None, None, "NotFound"));
    assert_eq!(failure.at(&berlin()).to_string(), "cluster berlin: pods \"p\" not found");
    // Causes of validation are not hops.
    let cause = StatusCause { reason: "FieldValueInvalid".into(), message: "m".into(), field: "spec".into() };
    assert_eq!(told(&status.with_cause(cause)).side, None);
}

#[test]
fn a_member_refuses_a_request_or_all_of_them() {
    let is_of_request = |code| Failure::new(Kind::Answered(code), "no").is_of_request();
    for code in [0, 400, 403, 404, 409, 410, 422, 423, 500, 503] {
        assert!(is_of_request(code), "{code}");
    }
    for code in [401, 408, 421, 425, 429] {
        assert!(!is_of_request(code), "{code}");
    }
    assert!(!Failure::new(Kind::Plain(404), "no").is_of_request(), "this is no member's Status");
}

#[test]
fn what_may_be_sent_again_says_when() {
    let busy = Details { retry_after_seconds: 3, ..Details::default() };
    let status = Written::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, "busy").with_details(busy);
    let failure = told(&status);
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
    assert!(failure.to_string().contains("retry after 3s"), "{failure}");
}

#[test]
fn a_hub_without_a_gateway_is_told_by_its_api_service() {
    let status = Status::failure("service unavailable", "Failed to parse error data").with_code(503);
    let failure = Failure::from(kube::Error::Api(status.boxed()));
    assert_eq!((failure.side, failure.kind), (None, Kind::Plain(503)));
    assert!(failure.to_string().contains("apiservice"), "{failure}");
    assert!(Failure::plain(500, &"é".repeat(LONGEST)).message.len() <= LONGEST + "500: ".len());
}

/// A member chooses all these texts.
#[test]
fn words_have_an_end() {
    let long = "é".repeat(1 << 20);
    let details = serde_json::json!({"group": GROUP, "kind": "clustergateways", "name": "berlin",
        "causes": [{"reason": Side::Member.hop().unwrap(), "message": long}]});
    let status =
        serde_json::json!({"kind": "Status", "code": 502, "message": long, "reason": long, "details": details});
    let failure = Failure::answered(serde_json::from_value(status).unwrap());
    assert_eq!(failure.side, Some(Side::Member));
    assert_eq!((failure.message.len(), failure.cause.len(), failure.reason.len()), (4096, 4096, 1024));
    // An error of a parser quotes its input.
    assert_eq!(Failure::own(long).message.len(), 4096);
}

#[test]
fn a_failure_says_cluster_place_cause_and_next_step() {
    let failure = Failure {
        side: Some(Side::Tunnel),
        cause: "no link".into(),
        retry_after: Some(Duration::from_secs(1)),
        ..Failure::new(Kind::Answered(503), "unreachable").at(&berlin())
    };
    assert_eq!(
        failure.to_string(),
        "cluster berlin: failed at the tunnel: unreachable (no link); retry after 1s; check whether \
         the cluster's tunnel-agent runs and is linked"
    );
}

/// kube's error of a program that fails quotes its environment, its arguments and its output.
#[tokio::test]
async fn what_a_credential_program_knows_is_not_told() {
    let failed = |script: &str| {
        let exec = serde_json::json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script, "CANARY-argument"], "env": [{"name": "SECRET", "value": "CANARY-variable"}]});
        let document = serde_json::json!({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"exec": exec}}]});
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&document.to_string()).unwrap();
        async move {
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            let error = kube::Client::try_from(config).map(drop).unwrap_err();
            assert!(error.to_string().contains("CANARY"), "kube quotes it no more: {error}");
            Failure::from(error)
        }
    };
    for (script, told) in [
        ("echo CANARY-printed; exit 3", "the credential program of the kubeconfig failed with exit status: 3"),
        ("echo CANARY-printed >&2; exit 1", "failed with exit status: 1"),
    ] {
        let failure = failed(script).await;
        assert!(failure.message.contains(told), "{failure}");
        assert!(
            !failure.to_string().contains("CANARY") && failure.to_string().contains("kubectl version"),
            "{failure}"
        );
    }
    // Among the causes, as when a credential is renewed.
    let out = std::process::Command::new("sh").args(["-c", "echo CANARY; exit 2"]).output().unwrap();
    let error = AuthError::AuthExecRun { cmd: "CANARY".into(), out: Box::new(out) };
    let failure = Failure::from(kube::Error::Service(Box::new(error)));
    assert!(
        failure.message.ends_with("failed with exit status: 2") && !failure.to_string().contains("CANARY"),
        "{failure}"
    );
}

/// People paste credentials in the place of file names, and kube quotes these.
#[tokio::test]
async fn names_of_the_kubeconfigs_files_are_not_repeated() {
    for user in ["tokenFile: CANARY", "client-certificate-data: Yw==, client-key: CANARY"] {
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], clusters: [{{name: c, \
             cluster: {{server: 'https://127.0.0.1:1'}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        );
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let error = kube::Client::try_from(config).map(drop).unwrap_err();
        let failure = Failure::from(error);
        assert!(failure.message.ends_with("cannot be read: no such file or directory"), "{failure}");
        assert!(!failure.to_string().contains("CANARY"), "{failure}");
    }
}

#[test]
fn a_member_commands_no_terminal_and_forges_no_line() {
    let cause = StatusCause { reason: "Member".into(), message: "a\x1b]0;t\x07".into(), field: "".into() };
    let failure = told(&of_cluster(StatusCode::BAD_GATEWAY, "m\nWARN forged\u{202e}").with_cause(cause));
    assert_eq!((&*failure.message, &*failure.cause), ("m WARN forged ", "a ]0;t "));
    assert_eq!(Failure::plain(500, "<h1>\r\n").message, "500: <h1>  ");
}
