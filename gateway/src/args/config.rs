//! Converts arguments to a consistent configuration, and reports all mistakes at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::access::Verb;
use api::cluster_gateway::Credentials;
use api::secret::{self, SecretRules};
use net::listen::Sharing;
use register::endpoints::{DENIED, Endpoints};
use telemetry::flags::InvalidConfig;

use super::serving::{CertificateNames, MainFiles};
use super::{Args, Members, MissingCa, UpgradeVerb};
use crate::config::{Config, Gates, Source};
use crate::exchange;
use crate::needs::Settings;
use crate::probes::Probing;
use crate::serving::Serving;

// === impl Config ===

impl TryFrom<Args> for Config {
    type Error = InvalidConfig;

    fn try_from(args: Args) -> Result<Self, InvalidConfig> {
        let mut wrong = Vec::new();
        let source = source(&args, &mut wrong);
        let exec = args.dynamic.options(&mut wrong);
        let (gates, without_effect, mut warnings) = gates(&args, &mut wrong);
        debug_mode(&args, &mut wrong, &mut warnings);
        warnings.extend(args.audit.warnings());
        warnings.extend(args.dialects.warnings(!args.standalone.standalone));
        let karmada_upstream = args.dialects.karmada_upstream(&mut wrong);
        let serving = serving(&args, &mut wrong, &mut warnings);
        let tracing = args.tracing.config(&mut wrong, &mut warnings);
        let settings = settings(&args, &mut wrong);
        let tunnel = args.tunnel.config(!args.standalone.standalone, &mut wrong, &mut warnings);
        if !wrong.is_empty() {
            return Err(InvalidConfig(wrong));
        }
        let standalone = args.standalone.standalone;
        Ok(Self {
            listen: SocketAddr::new(args.serving.bind_address, args.serving.secure_port),
            karmada_upstream,
            serving,
            sharing: if args.serving.permit_port_sharing { Sharing::Permitted } else { Sharing::Refused },
            threads: threads(args.serving.serving_threads),
            shutdown_delay: args.serving.shutdown_delay_duration.unwrap_or(if standalone {
                Duration::ZERO
            } else {
                Duration::from_secs(5)
            }),
            drain_timeout: args.serving.drain_timeout,
            source,
            rules: rules(&args.members),
            dial_timeout: args.members.dial_timeout,
            exec,
            tunnel,
            circuit_failures: args.members.circuit_failures,
            probing: Probing {
                interval: args.members.health_probe_interval,
                timeout: args.members.health_probe_timeout,
            },
            proxy_ca_file: args.members.proxy_ca_file.clone(),
            settings,
            served: args.dialects.served(),
            user_server: args.dialects.ocm_user_server_listen,
            credentials: if args.hub.expose_credentials { Credentials::Exposed } else { Credentials::Redacted },
            log_format: args.logs.log_format.into(),
            log_level: log_level(&args),
            audit: args.audit.config(),
            tracing,
            caps: args.limits.caps(),
            held_bytes: args.limits.held_bytes(),
            ocm_proxy_metrics: args.audit.ocm_proxy_metrics,
            exchange: exchange::Options { forwarded: args.dialects.forwarded(), ..args.identity.options(gates) },
            user_agent: args.hub.user_agent.clone(),
            auth: auth_config(args),
            gates,
            without_effect,
            warnings,
        })
    }
}

fn settings(args: &Args, wrong: &mut Vec<String>) -> Settings {
    let denied = DENIED.split(',').filter_map(|network| network.parse().ok()).collect();
    Settings {
        endpoints: Endpoints { denied, own: args.dialects.own_endpoints(wrong), ..Endpoints::default() },
        upgrade_verb: match args.authorization.upgrade_verb {
            UpgradeVerb::Create => Verb::Create,
            UpgradeVerb::Get => Verb::Get,
        },
        authorize_subpath: args.authorization.authorize_proxy_subpath,
        cluster_names: args.dialects.cluster_names(),
        max_streams: args.serving.http2_max_streams_per_connection,
    }
}

fn rules(members: &Members) -> SecretRules {
    SecretRules {
        allow_http: members.allow_http_endpoints,
        missing_ca: match members.missing_ca {
            MissingCa::System => secret::MissingCa::SystemRoots,
            MissingCa::Insecure => secret::MissingCa::Insecure,
        },
    }
}

