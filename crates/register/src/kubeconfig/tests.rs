use api::secret::{Credential, ProxyScheme, Trust};
use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::samples::{CANARY, base64, identity, kubeconfig, rules, told};

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut document = kubeconfig();
    change(&mut document);
    document.to_string()
}

fn in_cluster(field: &str, value: impl Into<Value>) -> String {
    with(|document| document["clusters"][0]["cluster"][field] = value.into())
}

fn in_user(field: &str, value: impl Into<Value>) -> String {
    with(|document| document["users"][0]["user"][field] = value.into())
}

fn user(user: Value) -> String {
    with(|document| document["users"][0]["user"] = user)
}

fn read(text: &str) -> Result<ClusterSecret, String> {
    let cluster = cluster(text.as_bytes(), &rules()).map_err(|refused| refused.to_string())?;
    match checked(Reading::Register(Box::new(cluster))) {
        Reading::Register(cluster) => Ok(*cluster),
        other => Err(told(&other)),
    }
}

fn fixed(secret: &ClusterSecret) -> &ConstEndpoint {
    let ClusterEndpoint::Const(fixed) = &secret.endpoint else { panic!("a tunnel") };
    fixed
}

#[test]
fn a_certificate_and_a_bundle_are_taken_over() {
    let secret = read(&kubeconfig().to_string()).unwrap();
    assert_eq!(fixed(&secret).url.to_string(), "https://10.0.0.7:6443");
    assert!(matches!(secret.trust, Trust::Bundle(_)) && matches!(secret.credential, Credential::X509 { .. }));
}

#[test]
fn base_path_port_ipv6_server_name_and_proxy_are_kept() {
    let secret = read(&with(|document| {
        let cluster = &mut document["clusters"][0]["cluster"];
        cluster["server"] = "https://[fd00::7]:8443/clusters/root:org:ws".into();
        cluster["tls-server-name"] = "api.c1".into();
        cluster["proxy-url"] = "socks5://proxy:1080".into();
    }))
    .unwrap();
    assert_eq!(fixed(&secret).url.to_string(), "https://[fd00::7]:8443/clusters/root:org:ws");
    assert_eq!(fixed(&secret).proxy.as_ref().unwrap().scheme, ProxyScheme::Socks5);
    assert_eq!(secret.tls_server_name.as_deref(), Some("api.c1"));
}

#[test]
fn the_current_context_counts_and_the_only_one_without_it() {
    let two = |current: Value| {
        with(|document| {
            document["current-context"] = current;
            let second = json!({"name": "second", "context": {"cluster": "c2", "user": "admin"}});
            document["contexts"].as_array_mut().unwrap().push(second);
            let second = json!({"name": "c2", "cluster": {"server": "https://second"}});
            document["clusters"].as_array_mut().unwrap().push(second);
        })
    };
    assert_eq!(fixed(&read(&two("second".into())).unwrap()).url.host, "second");
    assert_eq!(read(&two(Value::Null)).unwrap_err(), Refused::NoCurrentContext.to_string());
    assert_eq!(read(&two("third".into())).unwrap_err(), Refused::Missing("current-context").to_string());
    assert!(read(&with(|document| document["current-context"] = "".into())).is_ok());
}

#[test]
fn a_token_goes_before_a_certificate() {
    let Credential::Token(token) = read(&in_user("token", CANARY)).unwrap().credential else { panic!("no token") };
    assert_eq!(token.expose_secret(), CANARY);
}

#[test]
fn a_token_that_no_server_takes_fills_no_secret() {
    assert!(read(&in_user("token", "t".repeat(64 << 10))).is_ok());
    let told = read(&in_user("token", "t".repeat((64 << 10) + 1))).unwrap_err();
    assert!(told.contains("longer than 64 KiB"), "{told}");
}

#[test]
fn a_listed_program_is_taken_over_and_no_other() {
    let exec = |command: &str| {
        user(json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command,
            "args": ["get-token"], "env": [{"name": "KEY", "value": CANARY}], "interactiveMode": "Never"}}))
    };
    let Credential::Exec(program) = read(&exec("/plugins/login")).unwrap().credential else { panic!("no program") };
    assert_eq!((program.command.as_str(), program.args.as_slice()), ("/plugins/login", &["get-token".to_owned()][..]));
    for command in ["login", "/plugins/../plugins/login", "/plugins/login ", "/bin/sh"] {
        assert_eq!(read(&exec(command)).unwrap_err(), Refused::ExecCommand.to_string(), "{command}");
    }
}

