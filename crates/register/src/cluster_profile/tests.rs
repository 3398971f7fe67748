mod file;

use api::secret::Trust;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;
use crate::samples::{CANARY, base64, identity, rules, told, with};

fn cluster(server: &str) -> Value {
    json!({"server": server, "certificate-authority-data": base64(identity().0.certificate_pem())})
}

/// As Open Cluster Management writes it.
fn profile() -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1", "labels": {"team": "a",
            "x-k8s.io/cluster-manager": "open-cluster-management", "multicluster.x-k8s.io/clusterset": "s"}},
        "spec": {"displayName": "c1", "clusterManager": {"name": "open-cluster-management"}},
        "status": {"accessProviders": [{"name": "login", "cluster": cluster("https://10.0.0.7:6443")}]},
    })
}

/// With the provider `login` under these policies.
fn providers(args: &str, env: &str) -> Providers {
    let file = json!({"providers": [
        {"name": "unused", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/other"}},
        {"name": "login", "profileSourcedCLIArgsPolicy": args, "profileSourcedEnvVarsPolicy": env,
            "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/plugins/login",
                "args": ["token"], "env": [{"name": "A", "value": "file"}]}},
        {"name": "second", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "/plugins/login", "provideClusterInfo": true, "interactiveMode": "Always"}},
    ]});
    Providers::parse(file.to_string().as_bytes()).unwrap()
}

fn extended(name: &str, extension: impl Into<Value>) -> Value {
    let extension: Value = extension.into();
    let extensions = json!([{"name": "unknown", "extension": {"a": 1}}, {"name": name, "extension": extension}]);
    with(profile(), "/status/accessProviders/0/cluster/extensions", extensions)
}

fn reading(profile: &Value) -> Reading {
    read(profile, &providers("Append", "Replace"), &rules())
}

fn registered(reading: Reading) -> ClusterSecret {
    match reading {
        Reading::Register(cluster) => *cluster,
        other => panic!("{}", told(&other)),
    }
}

fn exec(cluster: &ClusterSecret) -> &ExecConfig {
    let Credential::Exec(exec) = &cluster.credential else { panic!("no program") };
    exec
}

fn url(cluster: &ClusterSecret) -> String {
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { panic!("a tunnel") };
    fixed.url.to_string()
}

