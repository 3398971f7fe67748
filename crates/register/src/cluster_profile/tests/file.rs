//! The providers' file.

use super::*;

fn parse(file: &Value) -> Result<Providers, String> {
    Providers::parse(file.to_string().as_bytes()).map_err(|invalid| invalid.to_string())
}

fn provider(name: &str) -> Value {
    json!({"name": name, "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/plugins/login",
        "args": null, "env": [{"name": "PASSWORD", "value": CANARY}], "provideClusterInfo": true,
        "interactiveMode": "Always"}})
}

#[test]
fn upstreams_example_is_read() {
    let providers = parse(&json!({"providers": [provider("secretreader")], "unknown": 1})).unwrap();
    assert_eq!(providers.commands().collect::<Vec<_>>(), ["/plugins/login"]);
    assert!(!format!("{providers:?}").contains(CANARY));
}

#[test]
fn mistakes_are_told_by_their_place() {
    let policy = |field: &str| {
        let mut provider = provider("a");
        provider[field] = CANARY.into();
        provider
    };
    let exec = |field: &str, value: Value| {
        let mut provider = provider("a");
        provider["execConfig"][field] = value;
        provider
    };
    for (second, expected) in [
        (json!({"name": CANARY}), "providers[1]: execConfig is missing"),
        (json!({"execConfig": {}}), "providers[1]: name is empty"),
        (exec("command", json!("")), "providers[1]: execConfig: key \"exec\": missing \"command\""),
        (exec("apiVersion", json!(CANARY)), "providers[1]: execConfig: key \"exec\": apiVersion must be"),
        (exec("args", json!(CANARY)), "providers[1]: execConfig: key \"exec\" is not the JSON"),
        (policy("profileSourcedCLIArgsPolicy"), "providers[1]: profileSourcedCLIArgsPolicy must be one of Append"),
        (policy("profileSourcedEnvVarsPolicy"), "providers[1]: profileSourcedEnvVarsPolicy must be one of Append"),
        (provider("first"), "providers[1]: an earlier provider has the same name"),
        (json!([CANARY]), "not the JSON of providers, near line 1"),
        (json!({"name": [CANARY]}), "not the JSON of providers, near line 1"),
    ] {
        let invalid = parse(&json!({"providers": [provider("first"), second]})).unwrap_err();
        assert!(invalid.contains(expected) && !invalid.contains(CANARY), "{expected}: {invalid}");
    }
    for file in [json!({}), json!({"providers": []}), json!({"providers": null})] {
        assert_eq!(parse(&file).unwrap_err(), "it has no providers");
    }
    let twice = br#"{"providers": [], "providers": []}"#;
    assert!(matches!(Providers::parse(twice), Err(InvalidProviders::Json { .. })));
    assert!(matches!(Providers::parse(&vec![b' '; (1 << 20) + 1]), Err(InvalidProviders::TooLarge)));
}
