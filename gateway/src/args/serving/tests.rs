use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    tls: ServingTls,
}

struct Parsed {
    serving: Certificates,
    wrong: Vec<String>,
    warnings: Vec<String>,
}

fn parsed(arguments: &[&str]) -> Parsed {
    let line = Line::parse_from([&["gateway"], arguments].concat());
    let reached = CertificateNames { address: "10.0.0.7".parse().unwrap(), namespace: "vela-system" };
    let (mut wrong, mut warnings) = (Vec::new(), Vec::new());
    let main = MainFiles { certificate: None, private_key: None };
    let serving = line.tls.parse(&main, &reached, &mut wrong, &mut warnings);
    Parsed { serving, wrong, warnings }
}

#[test]
fn nothing_given_means_a_certificate_of_our_own_for_all_names_we_go_by() {
    let Parsed { serving, wrong, warnings } = parsed(&[]);
    assert!(wrong.is_empty() && warnings.is_empty(), "{wrong:?} {warnings:?}");
    let MainCertificate::InDirectory { directory, names } = serving.main else { panic!("no files were given") };
    assert_eq!(directory.to_str(), Some("apiserver.local.config/certificates"));
    assert_eq!(names, ["localhost", "127.0.0.1", "::1", "10.0.0.7", "cluster-gateway.vela-system.svc"]);
    assert_eq!(serving.policy.alpn, [tls::H2, tls::HTTP_11]);
}

#[test]
fn half_a_pair_is_a_mistake() {
    let path = PathBuf::from("x");
    let line = Line::parse_from(["gateway"]);
    let reached = CertificateNames { address: "0.0.0.0".parse().unwrap(), namespace: "" };
    for (certificate, private_key, needed) in
        [(Some(&path), None, "--tls-private-key-file is required"), (None, Some(&path), "--tls-cert-file is required")]
    {
        let mut wrong = Vec::new();
        line.tls.parse(&MainFiles { certificate, private_key }, &reached, &mut wrong, &mut Vec::new());
        assert!(wrong[0].starts_with(needed), "{wrong:?}");
    }
}

#[test]
fn further_pairs_have_the_names_after_the_last_colon() {
    let Parsed { serving, wrong, warnings } = parsed(&[
        "--tls-sni-cert-key=a.crt,a.key",
        "--tls-sni-cert-key=/x:y/b.crt,/x:y/b.key:*.Foo.example,foo.example,10.0.0.1",
    ]);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(warnings[0].contains("10.0.0.1"), "{warnings:?}");
    let [a, b] = &serving.named[..] else { panic!("{:?}", serving.named) };
    assert_eq!((a.files.certificate.to_str(), a.names.len()), (Some("a.crt"), 0));
    assert_eq!(b.files.private_key.to_str(), Some("/x:y/b.key"));
    assert_eq!(b.names, ["*.foo.example", "foo.example"]);
}

#[test]
fn mistakes_are_told_with_what_is_possible() {
    for (argument, words) in [
        ("--tls-min-version=VersionTLS10", "VersionTLS12 or VersionTLS13"),
        ("--tls-min-version=1.3", "unknown version"),
        ("--tls-cipher-suites=TLS_NONE", "TLS_AES_128_GCM_SHA256"),
        ("--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA", "none of the cipher suites"),
        ("--tls-sni-cert-key=a.crt", "CERT,KEY"),
        ("--tls-sni-cert-key=a.crt,a.key,b.key", "CERT,KEY"),
    ] {
        let wrong = parsed(&[argument]).wrong;
        assert!(wrong.len() == 1 && wrong[0].contains(words), "{argument}: {wrong:?}");
    }
}

#[test]
fn suites_that_only_go_has_are_left_out_with_a_warning() {
    let suites = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA";
    let Parsed { wrong, warnings, .. } = parsed(&[suites]);
    assert!(wrong.is_empty() && warnings[0].contains("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"), "{wrong:?} {warnings:?}");
}

#[test]
fn switches_are_written_as_go_writes_them() {
    for argument in ["--disable-http2-serving", "--disable-http2-serving=true"] {
        assert_eq!(parsed(&[argument]).serving.policy.alpn, [tls::HTTP_11], "{argument}");
    }
    let both = parsed(&["--disable-http2-serving=false"]);
    assert_eq!(both.serving.policy.alpn.len(), 2);
}
