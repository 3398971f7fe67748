//! Members behind a forward proxy: everything goes through it (ordinary requests, streams and
//! upgrades alike), connections are used again, and the proxy's objections are reported without its
//! password.

mod faults;
mod traffic;

use std::io::Write as _;

use kit::hub::ClusterSecret;
use kit::proxy::{FakeProxy, ProxyKind};
use system_tests::{CLUSTER, Testbed, TestbedBuilder};
use tempfile::NamedTempFile;

/// Makes one test of each named `async fn(ProxyKind)` for each kind of proxy.
macro_rules! across_proxies {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            use kit::proxy::ProxyKind;

            #[tokio::test]
            async fn http() {
                Box::pin(super::$scenario(ProxyKind::Http)).await;
            }

            #[tokio::test]
            async fn https() {
                Box::pin(super::$scenario(ProxyKind::Https)).await;
            }

            #[tokio::test]
            async fn socks5() {
                Box::pin(super::$scenario(ProxyKind::Socks5)).await;
            }
        }
    )+};
}
use across_proxies;

/// A testbed, and the file it read the proxy's CA from.
struct Proxied {
    testbed: Testbed,
    _ca: NamedTempFile,
}

/// A gateway whose only cluster is `secret`, behind the proxy at `url`, which has a certificate of
/// `proxy`'s authority.
async fn behind(url: &str, proxy: &FakeProxy, secret: ClusterSecret) -> Proxied {
    behind_with(url, proxy, secret, |builder| builder).await
}

async fn behind_with(
    url: &str,
    proxy: &FakeProxy,
    secret: ClusterSecret,
    more: impl FnOnce(TestbedBuilder) -> TestbedBuilder,
) -> Proxied {
    let mut ca = NamedTempFile::new().expect("a temporary file");
    ca.write_all(proxy.ca_pem().as_bytes()).expect("a temporary file can be written");
    let builder = Testbed::builder()
        .cluster(CLUSTER, secret.data("proxy-url", url))
        .arg(&format!("--proxy-ca-file={}", ca.path().display()));
    Proxied { testbed: more(builder).start().await, _ca: ca }
}

/// A proxy that insists on a user and password.
async fn guarded(kind: ProxyKind) -> FakeProxy {
    let credentials = Some(("jane".to_owned(), "s3cret".to_owned()));
    FakeProxy::with(kind, kit::proxy::ProxyOptions { credentials, ..Default::default() }).await
}
