//! The serving side's TLS, as flags of Kubernetes' servers set it.

use std::path::Path;

use gateway::Gateway;
use kit::client::Client;
use kit::pki::{ALPN_BOTH, Trust, provider, root_store};
use system_tests::prelude::*;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{CipherSuite, ClientConfig, SupportedProtocolVersion};

/// A client that speaks nothing but `version`.
fn speaks(testbed: &Testbed, version: &'static SupportedProtocolVersion) -> Client {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .expect("the provider has suites for it")
        .with_root_certificates(testbed.serving().root_store())
        .with_no_client_auth();
    Client::with_config(testbed.address(), Arc::new(config))
}

#[tokio::test]
async fn the_oldest_version_can_be_raised() {
    let testbed = Testbed::builder().start().await;
    speaks(&testbed, &TLS12).tls(&[]).await.expect("TLS 1.2 by default");
    let testbed = Testbed::builder().arg("--tls-min-version=VersionTLS13").start().await;
    let error = speaks(&testbed, &TLS12).tls(&[]).await.expect_err("TLS 1.2 is too old");
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    speaks(&testbed, &TLS13).tls(&[]).await.expect("TLS 1.3");
}

#[tokio::test]
async fn cipher_suites_of_tls_12_can_be_chosen() {
    let chosen = "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";
    let testbed = Testbed::builder().arg(chosen).start().await;
    let stream = speaks(&testbed, &TLS12).tls(&[]).await.expect("a suite in common");
    let agreed = stream.get_ref().1.negotiated_cipher_suite().expect("a suite").suite();
    assert_eq!(agreed, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256);
    speaks(&testbed, &TLS13).tls(&[]).await.expect("TLS 1.3 has its own suites");
}

#[tokio::test]
async fn http2_can_be_turned_off() {
    let testbed = Testbed::builder().arg("--disable-http2-serving=true").launch().await;
    let client = Client::new(testbed.address(), Trust::Authority(testbed.serving()), None);
    let stream = client.tls(ALPN_BOTH).await.expect("a protocol in common");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(testbed.connect(Http::H1).await.get("/livez").await.status, 200);
}

#[tokio::test]
async fn names_have_certificates_of_their_own_which_are_followed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = Authority::new("other-ca");
    let issue = || authority.issue(&Leaf::server("other").without_sans().san("other.example").san("*.wild.example"));
    let first = issue();
    let files = first.write_to(directory.path(), "other").expect("the directory is writable");
    let pair = format!("--tls-sni-cert-key={},{}", files.certificate.display(), files.key.display());
    let testbed = Testbed::builder().arg(&pair).start().await;
    let shown = async |name: &str| {
        let client = Client::new(testbed.address(), Trust::Anyone, None).server_name(name);
        let stream = client.tls(&[]).await.expect("a handshake");
        stream.get_ref().1.peer_certificates().expect("a certificate")[0].clone()
    };
    for name in ["other.example", "a.wild.example"] {
        assert_eq!(shown(name).await, first.certificate_der, "{name}");
    }
    for name in ["localhost", "127.0.0.1", "a.b.wild.example"] {
        assert_ne!(shown(name).await, first.certificate_der, "{name}");
    }
    let second = issue();
    second.write_to(directory.path(), "other").expect("the directory is writable");
    becomes(WAIT, "the new certificate", async || shown("other.example").await == second.certificate_der).await;
}

#[tokio::test]
async fn the_ends_of_certificates_are_told_and_follow_their_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = Authority::new("other-ca");
    let issue = |days| {
        authority.issue(
            &Leaf::server("other")
                .without_sans()
                .san("other.example")
                .valid(time::Duration::ZERO, time::Duration::days(days)),
        )
    };
    let files = issue(5).write_to(directory.path(), "other").expect("the directory is writable");
    let pair = format!("--tls-sni-cert-key={},{}", files.certificate.display(), files.key.display());
    let testbed = Testbed::builder().arg(&pair).start().await;
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    // By file, in days from now.
    let ends = async || {
        let text = testbed.get("/metrics").await.text();
        let series = text
            .lines()
            .filter_map(|line| line.strip_prefix("cluster_gateway_certificate_expiry_timestamp_seconds{file=\""));
        let end = |line: &str| {
            let (file, seconds) = line.split_once("\"} ").expect("a value");
            let days = seconds.parse::<u64>().expect("seconds").saturating_sub(now()).div_ceil(24 * 60 * 60);
            (Path::new(file).file_name().expect("a name").to_owned(), days)
        };
        series.map(end).collect::<Vec<_>>()
    };
    let first = ends().await;
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first.contains(&("other.crt".into(), 5)), "{first:?}");
    issue(50).write_to(directory.path(), "other").expect("the directory is writable");
    becomes(WAIT, "the new end", async || ends().await.contains(&("other.crt".into(), 50))).await;
}

#[tokio::test]
async fn without_a_certificate_one_is_made_and_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(directory.path().join("clusters")).expect("the directory is new");
    let made = directory.path().join("certificates/apiserver.crt");
    let first = serve_from(directory.path(), &made).await;
    let second = serve_from(directory.path(), &made).await;
    assert!(first == second, "the certificate is made once");
}

/// Starts a gateway without a certificate, asserts that `made` is a certificate to trust it by, and
/// returns its content.
async fn serve_from(directory: &Path, made: &Path) -> Vec<u8> {
    let flag = |name: &str, file: &str| format!("--{name}={}", directory.join(file).display());
    let arguments = [
        "cluster-gateway".to_owned(),
        "--standalone".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=0".to_owned(),
        flag("clusters-dir", "clusters"),
        flag("cert-dir", "certificates"),
    ];
    let starting = tokio::task::spawn_blocking(move || Gateway::start(arguments));
    let gateway = within(WAIT, "the start", starting).await.expect("no panic").expect("the gateway starts");
    let pem = std::fs::read(made).expect("a certificate was made");
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().expect("PEM certificates");
    let roots = root_store(&certificates[1..]);
    for name in ["localhost", "127.0.0.1", "cluster-gateway.vela-system.svc"] {
        let client = Client::new(gateway.address(), Trust::Roots(&roots), None).server_name(name);
        client.h2().await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let stopping = tokio::task::spawn_blocking(move || gateway.stop());
    within(WAIT, "the end", stopping).await.expect("no panic").expect("the gateway stops");
    pem
}
