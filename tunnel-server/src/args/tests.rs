use clap::CommandFactory as _;
use telemetry::flags::with_environment;

use super::*;

const AGENTS: [&str; 3] =
    ["--agent-tls-cert-file=a.crt", "--agent-tls-private-key-file=a.key", "--agent-client-ca-file=a-ca.crt"];
const FRONTENDS: [&str; 3] =
    ["--frontend-tls-cert-file=f.crt", "--frontend-tls-private-key-file=f.key", "--frontend-client-ca-file=f-ca.crt"];

fn config_in(arguments: &[&str], in_pod: bool) -> Result<Config, String> {
    let args = parse_from([&["tunnel-server"], arguments].concat()).map_err(|error| error.to_string())?;
    Config::new(args, in_pod).map_err(|error| error.to_string())
}

fn config(arguments: &[&str]) -> Result<Config, String> {
    config_in(arguments, false)
}

#[test]
fn the_documented_defaults() {
    let config = config(&[AGENTS, FRONTENDS].concat()).unwrap();
    let tls = config.frontends.tls.unwrap();
    let addresses = [config.agents.listen, tls.listen, config.admin_listen].map(|address| address.to_string());
    assert_eq!(addresses, ["0.0.0.0:8091", "0.0.0.0:8090", "127.0.0.1:8095"]);
    assert_eq!((config.hub, config.frontends.uds, config.default_cluster), (HubConfig::None, None, None));
    let times = [
        config.dial_timeout,
        config.agents.settings.keepalive,
        config.agents.settings.keepalive_timeout,
        config.drain_timeout,
        config.agents.recheck,
        config.shutdown_delay,
    ];
    assert_eq!(times.map(|time| time.as_secs()), [10, 10, 10, 30, 30, 0]);
    assert_eq!(config.max_held_bytes, 512 << 20);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let told = config(&["--frontend-listen=127.0.0.1:1", "--default-cluster=Prod", "--keepalive=0s"]).unwrap_err();
    for part in [
        "--agent-client-ca-file (agents with client certificates)",
        "--agent-tls-cert-file and --agent-tls-private-key-file",
        "--frontend-tls-cert-file, --frontend-tls-private-key-file and --frontend-client-ca-file",
        "--default-cluster=Prod: a cluster's name must consist of",
        "--keepalive must be greater than 0",
    ] {
        assert!(told.contains(part), "{part}\nmissing in\n{told}");
    }
}

#[test]
fn agents_need_an_authority_and_a_hub_is_one() {
    let without = [&AGENTS[..2], &FRONTENDS].concat();
    assert!(config(&without).unwrap_err().contains("no agent could be authenticated"));
    assert_eq!(config_in(&without, true).unwrap().hub, HubConfig::InCluster);
    let given = [&without[..], &["--kubeconfig=hub.yaml"]].concat();
    assert_eq!(config_in(&given, true).unwrap().hub, HubConfig::Kubeconfig("hub.yaml".into()));
}

#[test]
fn some_frontend_is_needed_and_a_half_given_one_is_a_mistake() {
    let told = config(&AGENTS).unwrap_err();
    assert!(told.contains("no frontend could connect") && told.contains("--frontend-uds"), "{told}");
    let with_uds = [&AGENTS[..], &["--frontend-uds=/run/x.sock"]].concat();
    assert!(config(&with_uds).unwrap().frontends.tls.is_none());
    let told = config(&[&with_uds[..], &FRONTENDS[..1]].concat()).unwrap_err();
    assert!(told.contains("give --frontend-tls-private-key-file and --frontend-client-ca-file too"), "{told}");
}

#[test]
fn one_authority_for_both_sides_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, "the same").unwrap();
        path
    };
    let (agents, frontends) = (write("agents.crt"), write("frontends.crt"));
    let agents = format!("--agent-client-ca-file={}", agents.display());
    let frontends = format!("--frontend-client-ca-file={}", frontends.display());
    let arguments = [&AGENTS[..2], &FRONTENDS[..2], &[agents.as_str(), frontends.as_str()]].concat();
    let warnings = config(&arguments).unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("use two CAs"), "{warnings:?}");
}

#[test]
fn every_flag_is_an_environment_variable_too() {
    let command = with_environment(Args::command(), "TUNNEL_SERVER_");
    for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
        let long = argument.get_long().unwrap_or_default();
        if matches!(long, "help" | "version") {
            continue;
        }
        let variable = format!("TUNNEL_SERVER_{}", long.to_uppercase().replace('-', "_"));
        assert_eq!(argument.get_env().and_then(|name| name.to_str()), Some(variable.as_str()));
    }
}

#[test]
fn the_last_value_of_a_flag_is_taken() {
    let twice = ["--drain-timeout=30s", "--log-level=info", "--drain-timeout=7s", "--log-level=warn"];
    let config = config(&[&AGENTS[..], &FRONTENDS, &twice].concat()).unwrap();
    assert_eq!((config.drain_timeout.as_secs(), config.log_level.as_str()), (7, "warn"));
    let switch = [&AGENTS[..], &FRONTENDS, &["--agent-hub-client-ca", "--agent-hub-client-ca", "--kubeconfig=k"]];
    assert!(parse_from([&["tunnel-server"], &switch.concat()[..]].concat()).unwrap().agents.agent_hub_client_ca);
}
