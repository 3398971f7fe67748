//! What is removed from a program's last words, and what stays.

use kit::pki::{Authority, Leaf};
use proptest::prelude::*;

use super::*;
use crate::request::ClusterInfo;
use crate::testing::{config, request, with_env};

fn said(env: &[(&str, &str)], args: &[&str], stderr: &str) -> String {
    let request = request(with_env(config("plugin", args), env));
    Redaction::of(&request).last_words(stderr.as_bytes())
}

#[test]
fn ordinary_words_stay() {
    for text in [
        "exit status 1",
        "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
        "dial tcp: lookup oidc.eks.eu-central-1.amazonaws.com on 10.0.0.10:53: no such host",
        "Get \"https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15\": timeout",
        "open /var/run/secrets/eks.amazonaws.com/serviceaccount/token: no such file or directory",
        "File \"/usr/lib/python3.11/site-packages/botocore/session.py\", line 12",
    ] {
        assert_eq!(said(&[], &[], text), text);
    }
    assert_eq!(said(&[], &[], " \n"), "");
}

#[test]
fn values_of_the_environment_go() {
    let env = [("A", "hunter2"), ("B", "hunter2-and-more"), ("C", "1"), ("D", ""), ("E", "first\nsecond line")];
    let text = said(&env, &[], "bad hunter2-and-more (hunter2), try 1; got second line!");
    assert_eq!(text, "bad *** (***), try 1; got ***!");
}

#[test]
fn secret_arguments_go() {
    let args = ["get-token", "--client-secret=aa-bb", "--token", "cc-dd", "--region", "eu-1", "--password"];
    let text = said(&[], &args, "get-token aa-bb cc-dd eu-1");
    assert_eq!(text, "get-token *** *** eu-1");
}

#[test]
fn the_password_of_the_proxy_goes() {
    let config = api::secret::ExecConfig { provide_cluster_info: true, ..config("plugin", &[]) };
    let cluster = || ClusterInfo { proxy_url: Some("http://me:hunter2@proxy:1".into()), ..ClusterInfo::default() };
    let request = Request::new(config, cluster);
    let text = Redaction::of(&request).last_words(b"proxy http://me:hunter2@proxy:1 says 407 to me:hunter2");
    assert_eq!(text, "proxy *** says 407 to me:***");
}

#[test]
fn what_looks_like_a_secret_goes() {
    let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJlLW9mLWEtand0LTAxMjM0NTY3ODk";
    for (text, expected) in [
        (format!("got {jwt}, denied"), "got ***.***.***, denied"),
        (format!("Authorization: Bearer {jwt}"), "Authorization: Bearer ***.***.***"),
        ("key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY!".into(), "key ***!"),
        ("k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdzLmNvbS8".into(), "k8s-aws-v1.***"),
        ("token=0123456789abcdef0123456789abcdef".into(), "***"),
        ("https://host/0123456789abcdef0123456789abcdef/x".into(), "https://host/***/x"),
    ] {
        assert_eq!(said(&[], &[], &text), expected);
    }
}

#[test]
fn keys_and_certificates_go() {
    let leaf = Authority::new("ca").issue(&Leaf::client("gateway"));
    let text = said(&[], &[], &format!("key:\n{}certificate:\n{}end", leaf.key_pem, leaf.chain_pem));
    assert!(text.starts_with("key:\\n***\\ncertificate:\\n***") && text.ends_with("end"), "{text}");
    let open = leaf.key_pem.split_once("-----END").unwrap().0;
    assert_eq!(said(&[], &[], &format!("key: {open}")), "key: ***");
    let middle = leaf.key_pem.split_once('\n').unwrap().1;
    assert_eq!(said(&[], &[], &format!("{middle}that was it")), "***\\nthat was it");
    assert_eq!(said(&[], &[], &format!("{middle}then {}", leaf.key_pem)), "***\\nthen ***");
}

#[test]
fn it_is_one_line_and_the_last_of_many() {
    assert_eq!(said(&[], &[], "a\nb\t\u{1b}[31m\u{202e}c\r\n"), "a\\nb\\t\\u{1b}[31m\\u{202e}c");
    let text = said(&[], &[], &format!("{}the end", "é ".repeat(10_000)));
    assert!(text.starts_with('…') && text.ends_with("the end") && text.len() <= SHOWN + "…".len(), "{}", text.len());
}

proptest! {
    #[test]
    fn no_value_comes_through(value in "[!-~]{4,40}", before in "\\PC{0,30}", after in "\\PC{0,3000}") {
        prop_assume!(!MASK.contains(&value) && !before.contains(&value) && !after.contains(&value));
        let text = said(&[("SECRET", &value)], &[], &format!("{before} {value} {after}"));
        // Masks could by chance recreate the value. With a letter or digit in it they cannot.
        prop_assume!(value.bytes().any(|byte| byte.is_ascii_alphanumeric()));
        prop_assert!(!text.contains(&value), "{text}");
    }

    #[test]
    fn any_bytes_become_one_short_line(stderr in proptest::collection::vec(any::<u8>(), 0..5000)) {
        let request = request(config("plugin", &[]));
        let text = Redaction::of(&request).last_words(&stderr);
        prop_assert!(!text.chars().any(char::is_control));
        // An escape has at most ten bytes per character.
        prop_assert!(text.len() <= 10 * SHOWN);
    }
}
