use super::suites::{Name, SuitesError};
use super::*;

fn names(suites: &Suites) -> Vec<String> {
    suites.0.iter().map(|suite| Name(*suite).to_string()).collect()
}

#[test]
fn chosen_suites_are_those_of_tls_12_and_tls_13_keeps_its_own() {
    let (suites, missing) =
        Suites::named(["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA"]).unwrap();
    assert_eq!(missing, ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
    let left = names(&suites);
    assert!(left.contains(&"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384".into()), "{left:?}");
    assert!(left.contains(&"TLS_AES_128_GCM_SHA256".into()), "{left:?}");
    assert!(!left.contains(&"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".into()), "{left:?}");
    let policy = Policy { suites, ..Policy::default() };
    assert_eq!(policy.versions(), [&TLS13, &TLS12]);
}

#[test]
fn a_version_that_lost_all_its_suites_is_not_offered() {
    let (suites, _) = Suites::named(["TLS_AES_256_GCM_SHA384"]).unwrap();
    assert_eq!(Policy { suites, ..Policy::default() }.versions(), [&TLS13]);
    assert_eq!(Policy { oldest: Version::Tls13, ..Policy::default() }.versions(), [&TLS13]);
}

#[test]
fn both_spellings_of_chacha_are_known() {
    let long = Suites::named(["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]).unwrap().0;
    let short = Suites::named(["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]).unwrap().0;
    assert_eq!(names(&long), names(&short));
}

#[test]
fn what_makes_no_choice_is_refused_with_the_choices() {
    let error = Suites::named(["TLS_MADE_UP"]).unwrap_err();
    assert!(error.to_string().contains("\"TLS_MADE_UP\" is not a known cipher suite"), "{error}");
    assert!(error.to_string().contains("TLS_AES_128_GCM_SHA256"), "{error}");
    assert_eq!(Suites::named(["TLS_RSA_WITH_AES_128_CBC_SHA"]).unwrap_err(), SuitesError::NoneLeft);
    assert_eq!(Suites::named([]).unwrap_err(), SuitesError::NoneLeft);
}
