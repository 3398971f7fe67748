//! Each certificate has the property it was asked for, judged by rustls and by an independent
//! parser.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;

/// Runs a handshake in memory until both sides are done, or returns the first error: the client's,
/// else the server's.
fn handshake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), Error> {
    let mut client = ClientConnection::new(client, "localhost".try_into().expect("a name"))?;
    let mut server = ServerConnection::new(server)?;
    let mut wire = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        wire.clear();
        client.write_tls(&mut wire).expect("memory");
        server.read_tls(&mut &wire[..]).expect("memory");
        let served = server.process_new_packets();
        wire.clear();
        server.write_tls(&mut wire).expect("memory");
        client.read_tls(&mut &wire[..]).expect("memory");
        client.process_new_packets()?;
        served?;
    }
    Ok((client, server))
}

fn serve(leaf: &Leaf) -> Result<(), Error> {
    let authority = Authority::new("root");
    let server = server_config(&authority.issue(leaf), ClientAuth::None, ALPN_BOTH);
    handshake(client_config(Trust::Authority(&authority), None, ALPN_BOTH), server).map(drop)
}

#[test]
fn a_healthy_chain_below_an_intermediate_is_accepted_both_ways() {
    let root = Authority::new("root");
    let authority = root.intermediate("intermediate");
    let server = server_config(&authority.issue(&Leaf::server("member")), ClientAuth::Required(&root), ALPN_BOTH);
    let user = authority.issue(&Leaf::client("alice"));
    let (client, server) =
        handshake(client_config(Trust::Authority(&root), Some(&user), ALPN_H1), server).expect("trusted");
    assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(server.peer_certificates().expect("a client certificate")[0], user.certificate_der);
}

#[test]
fn every_group_is_an_organisation_of_the_subject_in_order() {
    let groups = ["system:masters", "ops", "dev", "näme"];
    let leaf = groups.iter().fold(Leaf::client("alice"), |leaf, group| leaf.group(*group));
    let issued = Authority::new("root").issue(&leaf);
    let (_, parsed) = X509Certificate::from_der(&issued.certificate_der).expect("DER");
    let organisations: Vec<_> = parsed.subject().iter_organization().map(|o| o.as_str().expect("UTF-8")).collect();
    assert_eq!(organisations, groups);
    assert_eq!(parsed.subject().iter_common_name().next().expect("a CN").as_str(), Ok("alice"));
    serve(&groups.iter().fold(Leaf::server("member"), |leaf, group| leaf.group(*group)))
        .expect("the new signature is good");
}

#[test]
fn long_subjects_survive() {
    let leaf = (0..300).fold(Leaf::client("alice"), |leaf, number| leaf.group(format!("group-{number}")));
    let issued = Authority::new("root").issue(&leaf);
    let (_, parsed) = X509Certificate::from_der(&issued.certificate_der).expect("DER");
    assert_eq!(parsed.subject().iter_organization().count(), 300);
}

#[test]
fn validity_usage_names_and_issuer_are_what_was_asked_for() {
    assert_eq!(serve(&Leaf::server("member")), Ok(()));
    assert_eq!(serve(&Leaf::server("member").rsa()), Ok(()));
    assert_eq!(serve(&Leaf::new("member").san("localhost")), Ok(()));
    let refused = |leaf: &Leaf| match serve(leaf) {
        Err(Error::InvalidCertificate(reason)) => reason,
        other => panic!("expected a certificate error, got {other:?}"),
    };
    assert!(matches!(refused(&Leaf::server("member").expired()), CertificateError::ExpiredContext { .. }));
    assert!(matches!(refused(&Leaf::server("member").not_yet_valid()), CertificateError::NotValidYetContext { .. }));
    assert!(matches!(
        refused(&Leaf::server("member").without_sans().san("other.example")),
        CertificateError::NotValidForNameContext { .. }
    ));
    assert!(matches!(
        refused(&Leaf::client("member").san("localhost")),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. }
    ));
    assert!(format!("{:?}", refused(&Leaf::server("member").authority())).contains("CaUsedAsEndEntity"));
}

#[test]
fn a_self_signed_leaf_is_refused_by_webpki_and_accepted_by_trust_anyone() {
    let leaf = self_signed_leaf("kind", &["localhost"]);
    let roots = root_store([&leaf.certificate_der]);
    let server = server_config(&leaf, ClientAuth::None, ALPN_BOTH);
    let error =
        handshake(client_config(Trust::Roots(&roots), None, ALPN_BOTH), server.clone()).expect_err("a CA as a leaf");
    assert!(format!("{error:?}").contains("CaUsedAsEndEntity"), "{error:?}");
    handshake(client_config(Trust::Anyone, None, ALPN_BOTH), server).expect("no check");
}

#[test]
fn a_client_of_another_authority_is_refused() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let server = server_config(&ours.issue(&Leaf::server("member")), ClientAuth::Required(&ours), &[]);
    let stranger = theirs.issue(&Leaf::client("mallory"));
    let error =
        handshake(client_config(Trust::Authority(&ours), Some(&stranger), &[]), server).expect_err("unknown issuer");
    assert!(
        matches!(
            error,
            Error::InvalidCertificate(CertificateError::UnknownIssuer)
                | Error::NoCertificatesPresented
                | Error::AlertReceived(AlertDescription::UnknownCA)
        ),
        "{error:?}"
    );
}

#[test]
fn written_files_hold_the_chain_and_a_private_key_for_the_owner_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = Authority::new("root");
    let issued = root.intermediate("intermediate").issue(&Leaf::server("member"));
    let files = issued.write_to(directory.path(), "tls").expect("written");
    let chain = std::fs::read_to_string(&files.certificate).expect("readable");
    assert_eq!(chain.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(chain.starts_with(&issued.certificate_pem) && chain.lines().all(|line| line.len() <= PEM_LINE));
    assert_eq!(std::fs::metadata(&files.key).expect("exists").permissions().mode() & 0o777, 0o600);
    assert_eq!(
        std::fs::read_to_string(root.write_to(directory.path(), "ca").expect("written")).expect("readable"),
        root.root_pem()
    );
}
