use super::*;
use crate::args::parse_from;

fn config(hub: bool, arguments: &[&str]) -> (TunnelConfig, Vec<String>, Vec<String>) {
    let (mut wrong, mut warnings) = (Vec::new(), Vec::new());
    let args = parse_from([&["cluster-gateway"], arguments].concat()).expect("known flags");
    let config = args.tunnel.config(hub, &mut wrong, &mut warnings);
    (config, wrong, warnings)
}

fn hosts(arguments: &[&str]) -> Vec<(String, u16)> {
    let (config, wrong, _) = config(true, arguments);
    assert!(wrong.is_empty(), "{wrong:?}");
    config.remote.expect("there are tunnel-servers").hosts
}

#[test]
fn there_is_no_tunnel_unless_asked_for() {
    for arguments in [&[][..], &["--proxy-host="], &["--proxy-port=9000"]] {
        let (config, wrong, warnings) = config(false, arguments);
        assert!(config.remote.is_none() && config.embedded.is_none(), "{arguments:?}");
        assert!(wrong.is_empty() && warnings.is_empty(), "{arguments:?}: {wrong:?} {warnings:?}");
    }
}

#[test]
fn hosts_have_the_port_of_all_or_their_own() {
    let host = |host: &str, port| (host.to_owned(), port);
    assert_eq!(hosts(&["--proxy-host=tunnel.vela-system"]), [host("tunnel.vela-system", 8090)]);
    assert_eq!(
        hosts(&["--proxy-host=a.example,10.0.0.1:9000,[fd00::1]:9001,fd00::2,[fd00::3]", "--proxy-port=7000"]),
        [
            host("a.example", 7000),
            host("10.0.0.1", 9000),
            host("fd00::1", 9001),
            host("fd00::2", 7000),
            host("fd00::3", 7000)
        ]
    );
}

#[test]
fn what_is_no_host_is_named() {
    for text in ["a b", "host:0", "host:port", "[fd00::1", "host:70000", "[x]:1", "https://tunnel"] {
        let (_, wrong, _) = config(true, &[&format!("--proxy-host={text}")]);
        assert!(wrong.iter().any(|wrong| wrong.contains("--proxy-host") && wrong.contains(text)), "{text}: {wrong:?}");
    }
}

#[test]
fn a_certificate_needs_its_key() {
    for (given, missing) in [("--proxy-cert=c", "--proxy-key"), ("--proxy-key=k", "--proxy-cert")] {
        let (_, wrong, _) = config(true, &["--proxy-host=a", given]);
        assert!(wrong.len() == 1 && wrong[0].starts_with(missing), "{wrong:?}");
    }
}

#[test]
fn what_has_no_effect_or_cannot_work_is_warned_of() {
    let warned = |arguments: &[&str]| config(true, arguments).2.join("\n");
    assert!(warned(&["--proxy-ca-cert=ca"]).contains("without --proxy-host"));
    assert!(warned(&["--proxy-host=a"]).contains("client certificate"));
    assert_eq!(warned(&["--proxy-host=a", "--proxy-cert=c", "--proxy-key=k"]), "");
}

#[test]
fn agents_must_be_able_to_prove_who_they_are() {
    let listen = "--tunnel-listen=127.0.0.1:0";
    let (_, wrong, _) = config(false, &[listen]);
    assert!(wrong[0].contains("--tunnel-client-ca-file"), "{wrong:?}");
    assert!(config(true, &[listen]).1.is_empty(), "the hub knows tokens");
    let (config, wrong, _) = config(false, &[listen, "--tunnel-client-ca-file=ca", "--tunnel-drain-timeout=7s"]);
    assert!(wrong.is_empty(), "{wrong:?}");
    let embedded = config.embedded.expect("a listener");
    assert_eq!(embedded.drain_timeout, Some(Duration::from_secs(7)));
    assert!(embedded.serving.is_none());
}

#[test]
fn files_for_agents_need_a_listener() {
    let arguments = ["cluster-gateway", "--tunnel-client-ca-file=ca"];
    assert!(parse_from(arguments).unwrap_err().to_string().contains("--tunnel-listen"));
}

#[test]
fn links_cannot_live_without_time_for_a_sign_of_life() {
    let (_, wrong, _) = config(true, &["--tunnel-keepalive=0s", "--tunnel-keepalive-timeout=0s"]);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}