#[test]
fn arguments_begin_as_listed() {
    let read = |listed: &str, arguments: &[&str]| {
        let text = user(json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws",
            "args": arguments}}));
        let rules = Rules { exec_commands: vec![listed.to_owned()], ..rules() };
        cluster(text.as_bytes(), &rules).is_ok()
    };
    for arguments in [&["eks", "get-token"][..], &["eks", "get-token", "--cluster-name", "c1"]] {
        assert!(read("aws eks get-token", arguments) && read("aws", arguments), "{arguments:?}");
    }
    for arguments in [&[][..], &["eks"], &["s3", "cp"], &["eks get-token"], &["--debug", "eks", "get-token"]] {
        assert!(!read("aws eks get-token", arguments) && !read("", arguments), "{arguments:?}");
    }
}

#[test]
fn a_listed_program_runs_as_the_operator_has_it() {
    for (variable, is_taken) in
        [("PATH", false), ("LD_PRELOAD", false), ("BASH_ENV", false), ("KEY", true), ("KEYS", false)]
    {
        let text = user(json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/plugins/login",
            "env": [{"name": variable, "value": CANARY}]}}));
        match read(&text) {
            Ok(_) => assert!(is_taken, "{variable}"),
            Err(refused) => {
                assert!(!is_taken && refused.starts_with("exec.env sets a variable"), "{variable}: {refused}");
            }
        }
    }
}

#[test]
fn insecure_clusters_need_to_be_allowed() {
    let text = with(|document| {
        document["clusters"][0]["cluster"] = json!({"server": "https://c1", "insecure-skip-tls-verify": true});
    });
    assert!(read(&text).unwrap_err().contains("--allow-insecure"));
    let allowed = Rules { allow_insecure: true, ..rules() };
    assert_eq!(cluster(text.as_bytes(), &allowed).unwrap().trust, Trust::Insecure);
    let both = in_cluster("insecure-skip-tls-verify", true);
    assert!(cluster(both.as_bytes(), &allowed).is_err(), "verified against a bundle, and not at all");
}

/// The file exists, so that a reader that opened it would succeed.
#[test]
fn every_refusal_names_its_field() {
    let foreign = identity().1;
    let here = "/etc/hostname";
    let refused: [(&str, String); 29] = [
        ("certificate-authority names a file", in_cluster("certificate-authority", here)),
        ("client-certificate names a file", in_user("client-certificate", here)),
        ("client-key names a file", in_user("client-key", here)),
        ("tokenFile names a file", in_user("tokenFile", here)),
        ("auth-provider is not supported", in_user("auth-provider", json!({"name": "oidc"}))),
        ("username is not supported", in_user("username", CANARY)),
        ("password is not supported", in_user("password", CANARY)),
        ("as is not supported", in_user("as", "admin")),
        ("as-uid is not supported", in_user("as-uid", "1")),
        ("as-groups is not supported", in_user("as-groups", json!(["system:masters"]))),
        ("as-user-extra is not supported", in_user("as-user-extra", json!({"a": ["b"]}))),
        ("no contexts", with(|document| document["contexts"] = json!([]))),
        (
            "the context's cluster names an entry that is not in the file",
            with(|document| document["clusters"] = Value::Null),
        ),
        ("the context's user names an entry that is not in the file", with(|document| document["users"] = json!([]))),
        ("the context's user is empty", with(|document| document["contexts"][0]["context"]["user"] = Value::Null)),
        ("certificate-authority-data: no certificate", in_cluster("certificate-authority-data", base64(CANARY))),
        ("certificate-authority-data is not base64", in_cluster("certificate-authority-data", "c4n4ry~")),
        ("client-key-data: private key does not fit", in_user("client-key-data", base64(&foreign.key_pem))),
        ("client-key-data: no usable private key", in_user("client-key-data", base64(CANARY))),
        ("client-certificate-data is set without client-key-data", in_user("client-key-data", Value::Null)),
        ("client-key-data is set without", in_user("client-certificate-data", "")),
        ("no credential", user(json!({}))),
        ("exec and another credential", in_user("exec", json!({"command": "/plugins/login"}))),
        ("server is empty", in_cluster("server", Value::Null)),
        ("server: http would send", in_cluster("server", "http://c1")),
        ("server: the URL must not have a user", in_cluster("server", "https://admin:c4n4ry@c1")),
        ("proxy-url: the URL's scheme", in_cluster("proxy-url", "ftp://admin:c4n4ry@proxy")),
        ("tls-server-name", in_cluster("tls-server-name", "c1:6443")),
        ("near line", with(|document| document["users"] = json!(CANARY))),
    ];
    for (expected, text) in refused {
        let refused = read(&text).expect_err(expected);
        assert!(refused.contains(expected) && !refused.contains(CANARY), "{expected}: {refused}");
    }
}