fn serving(args: &Args, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Serving {
    let main = MainFiles {
        certificate: args.serving.tls_cert_file.as_ref(),
        private_key: args.serving.tls_private_key_file.as_ref(),
    };
    let reached = CertificateNames { address: args.serving.bind_address, namespace: &args.hub.secret_namespace };
    args.serving_tls.parse(&main, &reached, wrong, warnings)
}

fn source(args: &Args, wrong: &mut Vec<String>) -> Source {
    let (hub, standalone) = (&args.hub, &args.standalone);
    if standalone.standalone {
        if standalone.clusters_dir.is_none() && standalone.clusters_from_kubeconfig.is_none() {
            wrong.push("--standalone needs --clusters-dir or --clusters-from-kubeconfig, or both".into());
        }
        if hub.kubeconfig.is_some() {
            wrong.push("--kubeconfig names a hub, but --standalone runs without one: remove one of the two".into());
        }
        return Source::Standalone {
            directory: standalone.clusters_dir.clone(),
            kubeconfig: standalone.clusters_from_kubeconfig.clone(),
        };
    }
    if hub.secret_namespace.is_empty() {
        wrong.push("--secret-namespace must not be empty".into());
    }
    let or_main = |path: &Option<PathBuf>| path.clone().or_else(|| hub.kubeconfig.clone());
    Source::Hub {
        namespace: hub.secret_namespace.clone(),
        ocm: hub.ocm_integration,
        secrets: hub.kubeconfig.clone(),
        authentication: or_main(&args.authentication.authentication_kubeconfig),
        authorization: or_main(&args.authorization.authorization_kubeconfig),
    }
}

/// The gates, other arguments without effect, and warnings about likely mistakes.
fn gates(args: &Args, wrong: &mut Vec<String>) -> (Gates, Vec<String>, Vec<String>) {
    let parsed = Gates::parse(&args.hub.feature_gates);
    let form = |gate: &String| format!("--feature-gates: {gate:?} is not of the form Gate=true or Gate=false");
    wrong.extend(parsed.malformed.iter().map(form));
    let (passed, stray): (Vec<_>, Vec<_>) = args.positional.iter().partition(|word| *word == "apiserver");
    let mut idle: Vec<_> = passed.iter().map(|word| format!("argument {word:?}")).collect();
    idle.extend(args.inherited.iter().cloned());
    idle.extend(parsed.idle.iter().map(|gate| format!("feature gate {gate}")));
    let stray = stray
        .iter()
        .map(|word| format!("argument {word:?} has no effect: if it is a flag's value, write --flag={word}"));
    let unknown = |gate: &String| format!("feature gate {gate} is unknown and has no effect");
    let warnings = stray.chain(parsed.unknown.iter().map(unknown)).collect();
    (parsed.gates, idle, warnings)
}

/// Allows every request, so only for requests from this machine.
fn debug_mode(args: &Args, wrong: &mut Vec<String>, warnings: &mut Vec<String>) {
    if !args.authorization.standalone_debug_mode {
        return;
    }
    let also = args.dialects.ocm_user_server_listen;
    if also.is_some_and(|address| !address.ip().is_loopback()) {
        wrong.push(
            "--standalone-debug-mode needs an address of 127.0.0.1 or ::1 in --ocm-user-server-listen too: it allows \
             every request of every caller"
                .into(),
        );
    }
    if args.serving.bind_address.is_loopback() {
        warnings.push("--standalone-debug-mode: EVERY USER of this machine may do EVERYTHING on every cluster".into());
    } else {
        wrong.push(
            "--standalone-debug-mode needs --bind-address=127.0.0.1 or ::1: it allows every request of every caller"
                .into(),
        );
    }
}

fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        asked => asked,
    }
}

fn log_level(args: &Args) -> String {
    match args.logs.v {
        Some(8..) => "trace".into(),
        Some(4..) => "debug".into(),
        _ => args.logs.log_level.clone(),
    }
}

