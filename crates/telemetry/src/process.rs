//! `process_*`: the kernel's numbers about this process. The names are those of Prometheus' own
//! client libraries (`prometheus.io/docs/instrumenting/writing_clientlibs`, "Process metrics"), so
//! that rules and dashboards for any program work for ours.
//!
//! Reads `/proc` at each scrape. Omits what cannot be read.

mod stat;

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use self::stat::{Stat, lossy, open_files};

#[derive(Debug)]
pub(crate) struct Process {
    /// Seconds since 1970. Read once, because it never changes, and `/proc/stat` is long on
    /// machines with many interrupts.
    booted: Option<u64>,
}

// === impl Process ===

impl Process {
    pub(crate) fn of_this() -> Self {
        let booted = |text: String| text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        Self { booted: fs::read_to_string("/proc/stat").ok().and_then(booted) }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| match value {
            Some(value) => {
                ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
            }
            None => Ok(()),
        };
        let open = open_files().map(lossy);
        gauge("process_open_fds", "Open file descriptors", open)?;
        let most = getrlimit(Resource::Nofile).current.map(lossy);
        gauge("process_max_fds", "File descriptors that may be open", most)?;
        let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::parse) else {
            return Ok(());
        };
        let seconds = |ticks| lossy(ticks) / lossy(clock_ticks_per_second());
        let resident = lossy(stat.resident_pages.saturating_mul(u64::try_from(page_size()).unwrap_or(0)));
        gauge("process_resident_memory_bytes", "Memory that is in RAM", Some(resident))?;
        gauge("process_virtual_memory_bytes", "Memory that is mapped", Some(lossy(stat.virtual_bytes)))?;
        let started = self.booted.map(|booted| lossy(booted) + seconds(stat.started));
        gauge("process_start_time_seconds", "Start of the process, since 1970", started)?;
        let cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "CPU time used, in user and in kernel mode",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(seconds(stat.cpu)).encode(cpu)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::{SystemTime, UNIX_EPOCH};

    use prometheus_client::registry::Registry;

    use super::*;
    use crate::metrics::Metrics;

    fn read() -> HashMap<String, f64> {
        let text = Metrics::new(Registry::default()).encode();
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let series = series.map(|line| line.split_once(' ').expect("a name and a value"));
        series.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
    }

    #[test]
    fn the_names_are_those_of_prometheus_and_the_values_this_processs() {
        let before = read();
        let files: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let memory = vec![1_u8; 64 << 20];
        // Each round takes many times the kernel's resolution of 10 ms.
        let rounds = (0..1_000).take_while(|_| {
            assert!(memory.iter().fold(0_u64, |sum, byte| sum + u64::from(*byte)) > 0);
            read()["process_cpu_seconds_total"] < before["process_cpu_seconds_total"] + 0.05
        });
        assert!(rounds.count() < 1_000, "no CPU time is counted");
        let after = read();
        let more = |name: &str| after[name] - before[name];
        // Meanwhile other tests of this process open and close descriptors.
        assert!((50.0..200.0).contains(&more("process_open_fds")), "{}", more("process_open_fds"));
        assert!(more("process_resident_memory_bytes") > f64::from(48 << 20), "{after:?}");
        assert!(after["process_virtual_memory_bytes"] > after["process_resident_memory_bytes"], "{after:?}");
        assert!(after["process_max_fds"] > after["process_open_fds"], "{after:?}");
        let age =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() - after["process_start_time_seconds"];
        assert!((-2.0..3600.0).contains(&age), "{age} s old");
        drop((files, memory));
    }

    #[test]
    fn a_programs_name_may_hold_parentheses() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 2090 0 0 0 30 12 0 0 20 0 4 0 8123 104857600 2500 184 1 1";
        let stat = Stat { cpu: 42, started: 8123, virtual_bytes: 104_857_600, resident_pages: 2_500 };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("7 (short) S 1"), None);
    }
}
