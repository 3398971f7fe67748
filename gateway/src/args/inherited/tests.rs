//! Tests whole command lines of existing charts, each flag of the Go cluster-gateway, and pflag's
//! spellings.

use clap::CommandFactory;

use super::{FlagValue, table, take};
use crate::args::{Args, Config, parse_from};

fn parsed(arguments: &[&str]) -> Result<Args, String> {
    parse_from([&["cluster-gateway"], arguments].concat()).map_err(|error| error.to_string())
}

/// The flags that are reported as having no effect.
fn idle(arguments: &[&str]) -> Vec<String> {
    parsed(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}")).inherited
}

/// The arguments that are left for clap.
fn left(arguments: &[&str]) -> Vec<String> {
    let arguments = [&["cluster-gateway"], arguments].concat();
    let taken = take(arguments, &mut Args::command()).expect("taken");
    taken.arguments[1..].iter().map(|argument| argument.to_str().expect("text").to_owned()).collect()
}

const SERVING: [&str; 2] = ["--tls-cert-file=/etc/certs/tls.crt", "--tls-private-key-file=/etc/certs/tls.key"];

#[test]
fn kubevelas_chart_starts() {
    let arguments = [
        "apiserver",
        "--secure-port=9443",
        "--secret-namespace=vela-system",
        "--feature-gates=APIPriorityAndFairness=false,ClientIdentityPenetration=true",
        "--cluster-gateway-proxy-config=/etc/proxy-config/config.yaml",
        SERVING[0],
        SERVING[1],
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    ];
    let args = parsed(&arguments).expect("parsed");
    assert_eq!(args.inherited, [""; 0]);
    let config = Config::try_from(args).expect("a configuration");
    assert_eq!(config.listen.port(), 9443);
    assert!(config.auth.authorization.always_allow_paths.contains(&"/metrics".to_owned()));
}

