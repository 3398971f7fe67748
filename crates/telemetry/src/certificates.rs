//! `…_certificate_expiry_timestamp_seconds{file}`: when the certificates end that a program
//! presents to its peers, read at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use net::tls::end::{End, InUse};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// The users of certificates. Cheap to clone. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Certificates(Arc<Mutex<Vec<Arc<dyn InUse>>>>);

/// The list, and the name of its metric family.
#[derive(Debug)]
struct Family {
    name: String,
    certificates: Certificates,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FileLabels {
    file: String,
}

// === impl Certificates ===

impl Certificates {
    /// Registers `<program>_certificate_expiry_timestamp_seconds`.
    pub fn register(program: &str, registry: &mut Registry) -> Self {
        let certificates = Self::default();
        let name = format!("{program}_certificate_expiry_timestamp_seconds");
        registry.register_collector(Box::new(Family { name, certificates: certificates.clone() }));
        certificates
    }

    /// Adds `in_use` to the list. For start-up: nothing is ever removed.
    pub fn watch(&self, in_use: Arc<dyn InUse>) {
        self.0.lock().push(in_use);
    }

    /// The end by file, once each, because two parts of a program may present the same certificate.
    /// If only one of them has loaded a change, this is the earlier end.
    fn ends(&self) -> BTreeMap<PathBuf, SystemTime> {
        let mut by_file = BTreeMap::new();
        for End { file, at } in self.0.lock().iter().flat_map(|in_use| in_use.ends()) {
            by_file.entry(file).and_modify(|earliest: &mut SystemTime| *earliest = at.min(*earliest)).or_insert(at);
        }
        by_file
    }
}

// === impl Family ===

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Expiry of the certificate in use from this file, which peers see";
        let mut family = encoder.encode_descriptor(&self.name, help, None, MetricType::Gauge)?;
        for (file, at) in self.certificates.ends() {
            let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let labels = FileLabels { file: file.to_string_lossy().into_owned() };
            family.encode_family(&labels)?.encode_gauge(&i64::try_from(seconds).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Metrics;

    #[derive(Debug)]
    struct Shown(&'static [(&'static str, u64)]);

    impl InUse for Shown {
        fn ends(&self) -> Vec<End> {
            let end =
                |&(file, seconds): &_| End { file: PathBuf::from(file), at: UNIX_EPOCH + Duration::from_secs(seconds) };
            self.0.iter().map(end).collect()
        }
    }

    #[test]
    fn each_file_has_one_series() {
        let mut registry = Registry::default();
        let certificates = Certificates::register("gateway", &mut registry);
        let metrics = Metrics::new(registry);
        certificates.watch(Arc::new(Shown(&[("/tls/tls.crt", 2_000_000_000), ("/other.crt", 7)])));
        certificates.watch(Arc::new(Shown(&[("/tls/tls.crt", 1_900_000_000)])));
        let text = metrics.encode();
        let series: Vec<_> = text.lines().filter(|line| line.starts_with("gateway_")).collect();
        assert_eq!(
            series,
            [
                r#"gateway_certificate_expiry_timestamp_seconds{file="/other.crt"} 7"#,
                r#"gateway_certificate_expiry_timestamp_seconds{file="/tls/tls.crt"} 1900000000"#,
            ]
        );
    }
}
