//! A caller's identity when it connects to the gateway directly: identity headers count only with
//! the hub's own certificate.

mod replaced;

use hub_tests::prelude::*;
use kit::pki::{Authority, Issued, Usage};
use libtest_mimic::Trial;

use crate::access::{bearer, marked};
use crate::fixture::{Fixture, test};

/// A forger's headers: a name that may do everything everywhere.
const FORGED: [(&str, &str); 2] = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "identity::headers without a certificate have no effect", no_certificate),
        test(fixture, "identity::headers with the hub's certificate count", front_proxy),
        test(fixture, "identity::headers with any other certificate have no effect", other_certificates),
        test(fixture, "identity::headers do not change who a token is", headers_and_token),
        test(fixture, "identity::nobody and wrong tokens are told what the hub tells them", anonymous),
    ]
}

/// A test that runs after all those that present the hub's first certificate.
pub(crate) fn last_trial(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "identity::the hub's own authority is replaced amid requests", replaced::replaced)]
}

fn front_proxy_leaf() -> Leaf {
    Leaf::client("front-proxy-client")
}

fn no_certificate(testbed: &Testbed) -> Result<()> {
    let response = testbed.gateway.client(None).get(&marked(CLUSTER, "forged-without"), &FORGED)?;
    let expected = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    ensure!(expected.contains(&response.status), "{}: {}", response.status, response.text());
    ensure!(!response.text().contains("admin"), "the forged name is believed: {}", response.text());
    ensure!(!testbed.member.has_seen("forged-without")?, "the member has seen it");
    Ok(())
}

fn front_proxy(testbed: &Testbed) -> Result<()> {
    let client = testbed.gateway.client(Some(&testbed.hub.front_proxy));
    let user = ("x-remote-user", "system:serviceaccount:default:tester");
    client.get(&marked(CLUSTER, "default"), &[user])?.expect(StatusCode::OK)?;
    client.get(&marked(CLUSTER, "default"), &FORGED)?.expect(StatusCode::OK)?;
    let response = client.get(&marked(CLUSTER, "default"), &[("x-remote-user", "nobody-in-particular")])?;
    let text = response.expect(StatusCode::FORBIDDEN)?.text();
    ensure!(text.contains("nobody-in-particular"), "{text}");
    // A certificate alone is not a user: without a name, the caller is not authenticated.
    client.get(&marked(CLUSTER, "default"), &[])?.expect(StatusCode::UNAUTHORIZED)?;
    Ok(())
}

fn other_certificates(testbed: &Testbed) -> Result<()> {
    let hubs = &testbed.hub.front_proxy_authority;
    let certificates: [(&str, Issued); 7] = [
        ("of another authority with the same name", Authority::new("front-proxy-ca").issue(&front_proxy_leaf())),
        ("of the authority for users", testbed.hub.server.authority().issue(&front_proxy_leaf())),
        ("expired", hubs.issue(&front_proxy_leaf().expired())),
        ("not yet valid", hubs.issue(&front_proxy_leaf().not_yet_valid())),
        ("with another name", hubs.issue(&Leaf::client("back-proxy-client"))),
        ("for servers only", hubs.issue(&Leaf::new("front-proxy-client").usage(Usage::Server))),
        (
            "of an authority below another one",
            Authority::new("other").intermediate("front-proxy-ca").issue(&front_proxy_leaf()),
        ),
    ];
    for (number, (what, identity)) in certificates.iter().enumerate() {
        let marker = format!("forged-with-{number}");
        let Ok(response) = testbed.gateway.client(Some(identity)).get(&marked(CLUSTER, &marker), &FORGED) else {
            continue; // refusing the connection is fine too
        };
        let expected = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        ensure!(expected.contains(&response.status), "a certificate {what}: {}: {}", response.status, response.text());
        ensure!(!response.text().contains("\\\"admin\\\""), "a certificate {what}: {}", response.text());
        ensure!(!testbed.member.has_seen(&marker)?, "a certificate {what}: the member has seen it");
    }
    Ok(())
}

fn headers_and_token(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.server.service_account_token("default", "pretender")?;
    let authorization = bearer(&token);
    let headers = [FORGED[0], FORGED[1], ("authorization", &*authorization)];
    let response = testbed.gateway.client(None).get(&marked(CLUSTER, "default"), &headers)?;
    let text = response.expect(StatusCode::FORBIDDEN)?.text();
    ensure!(text.contains("system:serviceaccount:default:pretender"), "{text}");
    // A user with rights keeps its own identity.
    let authorization = bearer(&testbed.token);
    let headers = [("x-remote-user", "nobody"), ("authorization", &*authorization)];
    testbed.gateway.client(None).get(&marked(CLUSTER, "default"), &headers)?.expect(StatusCode::OK)?;
    Ok(())
}

fn anonymous(testbed: &Testbed) -> Result<()> {
    let path = marked(CLUSTER, "anonymous-visit");
    for (what, client) in [("hub", testbed.hub.server.client(None)), ("gateway", testbed.gateway.client(None))] {
        let text = client.get(&path, &[])?.expect(StatusCode::FORBIDDEN)?.text();
        ensure!(text.contains("system:anonymous"), "{what}: {text}");
        let refused =
            client.get(&path, &[("authorization", "Bearer not-a-token")])?.expect(StatusCode::UNAUTHORIZED)?;
        let status = refused.json()?;
        ensure!(status["kind"] == "Status" && status["reason"] == "Unauthorized", "{what}: {status}");
        ensure!(status["message"] == "Unauthorized", "{what}: {status}");
    }
    ensure!(!testbed.member.has_seen("anonymous-visit")?, "the member has seen it");
    Ok(())
}