#[test]
fn the_standalone_chart_starts() {
    let arguments = [
        "--secure-port=9443",
        "--secret-namespace=open-cluster-management-credentials",
        "--ocm-integration=false",
        "--tls-cert-file=/etc/server/tls.crt",
        "--tls-private-key-file=/etc/server/tls.key",
        "--proxy-host=proxy-entrypoint.open-cluster-management-cluster-proxy",
        "--proxy-port=8090",
        "--proxy-ca-cert=/etc/ca/ca.crt",
        "--proxy-cert=/etc/tls/tls.crt",
        "--proxy-key=/etc/tls/tls.key",
        "--feature-gates=HealthinessCheck=true,SecretCache=true",
    ];
    let args = parsed(&arguments).expect("parsed");
    assert_eq!(args.inherited, [""; 0]);
    let config = Config::try_from(args).expect("a configuration");
    let remote = config.tunnel.remote.expect("tunnel-servers");
    assert_eq!(remote.hosts, [("proxy-entrypoint.open-cluster-management-cluster-proxy".to_owned(), 8090)]);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn the_addons_deployment_starts() {
    let arguments = [
        "--secure-port=9443",
        "--secret-namespace=open-cluster-management-credentials",
        "--ocm-integration=true",
        "--tls-cert-file=/etc/server/tls.crt",
        "--tls-private-key-file=/etc/server/tls.key",
        "--feature-gates=HealthinessCheck=true,SecretCache=true",
        "--proxy-host=proxy-entrypoint.open-cluster-management-addon",
        "--proxy-port=8090",
    ];
    Config::try_from(parsed(&arguments).expect("parsed")).expect("a configuration");
}

/// Each `name`, followed by `=` and a value for flags that need one.
const FLAGS_OF_THE_GO_GATEWAY: &str = include_str!("tests/go_cluster_gateway.txt");

#[test]
fn every_flag_of_the_go_cluster_gateway_is_accepted() {
    let flags: Vec<_> = FLAGS_OF_THE_GO_GATEWAY.lines().collect();
    assert_eq!(flags.len(), 112);
    for flag in &flags {
        parsed(&[flag]).unwrap_or_else(|error| panic!("{flag}: {error}"));
        // Charts spell klog's flags like klog.
        parsed(&[&format!("--{}", flag[2..].replacen('-', "_", 1))]).unwrap_or_else(|error| panic!("{flag}: {error}"));
    }
    let together = parsed(&flags).expect("all at once");
    let ours = Args::command();
    for argument in ours.get_arguments().filter_map(|argument| argument.get_long()) {
        assert!(!together.inherited.contains(&format!("--{argument}")), "--{argument} has an effect");
    }
}

#[test]
fn every_inherited_flag_is_named_once() {
    let written: Vec<_> = table::ALL
        .iter()
        .map(|flag| match flag.takes {
            FlagValue::Boolean => format!("--{}", flag.name),
            FlagValue::Value => format!("--{}=x", flag.name),
            FlagValue::As(_) => format!("--{}=json", flag.name),
        })
        .collect();
    let twice: Vec<_> = written.iter().chain(&written).map(String::as_str).collect();
    let expected = table::ALL.iter().filter(|flag| !matches!(flag.takes, FlagValue::As(_)));
    assert_eq!(idle(&twice), expected.map(|flag| format!("--{}", flag.name)).collect::<Vec<_>>());
}

#[test]
fn what_has_an_effect_is_not_inherited() {
    let ours = Args::command();
    for flag in table::ALL {
        let taken = ours.get_arguments().any(|argument| argument.get_long() == Some(flag.name));
        assert!(!taken, "--{} is a flag of ours: drop it from the table", flag.name);
        if let FlagValue::As(name) = flag.takes {
            assert!(
                ours.get_arguments().any(|argument| argument.get_long() == Some(name)),
                "--{name} is no flag of ours"
            );
        }
    }
}

#[test]
fn flags_are_spelled_as_pflag_has_them() {
    for (arguments, rest) in [
        (&["--etcd-servers=a", "--drain-timeout=1s"][..], &["--drain-timeout=1s"][..]),
        (&["--etcd-servers", "a", "--drain-timeout", "1s"], &["--drain-timeout", "1s"]),
        (&["--etcd-servers", "--standalone"], &[]),
        (&["--etcd_servers", "a"], &[]),
        (&["--log_dir=/x", "--drain_timeout=1s"], &["--drain-timeout=1s"]),
        (&["--etcd-servers=", "a_b"], &["a_b"]),
        // A boolean has its value after `=`, or none.
        (&["--profiling", "apiserver"], &["apiserver"]),
        (&["--profiling=false", "--logtostderr=T"], &[]),
        (&["--logging-format", "json"], &["--log-format=json"]),
        (&["--logging_format=text"], &["--log-format=text"]),
        (&["-v=4", "-v8", "-v", "2"], &["--v=4", "--v=8", "--v", "2"]),
        (&["--", "--profiling"], &["--", "--profiling"]),
        (&["-profiling"], &["-profiling"]),
    ] {
        assert_eq!(left(arguments), rest, "{arguments:?}");
    }
}

#[test]
fn our_own_booleans_are_written_as_in_go() {
    for (argument, expected) in [
        ("--standalone", true),
        ("--standalone=true", true),
        ("--standalone=1", true),
        ("--standalone=F", false),
        ("--standalone=false", false),
    ] {
        assert_eq!(parsed(&[argument]).expect(argument).standalone.standalone, expected, "{argument}");
    }
    assert!(!parsed(&["--anonymous-auth=f"]).expect("off").authentication.anonymous_auth);
    assert!(parsed(&[]).expect("the default").authentication.anonymous_auth);
    assert!(parsed(&["--standalone=maybe"]).unwrap_err().contains("write true or false"));
}

#[test]
fn a_boolean_whose_value_stands_apart_stops_the_start() {
    for (arguments, advice) in [
        (&["--anonymous-auth", "false"][..], "--anonymous-auth=false"),
        (&["apiserver", "--authorize_proxy_subpath", "1", "--secure-port=1"], "--authorize-proxy-subpath=1"),
        (&["--expose-credentials", "F", "--"], "--expose-credentials=F"),
    ] {
        let error = parsed(arguments).unwrap_err();
        assert!(error.contains(&format!("write '{advice}'")), "{arguments:?}: {error}");
    }
    for harmless in [
        &["--standalone", "apiserver"][..],
        &["--standalone=true", "false"],
        &["--profiling", "false"],
        &["--secret-namespace", "true"],
        &["--standalone", "--", "false"],
        &["--", "--standalone", "false"],
    ] {
        parsed(harmless).unwrap_or_else(|error| panic!("{harmless:?}: {error}"));
    }
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    let args = parsed(&["--secure-port=1", "--secure-port=2", "--profiling", "--profiling=false"]).expect("parsed");
    assert_eq!(args.serving.secure_port, 2);
    assert_eq!(args.inherited, ["--profiling"]);
    let lists = parsed(&["--requestheader-allowed-names=a,b", "--requestheader-allowed-names=c"]).expect("parsed");
    assert_eq!(lists.authentication.requestheader_allowed_names, ["a", "b", "c"], "lists grow");
}

#[test]
fn mistakes_are_explained() {
    for (arguments, parts) in [
        (&["--drain-timeot=1s"][..], &["--drain-timeot", "--drain-timeout"][..]),
        (&["--no-such-flag"], &["unexpected argument", "--no-such-flag"]),
        (&["--etcd-servers"], &["a value is required", "--etcd-servers"]),
        (&["--profiling=maybe"], &["invalid value 'maybe'", "--profiling", "true or false"]),
        (&["--logging-format=xml"], &["--log-format", "xml"]),
        (&["-profiling"], &["unexpected argument"]),
    ] {
        let error = parsed(arguments).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{part:?} missing in: {error}");
        }
    }
}

#[test]
fn help_tells_of_them_in_one_line() {
    let help = parsed(&["--help"]).unwrap_err();
    assert!(help.contains("Also accepted, without effect"), "{help}");
    for flag in table::ALL.iter().filter(|flag| flag.name.starts_with("etcd-")) {
        assert!(!help.contains(flag.name), "{}", flag.name);
    }
}
