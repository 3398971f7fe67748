use clap::CommandFactory as _;

use super::*;

const GOOD: [&str; 3] = ["--cluster=c1", "--server=tunnel.example:8091", "--token-file=token"];

fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
    let args = parse_from([&["tunnel-agent"], arguments].concat()).map_err(|error| error.to_string())?;
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Config::new(&args, variable).map_err(|error| error.to_string())
}

#[test]
fn all_mistakes_are_named_at_once() {
    let error =
        config(&["--links=0", "--allow=10.1.2.3/8", "--proxy-url=ftp://p", "--dial-timeout=0"], &[]).unwrap_err();
    for part in [
        "--cluster is required",
        "--server is required",
        "--links must be from 1 to 8",
        "a credential is required",
        "--proxy-url: ",
        "--api-server is required outside a pod",
        "--allow=10.1.2.3/8: bits are set beyond the prefix: 10.0.0.0",
        "--dial-timeout must be greater than 0",
    ] {
        assert!(error.contains(part), "{part} missing in: {error}");
    }
}

#[test]
fn a_pods_api_server_is_known_and_has_a_ca_of_its_own() {
    let pod = [("KUBERNETES_SERVICE_HOST", "fd00::1"), ("KUBERNETES_SERVICE_PORT", "443")];
    assert_eq!(config(&GOOD, &pod).unwrap().api_server.place.to_string(), "[fd00::1]:443");
    let given = config(&[&GOOD[..], &["--api-server=10.0.0.1:6443"]].concat(), &pod).unwrap();
    assert_eq!((given.api_server.place.to_string(), given.api_server.ca), ("10.0.0.1:6443".to_owned(), None));
}

#[test]
fn exactly_one_credential_is_taken() {
    let with = |credential: &[&str]| {
        config(&[&["--cluster=c1", "--server=s:1", "--api-server=a:1"], credential].concat(), &[])
    };
    assert!(with(&["--token-file=t"]).unwrap().files.identity.is_none());
    assert!(with(&["--cert-file=c", "--key-file=k"]).unwrap().files.identity.is_some());
    for (credential, why) in [
        (&["--cert-file=c"][..], "needs --key-file"),
        (&["--key-file=k"], "needs --cert-file"),
        (&["--token-file=t", "--cert-file=c", "--key-file=k"], "give one of them"),
        (&[], "a credential is required"),
    ] {
        let error = with(credential).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn lists_are_separated_by_commas_and_twice_is_a_mistake() {
    let with = |extra: &[&str]| config(&[&GOOD[..], &["--api-server=a:1"], extra].concat(), &[]);
    assert_eq!(with(&["--server=two.example:1,[::1]:2"]).unwrap().servers.len(), 3);
    assert!(with(&["--server=tunnel.example:8091"]).unwrap_err().contains("is given twice"));
    assert!(
        with(&["--server=tunnel.example"]).unwrap_err().contains("--server=tunnel.example: the authority has no port")
    );
    assert!(with(&["--cluster=C1"]).is_err());
}

#[test]
fn a_proxys_password_is_not_shown() {
    let arguments = [&GOOD[..], &["--api-server=a:1", "--proxy-url=http://jane:hunter2@p:1"]].concat();
    let args = parse_from([&["tunnel-agent"], &arguments[..]].concat()).unwrap();
    let shown = format!("{args:?} {:?}", Config::new(&args, |_| None).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_flags_are_those_that_charts_rely_on() {
    let command = Args::command();
    let mut names: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    names.sort_unstable();
    let names = names.join(" ");
    assert_eq!(
        names,
        "admin-listen allow api-server bootstrap-kubeconfig cert-file cluster credential-service-account dial-timeout drain-timeout keepalive \
         keepalive-timeout key-file kubeconfig links log-format log-level max-held-bytes member-api-url proxy-ca-file \
         proxy-url register server server-ca-file server-name state-dir state-secret threads token-file"
    );
}

#[test]
fn who_joins_needs_no_credential_and_gets_none_beside() {
    let joins = ["--cluster=c1", "--server=a:1", "--api-server=b:1", "--register", "--bootstrap-kubeconfig=boot"];
    let with = |more: &[&str]| config(&[&joins[..], more].concat(), &[]);
    let good = with(&["--state-dir=state"]).unwrap();
    let identity = good.files.identity.unwrap();
    assert_eq!(identity.certificate, std::path::Path::new("state/tls.crt"));
    assert_eq!(good.join.unwrap().member, Member::Unknown);
    for (more, part) in [
        (&[][..], "--register needs --state-dir, a directory"),
        (&["--state-dir=state", "--token-file=t"], "give no --cert-file, --key-file or --token-file"),
        (&["--state-dir=state", "--member-api-url=http://m"], "is not an https URL"),
        (&["--state-dir=state", "--kubeconfig=k", "--state-secret=only-a-name"], "is not NAMESPACE/NAME"),
        (&["--state-dir=state", "--kubeconfig=k", "--state-secret=a/../b"], "is not NAMESPACE/NAME"),
        (&["--state-dir=state", "--state-secret=a/b"], "give --kubeconfig outside a pod"),
        (&["--state-dir=state", "--credential-service-account=a/b"], "give --kubeconfig outside a pod"),
        (&["--state-dir=state", "--kubeconfig=k", "--credential-service-account=b"], "is not NAMESPACE/NAME"),
    ] {
        let error = with(more).unwrap_err();
        assert!(error.contains(part) && !error.contains("a credential is required"), "{error}");
    }
    let in_secret = || with(&["--kubeconfig=k", "--state-secret=a/b"]).unwrap().join.unwrap();
    assert!(in_secret().is_for_one_run && in_secret().state_dir != in_secret().state_dir);
    let both = with(&["--kubeconfig=k", "--state-secret=a/b", "--state-dir=state"]).unwrap().join.unwrap();
    assert!(!both.is_for_one_run && both.state_dir == std::path::Path::new("state"));
    let name = format!("--cluster={}", "a".repeat(64));
    let error = config(
        &["--server=a:1", "--api-server=b:1", "--register", "--bootstrap-kubeconfig=b", "--state-dir=s", &name],
        &[],
    );
    assert!(error.unwrap_err().contains("becomes a namespace"));
    assert!(
        config(&[&GOOD[..], &["--api-server=b:1", "--state-dir=s"]].concat(), &[]).is_err(),
        "only with --register"
    );
}

#[test]
fn the_last_value_of_a_flag_is_taken_and_lists_add() {
    let twice = ["--links=2", "--api-server=a:1", "--links=4", "--api-server=b:2", "--server=other.example:443"];
    let args = parse_from([&["tunnel-agent"], &GOOD[..], &twice].concat()).unwrap();
    assert_eq!((args.servers.links, args.destinations.api_server.as_deref()), (4, Some("b:2")));
    assert_eq!(args.servers.server, ["tunnel.example:8091", "other.example:443"]);
}