#[test]
fn denied_addresses_are_denied_in_every_spelling() {
    for server in [
        "https://169.254.169.254",
        "https://169.254.169.254:443/latest",
        "https://[::ffff:169.254.169.254]",
        "https://[fe80::1]:6443",
        "https://[FE80:0::1]",
    ] {
        assert_eq!(read(&in_cluster("server", server)).unwrap_err(), Refused::Denied("server").to_string(), "{server}");
    }
    let refused = read(&in_cluster("proxy-url", "http://169.254.169.254:3128")).unwrap_err();
    assert_eq!(refused, Refused::Denied("proxy-url").to_string());
    // Spellings that resolvers read differently.
    for server in ["https://169.254.43518", "https://0xa9fea9fe", "https://2852039166"] {
        assert!(read(&in_cluster("server", server)).is_err(), "{server}");
    }
}

#[test]
fn nothing_leads_back_to_the_gateway() {
    for server in [
        "https://gateway.example:9443",
        "https://GATEWAY.example:9443/anything",
        "https://hub/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy",
        "https://hub/base/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy/",
        "https://hub/apis/cluster.core.oam.dev/v1alpha1/cluster%67ateways/c1/proxy",
        "https://hub//apis/cluster.core.oam.dev//v1alpha1/clustergateways/c1/proxy",
    ] {
        assert_eq!(read(&in_cluster("server", server)).unwrap_err(), Refused::Loop("server").to_string(), "{server}");
    }
    assert!(read(&in_cluster("server", "https://gateway.example:6443")).is_ok(), "another port is another server");
}

#[test]
fn yaml_that_says_a_thing_twice_is_an_error() {
    let token = |users: &str| {
        format!(
            "clusters: [{{name: a, cluster: {{server: 'https://m'}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n{users}"
        )
    };
    assert!(read(&token("users: [{name: a, user: {token: t}}]\n")).is_ok());
    for users in [
        "users: [{name: a, user: {token: t, token: c4n4ry}}]\n",
        "users: [{name: a, user: {token: t}}]\nusers: []\n",
        "users: &u [{name: a, user: {token: c4n4ry}}]\n",
        "x: &t c4n4ry\nusers: [{name: a, user: {token: *t}}]\n",
        "users: [{name: a, user: {token: c4n4ry}}]\n---\nusers: []\n",
    ] {
        let refused = read(&token(users)).expect_err(users);
        assert!(refused.contains("near line") && !refused.contains(CANARY), "{users}: {refused}");
    }
}

#[test]
fn what_is_too_large_or_no_text_is_refused_at_once() {
    assert!(read(&" ".repeat(MOST_BYTES + 1)).unwrap_err().contains("larger than 256 KiB"));
    let bomb = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(&bomb).unwrap_err().contains("near line"));
    assert_eq!(cluster(b"\xff\xfe", &rules()).unwrap_err().to_string(), Refused::NotText.to_string());
    assert!(read("").is_err());
}

#[test]
fn contexts_by_the_thousand_are_no_trouble() {
    let text = with(|document| {
        let one = document["contexts"][0].clone();
        document["contexts"] = (0..1000).map(|n| json!({"name": format!("c{n}"), "context": one["context"]})).collect();
        document["current-context"] = "c999".into();
    });
    assert!(read(&text).is_ok());
}

proptest! {
    /// With fields in any place, no outcome repeats a credential's value.
    #[test]
    fn no_refusal_repeats_a_credential(fields in proptest::collection::vec((0..FIELDS.len(), 0..VALUES.len()), 0..6)) {
        let text = with(|document| {
            for (field, value) in fields {
                let (part, field) = FIELDS[field];
                let value: Value = serde_json::from_str(VALUES[value]).unwrap();
                match part {
                    "" => document[field] = value,
                    part => document[format!("{part}s")][0][part][field] = value,
                }
            }
        });
        if let Err(refused) = read(&text) {
            prop_assert!(!refused.contains(CANARY), "{refused}");
        }
    }
}

const FIELDS: [(&str, &str); 16] = [
    ("", "current-context"),
    ("cluster", "server"),
    ("cluster", "tls-server-name"),
    ("cluster", "proxy-url"),
    ("cluster", "certificate-authority-data"),
    ("cluster", "insecure-skip-tls-verify"),
    ("context", "cluster"),
    ("context", "user"),
    ("user", "token"),
    ("user", "client-key-data"),
    ("user", "client-certificate-data"),
    ("user", "exec"),
    ("user", "username"),
    ("user", "tokenFile"),
    ("user", "as"),
    ("user", "auth-provider"),
];

const VALUES: [&str; 9] = [
    "null",
    "\"\"",
    "\"c4n4ry\"",
    "\"c4n4ry\\n\"",
    "\"YzRuNHJ5\"",
    "true",
    "[\"c4n4ry\"]",
    "{\"c4n4ry\": \"c4n4ry\"}",
    "\"https://u:c4n4ry@h\"",
];
