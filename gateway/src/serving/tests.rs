use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use kit::pki::{Authority, Leaf};
use net::tls::policy::{Suites, Version};

use super::*;

fn main(directory: &Path) -> MainCertificate {
    let names = vec!["localhost".into(), "127.0.0.1".into(), "not a name".into()];
    MainCertificate::InDirectory { directory: directory.join("made/for/us"), names }
}

#[test]
fn a_pair_is_made_once_and_found_later() {
    let directory = tempfile::tempdir().unwrap();
    let files = main(directory.path()).files().unwrap();
    ServingCertificate::load(files.clone()).expect("certificate and key fit");
    let mode = std::fs::metadata(&files.private_key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let made = std::fs::read(&files.certificate).unwrap();
    let again = main(directory.path()).files().unwrap();
    assert_eq!(std::fs::read(&again.certificate).unwrap(), made);
}

#[test]
fn half_a_pair_is_neither_used_nor_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let files = main(directory.path()).files().unwrap();
    std::fs::remove_file(&files.private_key).unwrap();
    let error = main(directory.path()).files().unwrap_err();
    assert!(format!("{error:#}").contains("apiserver.key does not"), "{error:#}");
}

#[test]
fn a_start_that_broke_off_is_finished_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let files = main(directory.path()).files().unwrap();
    let key = std::fs::read(&files.private_key).unwrap();
    std::fs::remove_file(&files.certificate).unwrap();
    let again = main(directory.path()).files().unwrap();
    ServingCertificate::load(again.clone()).expect("certificate and key fit");
    assert_eq!(std::fs::read(&again.private_key).unwrap(), key, "nobody's key is written over");
    let others = std::fs::read_dir(files.certificate.parent().unwrap()).unwrap().count() - 2;
    assert_eq!(others, 0, "nothing else is left behind");
}

#[test]
fn what_is_no_pair_is_told_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let files = main(directory.path()).files().unwrap();
    let load = || {
        let (named, policy) = (Vec::new(), Policy { oldest: Version::Tls12, suites: Suites::default(), alpn: vec![] });
        format!("{:#}", Serving { main: main(directory.path()), named, policy }.load().unwrap_err())
    };
    std::fs::write(&files.certificate, "").unwrap();
    let error = load();
    assert!(
        error.contains("remove both files, and the gateway creates a new pair") && error.contains("apiserver.crt"),
        "{error}"
    );
    std::fs::remove_file(&files.certificate).unwrap();
    std::fs::write(&files.private_key, "").unwrap();
    let error = load();
    assert!(error.contains("apiserver.key has no certificate") && error.contains("remove it"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_written_is_told_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("made"), "a file in the way").unwrap();
    let error = main(directory.path()).files().unwrap_err();
    assert!(format!("{error:#}").contains("a writable --cert-dir"), "{error:#}");
}

#[test]
fn its_end_is_told_before_where_nobody_renews_it() {
    let day = |number: u32| SystemTime::now() + Duration::from_hours(24) * number;
    let issued =
        Authority::new("ca").issue(&Leaf::server("gateway").valid(time::Duration::ZERO, time::Duration::days(90)));
    let told = |made, days| warning(&issued.certificate_der, made, day(days)).unwrap_or_default();
    assert_eq!((told(true, 59), told(false, 89)), (String::new(), String::new()));
    assert!(told(true, 61).contains(" expires at ") && told(true, 61).contains("delete both files"));
    for made in [true, false] {
        assert!(told(made, 91).contains(" expired at "), "{}", told(made, 91));
    }
}