fn auth_config(args: Args) -> auth::Config {
    let (authentication, authorization) = (args.authentication, args.authorization);
    auth::Config {
        anonymous: authentication.anonymous_auth,
        client_ca_file: authentication.client_ca_file,
        front_proxy: auth::FrontProxyConfig {
            ca_file: authentication.requestheader_client_ca_file,
            allowed_names: authentication.requestheader_allowed_names,
            username_headers: authentication.requestheader_username_headers,
            uid_headers: authentication.requestheader_uid_headers,
            group_headers: authentication.requestheader_group_headers,
            extra_header_prefixes: authentication.requestheader_extra_headers_prefix,
        },
        skip_lookup: authentication.authentication_skip_lookup,
        tolerate_lookup_failure: authentication.authentication_tolerate_lookup_failure,
        token: auth::TokenConfig {
            file: args.standalone.token_auth_file,
            cache_ttl: authentication.authentication_token_webhook_cache_ttl,
        },
        authorization: auth::AuthorizationConfig {
            authorized_ttl: authorization.authorization_webhook_cache_authorized_ttl,
            unauthorized_ttl: authorization.authorization_webhook_cache_unauthorized_ttl,
            always_allow_paths: authorization.authorization_always_allow_paths,
            allow_masters: true,
            allow_everything: authorization.standalone_debug_mode,
            standalone_policy: args.standalone.standalone_policy,
        },
        reviews: auth::ReviewConfig::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_from;

    fn config(arguments: &[&str]) -> Result<Config, String> {
        let args = parse_from([&["cluster-gateway"], arguments].concat()).map_err(|error| error.to_string())?;
        Config::try_from(args).map_err(|error| error.to_string())
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let error = config(&["--feature-gates=Broken", "--standalone", "--tls-cert-file=c", "--tls-min-version=1.2"])
            .unwrap_err();
        for part in ["--tls-min-version", "--tls-private-key-file", "\"Broken\"", "--clusters-dir"] {
            assert!(error.contains(part), "{part} missing in: {error}");
        }
    }

    #[test]
    fn the_arguments_of_kubevelas_chart_start() {
        let config = config(&[
            "apiserver",
            "--secure-port=9443",
            "--secret-namespace=vela-system",
            "--feature-gates=APIPriorityAndFairness=false,ClientIdentityPenetration=true",
            "--tls-cert-file=/etc/k8s-cluster-gateway-certs/tls.crt",
            "--tls-private-key-file=/etc/k8s-cluster-gateway-certs/tls.key",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        ])
        .unwrap();
        assert_eq!(config.listen.port(), 9443);
        assert!(config.gates.client_identity_penetration);
        assert_eq!(config.without_effect.len(), 2, "{:?}", config.without_effect);
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert!(config.auth.authorization.always_allow_paths.contains(&"/metrics".to_owned()));
    }

    #[test]
    fn words_that_nobody_knows_are_warned_of() {
        let config = config(&["apiserver", "--profiling", "false", "server"]).unwrap();
        assert_eq!(config.without_effect, ["argument \"apiserver\"", "--profiling"]);
        let [first, second] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
        assert!(first.contains("\"false\" has no effect") && second.contains("\"server\""), "{first} {second}");
    }

    #[test]
    fn debug_mode_needs_a_loopback_address() {
        let with = |address: &str| {
            config(&["--tls-cert-file=c", "--tls-private-key-file=k", "--standalone-debug-mode", address])
        };
        assert!(with("--bind-address=0.0.0.0").unwrap_err().contains("needs --bind-address=127.0.0.1 or ::1"));
        for address in ["--bind-address=127.0.0.1", "--bind-address=::1"] {
            let config = with(address).unwrap();
            assert!(config.auth.authorization.allow_everything && config.warnings[0].contains("EVERY USER"));
        }
        let and = |address: &str| {
            let files = ["--tls-cert-file=c", "--tls-private-key-file=k", "--bind-address=::1"];
            config(&[&files[..], &["--standalone-debug-mode", address]].concat())
        };
        assert!(and("--ocm-user-server-listen=0.0.0.0:9092").unwrap_err().contains("--ocm-user-server-listen"));
        assert!(and("--ocm-user-server-listen=127.0.0.1:9092").is_ok());
    }

    #[test]
    fn beside_a_karmada_its_server_must_be_known() {
        let tls = ["--tls-cert-file=c", "--tls-private-key-file=k"];
        let with = |more: &[&str]| config(&[&tls[..], more].concat());
        let upstream = "--karmada-upstream=https://karmada.example:5443/base";
        let files = ["--karmada-upstream-ca-file=a", "--karmada-upstream-cert-file=b", "--karmada-upstream-key-file=d"];
        let all = [&["--karmada-dialect=beside", upstream], &files[..]].concat();
        let karmada_upstream = with(&all).unwrap().karmada_upstream.unwrap();
        assert_eq!((karmada_upstream.url.port, &*karmada_upstream.url.base_path), (5443, "/base"));
        for left_out in 1..all.len() {
            let some: Vec<_> =
                all.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, flag)| *flag).collect();
            let error = with(&some).unwrap_err();
            assert!(error.contains("--karmada-dialect=beside needs --karmada-upstream"), "{some:?}: {error}");
        }
        let plain = [&["--karmada-dialect=beside", "--karmada-upstream=http://karmada.example"], &files[..]].concat();
        let error = with(&plain).unwrap_err();
        assert!(error.contains("--karmada-upstream: http would send"), "{error}");
        // Without effect, there is only a warning.
        let config = with(&["--karmada-dialect=standalone", upstream]).unwrap();
        assert!(config.karmada_upstream.is_none());
        assert!(config.warnings[0].contains("--karmada-upstream has no effect"), "{:?}", config.warnings);
    }

    #[test]
    fn one_kubeconfig_serves_all_hub_calls_unless_told_otherwise() {
        let files = ["--tls-cert-file=c", "--tls-private-key-file=k", "--kubeconfig=a", "--authorization-kubeconfig=b"];
        let Source::Hub { secrets, authentication, authorization, .. } = config(&files).unwrap().source else {
            panic!("a kubeconfig means a hub");
        };
        let paths = [secrets, authentication, authorization].map(|path| path.unwrap().display().to_string());
        assert_eq!(paths, ["a", "a", "b"]);
    }
}