#[test]
fn a_profile_of_another_manager_is_registered_with_its_providers_program() {
    let cluster = registered(reading(&profile()));
    assert_eq!((url(&cluster).as_str(), exec(&cluster).command.as_str()), ("https://10.0.0.7:6443", "/plugins/login"));
    assert_eq!(exec(&cluster).args, ["token"]);
    assert!(matches!(cluster.trust, Trust::Bundle(_)));
    assert_eq!(cluster.labels.into_keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn access_providers_win_by_name_and_the_files_order_decides() {
    let mut both = profile();
    both["status"]["credentialProviders"] = json!([
        {"name": "login", "cluster": cluster("https://deprecated")},
        {"name": "unused", "cluster": cluster("https://unused")},
        {"name": "elsewhere", "cluster": cluster("https://elsewhere")},
    ]);
    let allowed = Rules { exec_commands: vec!["/other".to_owned(), "/plugins/login".to_owned()], ..rules() };
    let read = |profile: &Value| registered(read(profile, &providers("", ""), &allowed));
    assert_eq!(url(&read(&both)), "https://unused", "the first of the file");
    both["status"]["credentialProviders"][1]["name"] = "nobodys".into();
    assert_eq!(url(&read(&both)), "https://10.0.0.7:6443");
    both["status"]["accessProviders"] = json!(null);
    assert_eq!(url(&read(&both)), "https://deprecated");
}

#[test]
fn a_profile_without_a_known_provider_waits() {
    for status in [json!(null), json!({"accessProviders": [{"name": "elsewhere"}]})] {
        let told = told(&reading(&with(profile(), "/status", status)));
        assert!(told.starts_with("waiting: its status names none of the providers"), "{told}");
    }
}

#[test]
fn our_own_profiles_are_not_imported() {
    let own = with(profile(), "/spec/clusterManager/name", "cluster-gateway");
    let labelled = with(profile(), "/metadata/labels/x-k8s.io~1cluster-manager", "cluster-gateway");
    for profile in [own, labelled] {
        assert!(is_own(&profile) && told(&reading(&profile)).contains("this program writes the profile"));
    }
    assert!(!is_own(&profile()));
}

#[test]
fn arguments_are_added_where_the_policy_says_so() {
    let profile = extended(ARGS, json!(["--audience", "a"]));
    let args = |policy: &str| registered(read(&profile, &providers(policy, ""), &rules()));
    assert_eq!(exec(&args("Append")).args, ["token", "--audience", "a"]);
    assert_eq!(exec(&args("Ignore")).args, ["token"]);
    assert_eq!(exec(&args("")).args, ["token"]);
}

#[test]
fn variables_are_set_as_the_policy_says() {
    let profile = extended(ENV, json!({"A": "profile", "B": "profile"}));
    let env = |policy: &str| {
        let cluster = registered(read(&profile, &providers("", policy), &rules()));
        let shown = exec(&cluster).env.iter().map(|(name, value)| format!("{name}={}", value.expose_secret()));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(env("AppendIfNotExists"), ["A=file", "B=profile"]);
    assert_eq!(env("Replace"), ["A=profile", "B=profile"]);
    assert_eq!(env("Ignore"), ["A=file"]);
    assert_eq!(env(""), ["A=file"]);
}

#[test]
fn what_decides_the_program_is_the_operators() {
    for variable in ["PATH", "LD_PRELOAD", "BASH_ENV"] {
        let profile = extended(ENV, json!({variable: CANARY}));
        for policy in ["Replace", "AppendIfNotExists"] {
            let told = told(&read(&profile, &providers("", policy), &rules()));
            assert!(told.contains("decide what is run") && !told.contains(CANARY), "{told}");
        }
        assert_eq!(told(&read(&profile, &providers("", "Ignore"), &rules())), "registered");
    }
    let unlisted = Rules { exec_commands: vec!["/plugins".to_owned()], ..rules() };
    assert!(told(&read(&profile(), &providers("", ""), &unlisted)).contains("not among --exec-commands"));
}

#[test]
fn a_configuration_that_cannot_be_passed_on_is_refused() {
    let told_config = extended(CONFIG, json!({"clusterName": CANARY}));
    assert_eq!(told(&reading(&told_config)), "registered", "the program does not ask for it");
    let asking = with(told_config, "/status/accessProviders/0/name", "second");
    let refused = told(&reading(&asking));
    assert!(refused.contains("provideClusterInfo: false") && !refused.contains(CANARY), "{refused}");
    assert_eq!(told(&reading(&with(profile(), "/status/accessProviders/0/name", "second"))), "registered");
}

#[test]
fn what_makes_no_cluster_is_refused_by_its_field() {
    let in_cluster =
        |field: &str, value: Value| with(profile(), &format!("/status/accessProviders/0/cluster/{field}"), value);
    for (profile, expected) in [
        (with(profile(), "/apiVersion", "multicluster.x-k8s.io/v1beta1"), "(v1alpha1)"),
        (with(profile(), "/kind", "PlacementDecision"), "its kind is not the one"),
        (with(profile(), "/status/accessProviders", CANARY), "status.accessProviders has an unexpected type"),
        (
            with(profile(), "/status/accessProviders/0/name", json!([CANARY])),
            "status.accessProviders has an unexpected type",
        ),
        (with(profile(), "/status/accessProviders/0/cluster", CANARY), "the provider's cluster has an unexpected type"),
        (
            with(profile(), "/status/accessProviders/0/cluster", json!(null)),
            "the provider's cluster has an unexpected type",
        ),
        (in_cluster("server", json!([CANARY])), "the provider's cluster has an unexpected type"),
        (in_cluster("server", json!("")), "server is empty"),
        (in_cluster("server", json!("http://c4n4ry")), "server: http would send"),
        (in_cluster("server", json!("https://gateway.example:9443/c4n4ry")), "server points to the gateway"),
        (
            in_cluster("server", json!("https://h/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c4n4ry/proxy")),
            "server points to the gateway",
        ),
        (in_cluster("server", json!("https://169.254.169.254")), "server is an address that --deny-endpoints"),
        (in_cluster("proxy-url", json!("http://169.254.169.254:1")), "proxy-url is an address that --deny-endpoints"),
        (in_cluster("certificate-authority", json!("/etc/c4n4ry")), "certificate-authority names a file"),
        (in_cluster("certificate-authority-data", json!(base64(CANARY))), "no certificate found"),
        (in_cluster("tls-server-name", json!("c4n4ry:1")), "\"tls-server-name\" must be"),
        (in_cluster("extensions", json!({"c4n4ry": 1})), "extensions has an unexpected type"),
        (in_cluster("extensions", json!([{"name": [CANARY], "extension": 1}])), "extensions has an unexpected type"),
        (extended(ARGS, json!({"c4n4ry": 1})), "additional-args has an unexpected type"),
        (extended(ARGS, json!([1, CANARY])), "additional-args has an unexpected type"),
        (extended(ARGS, json!(["c4n4ry\0"])), "one of the \"args\" has a zero byte"),
        (extended(ENV, json!([CANARY])), "additional-envs has an unexpected type"),
        (extended(ENV, json!({"A": {"c4n4ry": 1}})), "additional-envs has an unexpected type"),
        (extended(ENV, json!({"A=c4n4ry": "a"})), "a variable of \"env\" has no name"),
    ] {
        let told = told(&reading(&profile));
        assert!(
            told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY),
            "{expected}: {told}"
        );
    }
    let mut insecure = in_cluster("insecure-skip-tls-verify", json!(true));
    insecure["status"]["accessProviders"][0]["cluster"]["certificate-authority-data"] = json!(null);
    assert!(told(&reading(&insecure)).contains("--allow-insecure"));
    let named = registered(reading(&in_cluster("tls-server-name", json!("api.c1"))));
    assert_eq!(named.tls_server_name.as_deref(), Some("api.c1"));
}
