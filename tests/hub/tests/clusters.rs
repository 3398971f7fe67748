//! A cluster is a Secret: its creation, change or deletion takes effect within a second.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::ports;
use hub_tests::prelude::*;
use kit::pki::Authority;
use libtest_mimic::Trial;
use tokio::time::Instant;

use crate::access::{bearer, client, who_am_i};
use crate::fixture::{Fixture, test};

/// Time from kubectl's return to the effect.
const PROMPT: Duration = Duration::from_secs(1);
/// The same where nothing is measured.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "clusters::a new Secret is a cluster within a second, a deleted one is none", come_and_go),
        test(fixture, "clusters::a cluster is served right after its registration", at_once),
        test(fixture, "clusters::a changed token is used within a second", rotate),
        test(fixture, "clusters::a change to a client certificate is used within a second", change_kind),
        test(fixture, "clusters::an unknown cluster is not found", unknown),
        test(fixture, "clusters::a member that cannot be used is named with the reason", unusable),
    ]
}

fn version(testbed: &Testbed, route: Route, cluster: &str) -> Result<Response> {
    let path = format!("{}/version", Testbed::proxy_path(cluster));
    client(testbed, route).get(&path, &[("authorization", &bearer(&testbed.token))])
}

/// Waits until `condition` holds; returns the time.
fn effect<T>(what: &str, condition: impl FnMut() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    wait::until(what, LIMIT, condition)?;
    Ok(start.elapsed())
}

fn come_and_go(testbed: &Testbed) -> Result<()> {
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    for route in Route::PROXIED {
        let cluster = &format!("fresh.{}", route.name()); // names with dots are names too
        wait::timely("the slower of coming and going", PROMPT, || {
            version(testbed, route, cluster)?.expect(StatusCode::NOT_FOUND)?;
            testbed.hub.register_member(cluster, &secret)?;
            let come = effect("the new cluster", || version(testbed, route, cluster)?.expect(StatusCode::OK))?;
            testbed.hub.forget_member(cluster)?;
            let gone = effect("the cluster's end", || version(testbed, route, cluster)?.expect(StatusCode::NOT_FOUND))?;
            Ok(come.max(gone))
        })?;
    }
    Ok(())
}

/// The request follows the hub's 201 immediately, from several callers at once.
fn at_once(testbed: &Testbed) -> Result<()> {
    const CALLERS: usize = 4;
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let callers = Route::PROXIED.into_iter().flat_map(|route| (0..CALLERS).map(move |caller| (route, caller)));
        let callers = callers.map(|(route, caller)| scope.spawn(move || refusals(testbed, route, caller)));
        callers.collect::<Vec<_>>().into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    let refused = outcomes.into_iter().collect::<Result<Vec<_>>>()?.concat();
    ensure!(refused.is_empty(), "{} refused: {}", refused.len(), refused.join("\n"));
    Ok(())
}

/// The refusals that one caller gets instead of the member's answer.
fn refusals(testbed: &Testbed, route: Route, caller: usize) -> Result<Vec<String>> {
    const TIMES: usize = 25;
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let secrets = format!("/api/v1/namespaces/{SECRET_NAMESPACE}/secrets");
    let (json, authorization) = ([("content-type", "application/json")], bearer(&testbed.token));
    let mut hub = testbed.hub.server.client(Some(testbed.hub.server.admin())).keep()?;
    let mut connection = client(testbed, route).keep()?;
    let mut refused = Vec::new();
    for number in 0..TIMES {
        let cluster = format!("prompt-{}-{caller}-{number}", route.name());
        let path = format!("{}/version", Testbed::proxy_path(&cluster));
        let document = Bytes::from(secret.document(&cluster).to_string());
        hub.send(&Method::POST, &secrets, &json, document)?.expect(StatusCode::CREATED)?;
        let answer = connection.send(&Method::GET, &path, &[("authorization", &authorization)], Bytes::new())?;
        if answer.status != StatusCode::OK {
            refused.push(format!("{cluster}: {} {}", answer.status, answer.text()));
        }
        hub.send(&Method::DELETE, &format!("{secrets}/{cluster}"), &[], Bytes::new())?.expect(StatusCode::OK)?;
    }
    Ok(refused)
}

