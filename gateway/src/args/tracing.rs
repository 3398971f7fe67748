//! Flags of tracing: the settings of kube-apiserver's `TracingConfiguration` file.

use clap::{Args as Group, ValueEnum};
use http::uri::Authority;
use traces::{Config, PerMillion};

#[derive(Debug, Group)]
pub struct Tracing {
    /// HOST:PORT of an OpenTelemetry collector that accepts OTLP over gRPC without TLS; when empty,
    /// nothing is traced
    #[arg(long = "tracing-endpoint", value_name = "HOST:PORT")]
    pub endpoint: Option<String>,
    /// Requests to trace per million, unless a trusted `traceparent` decides
    #[arg(long = "tracing-sampling-rate-per-million", value_name = "NUMBER", default_value = "0")]
    pub sampling_rate_per_million: PerMillion,
    /// Whose `traceparent` to trust and continue: hub, or none if the hub does not trace, because
    /// such a hub forwards its callers' headers
    #[arg(long = "tracing-parent", value_enum, default_value_t = Parent::Hub, value_name = "WHOSE")]
    pub parent: Parent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Parent {
    Hub,
    None,
}

// === impl Tracing ===

impl Tracing {
    /// `None` if tracing is off.
    pub(super) fn config(&self, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Option<Config> {
        // Charts pass the flag with an empty value if there is none.
        let Some(endpoint) = self.endpoint.as_deref().filter(|text| !text.is_empty()) else {
            if self.sampling_rate_per_million != PerMillion::NONE {
                warnings.push("--tracing-sampling-rate-per-million has no effect without --tracing-endpoint".into());
            }
            return None;
        };
        let Some(endpoint) = place(endpoint) else {
            wrong.push(format!("--tracing-endpoint: {endpoint:?} is not HOST:PORT, for example localhost:4317"));
            return None;
        };
        if self.sampling_rate_per_million == PerMillion::NONE && self.parent == Parent::None {
            warnings.push(
                "nothing is traced: with --tracing-parent=none only --tracing-sampling-rate-per-million decides, and \
                 it is 0"
                    .into(),
            );
        }
        let parent = match self.parent {
            Parent::Hub => traces::Parent::Hub,
            Parent::None => traces::Parent::Nobody,
        };
        Some(Config { endpoint, sampling: self.sampling_rate_per_million, parent })
    }
}

fn place(text: &str) -> Option<Authority> {
    let place: Authority = text.parse().ok()?;
    let has_port = place.port_u16().is_some_and(|port| port != 0);
    (has_port && !place.host().is_empty() && !text.contains('@')).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_from;

    fn read(arguments: &[&str]) -> (Option<Config>, Vec<String>, Vec<String>) {
        let tracing = parse_from([&["cluster-gateway"], arguments].concat()).expect("valid arguments").tracing;
        let (mut wrong, mut warnings) = (Vec::new(), Vec::new());
        (tracing.config(&mut wrong, &mut warnings), wrong, warnings)
    }

    #[test]
    fn nothing_is_traced_without_an_endpoint() {
        assert_eq!(read(&[]), (None, vec![], vec![]));
        assert_eq!(read(&["--tracing-endpoint="]), (None, vec![], vec![]));
        let (config, wrong, warnings) = read(&["--tracing-sampling-rate-per-million=5"]);
        assert_eq!((config, wrong.len(), warnings.len()), (None, 0, 1));
    }

    #[test]
    fn an_endpoint_is_a_host_and_a_port() {
        for endpoint in ["localhost:4317", "10.0.0.1:4317", "[::1]:4317", "otel-collector.monitoring.svc:4317"] {
            let (config, wrong, _) = read(&[&format!("--tracing-endpoint={endpoint}")]);
            assert_eq!((config.unwrap().endpoint.as_str(), wrong.len()), (endpoint, 0));
        }
        for endpoint in
            ["localhost", "http://localhost:4317", "user@host:4317", ":4317", "localhost:0", "::1:4317", "a b:1"]
        {
            let (config, wrong, _) = read(&[&format!("--tracing-endpoint={endpoint}")]);
            assert!(config.is_none() && wrong.len() == 1 && wrong[0].contains(endpoint), "{endpoint}: {wrong:?}");
        }
    }

    #[test]
    fn the_rate_is_kube_apiservers() {
        let with = |rate: &str| {
            let rate = format!("--tracing-sampling-rate-per-million={rate}");
            parse_from(["cluster-gateway", "--tracing-endpoint=localhost:4317", &rate])
        };
        assert!(with("1000000").is_ok());
        for rate in ["1000001", "-1", "0.5", "all"] {
            assert!(with(rate).is_err(), "{rate}");
        }
    }

    #[test]
    fn who_traces_nothing_is_told() {
        let (config, _, warnings) = read(&["--tracing-endpoint=localhost:4317", "--tracing-parent=none"]);
        assert_eq!((config.unwrap().parent, warnings.len()), (traces::Parent::Nobody, 1));
    }
}
