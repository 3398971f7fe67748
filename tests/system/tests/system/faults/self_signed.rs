//! Development clusters often serve the certificate that is also their authority
//! (`openssl req -x509`): clients written in Go accept it, and so it has to work here.

use kit::pki::{ALPN_BOTH, ClientAuth, self_signed_leaf, server_config};
use system_tests::prelude::*;

use super::unreachable::{assert_unreachable, secret, testbed};

#[tokio::test]
async fn a_self_signed_certificate_given_as_the_authority_is_accepted() {
    let issued = self_signed_leaf("kube-apiserver", &["127.0.0.1"]);
    let tls = Some(server_config(&issued, ClientAuth::None, ALPN_BOTH));
    let member = FakeMember::start(MemberOptions { tls, ..MemberOptions::default() }).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let same = testbed(secret(&member.url(), &issued.certificate_pem)).await;
    assert_eq!(same.get(&proxied(CLUSTER, "/x")).await.status, 200);
    let other = self_signed_leaf("kube-apiserver", &["127.0.0.1"]);
    let other = testbed(secret(&member.url(), &other.certificate_pem)).await;
    assert_unreachable(&other, Http::H2, 503, "ServiceUnavailable").await;
}