fn rotate(testbed: &Testbed) -> Result<()> {
    let (first, second) = (testbed.member.create_admin("rotation-1")?, testbed.member.create_admin("rotation-2")?);
    for route in Route::PROXIED {
        let cluster = &format!("rotating-{}", route.name());
        wait::timely("the slowest rotation", PROMPT, || {
            let mut slowest = Duration::ZERO;
            for (name, token) in [("rotation-1", &first), ("rotation-2", &second), ("rotation-1", &first)] {
                testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, token))?;
                let took = becomes(testbed, route, cluster, &format!("system:serviceaccount:default:{name}"))?;
                slowest = slowest.max(took);
            }
            Ok(slowest)
        })?;
        testbed.hub.forget_member(cluster)?;
    }
    Ok(())
}

fn change_kind(testbed: &Testbed) -> Result<()> {
    let identity = testbed.member.server.authority().issue(&Leaf::client("changed").group("system:masters"));
    let cluster = "changing";
    wait::timely("the slower of the routes", PROMPT, || {
        testbed
            .hub
            .register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
        becomes(testbed, Route::Gateway, cluster, "system:serviceaccount:default:gateway")?;
        testbed.hub.register_member(cluster, &MemberSecret::with_certificate(&testbed.member.server, &identity))?;
        let mut slowest = Duration::ZERO;
        for route in Route::PROXIED {
            slowest = slowest.max(becomes(testbed, route, cluster, "changed")?);
        }
        Ok(slowest)
    })?;
    testbed.hub.forget_member(cluster)
}

/// Waits until the member sees `user`; returns the time.
fn becomes(testbed: &Testbed, route: Route, cluster: &str, user: &str) -> Result<Duration> {
    effect(&format!("{cluster} via {} as {user}", route.name()), || {
        let name = who_am_i(testbed, route, cluster, "")?;
        ensure!(name == user, "it is {name}");
        Ok(())
    })
}

fn unknown(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        let status = version(testbed, route, "no-such-one")?.expect(StatusCode::NOT_FOUND)?.json()?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(status["kind"] == "Status" && status["reason"] == "NotFound", "{status}");
        // Other programs look for this text (KubeVela's removal of clusters does).
        ensure!(message.contains("no such cluster"), "{status}");
    }
    Ok(())
}

/// The codes show whose fault it is; other programs look for `dial tcp` to distinguish a lost
/// connection from a removed cluster.
fn unusable(testbed: &Testbed) -> Result<()> {
    let secret = || MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let nobody_listens = format!("https://127.0.0.1:{}", ports::free()?);
    let cases = [
        ("unreachable", secret().at(&nobody_listens), StatusCode::SERVICE_UNAVAILABLE, "dial tcp"),
        ("mistrusted", secret().trusting(&Authority::new("other-ca")), StatusCode::SERVICE_UNAVAILABLE, ""),
        ("unauthorized", MemberSecret::with_token(&testbed.member.server, "revoked"), StatusCode::BAD_GATEWAY, ""),
    ];
    for (cluster, secret, code, text) in &cases {
        testbed.hub.register_member(cluster, secret)?;
        for route in Route::PROXIED {
            let response = wait::until("the cluster", LIMIT, || version(testbed, route, cluster)?.expect(*code))?;
            let status = response.json()?;
            let message = status["message"].as_str().unwrap_or_default();
            ensure!(status["kind"] == "Status" && status["code"] == code.as_u16(), "{cluster}: {status}");
            ensure!(message.contains(cluster) && message.contains(text), "{cluster}: {status}");
        }
        // Not `get`, whose output comes from discovery and omits the reason.
        let kubectl = testbed.kubectl_as(Route::Hub, cluster, "unusable", Credential::Token(testbed.token.clone()))?;
        let output = kubectl.args(["create", "configmap", "nothing", "--validate=false"]).run()?;
        ensure!(output.status == 1 && output.stderr.contains(cluster), "kubectl does not show why: {output:?}");
        testbed.hub.forget_member(cluster)?;
    }
    Ok(())
}
