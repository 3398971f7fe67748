//! Which programs may run, and the messages of refusals. Planted secrets contain `canary`.

use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";

/// A valid configuration with one field changed.
fn with(field: &str, value: Value) -> Result<ExecConfig, SecretError> {
    let mut config = json!({"apiVersion": V1, "command": "aws"});
    config[field] = value;
    ExecConfig::parse(config.to_string().as_bytes())
}

#[test]
fn a_configuration_is_read_whole() {
    let written = json!({
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", ""],
        "env": [{"name": "AWS_PROFILE", "value": "canary"}, {"name": "EMPTY"}, {"name": "NULL", "value": null}],
        "provideClusterInfo": true,
        "interactiveMode": "IfAvailable",
        "installHint": "  get it\nthere ",
        "unknown": 1,
    });
    let config = ExecConfig::parse(written.to_string().as_bytes()).unwrap();
    assert_eq!((config.api_version, &*config.command), (ExecApiVersion::V1Beta1, "aws"));
    assert_eq!(config.args, ["eks", "get-token", ""]);
    let env: Vec<_> = config.env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(env, [("AWS_PROFILE", "canary"), ("EMPTY", ""), ("NULL", "")]);
    assert_eq!((config.provide_cluster_info, config.install_hint.as_deref()), (true, Some("get it there")));
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn nothing_but_version_and_command_is_needed() {
    for null in ["args", "env", "provideClusterInfo", "interactiveMode", "installHint"] {
        let config = with(null, Value::Null).unwrap();
        assert_eq!((config.api_version, config.args.len(), config.env.len()), (ExecApiVersion::V1, 0, 0));
        assert_eq!((config.provide_cluster_info, config.install_hint), (false, None));
    }
}

#[test]
fn refusals_name_the_field_and_hold_no_value() {
    let long = |length| Value::from("canary ".repeat(length));
    let many = |one: Value| Value::from(vec![one; 257]);
    let outcomes = [
        ExecConfig::parse(b"canary"),
        ExecConfig::parse(b""),
        ExecConfig::parse(b"[]"),
        with("args", long(10_000)),
        with("apiVersion", "canary".into()),
        with("apiVersion", Value::Null),
        with("apiVersion", "client.authentication.k8s.io/v1alpha1".into()),
        with("command", "".into()),
        with("command", Value::Null),
        with("command", "can\u{0}ary".into()),
        with("command", long(600)),
        with("args", many("canary".into())),
        with("args", json!(["canary\u{0}"])),
        with("env", many(json!({"name": "CANARY"}))),
        with("env", json!([{"value": "canary"}])),
        with("env", json!([{"name": "canary=", "value": "canary"}])),
        with("env", json!([{"name": "A", "value": "canary\u{0}"}])),
        with("env", json!([{"name": "A", "value": long(5000)}])),
        with("interactiveMode", "Always".into()),
        with("interactiveMode", "canary".into()),
    ];
    let texts: Vec<_> = outcomes.into_iter().map(|outcome| outcome.expect_err("refused").to_string()).collect();
    assert!(!texts.iter().any(|text| text.to_lowercase().contains("canary")), "{texts:#?}");
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_hint_is_short() {
    let config = with("installHint", "x".repeat(5000).into()).unwrap();
    assert_eq!(config.install_hint.unwrap().len(), MOST_HINT);
}

proptest! {
    #[test]
    fn what_is_accepted_can_be_run(
        command in "\\PC{0,5}|[a-z\0\n/]{0,5}",
        args in proptest::collection::vec("[a-z\0]{0,3}", 0..3),
        name in "[A-Z=\0]{0,3}",
        value in "[a-z\0]{0,3}",
    ) {
        let written = json!({"apiVersion": V1, "command": command, "args": args, "env": [{"name": name, "value": value}]});
        let runnable = |text: &str| !text.contains('\0');
        let fits = !command.is_empty()
            && !command.chars().any(char::is_control)
            && args.iter().all(|arg| runnable(arg))
            && !name.is_empty() && !name.contains('=') && runnable(&name) && runnable(&value);
        prop_assert_eq!(ExecConfig::parse(written.to_string().as_bytes()).is_ok(), fits);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = ExecConfig::parse(&bytes);
    }
}
