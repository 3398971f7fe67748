//! Open Cluster Management's scheduler, in a program of its own, on the same objects.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ALLOCATIONS, CHOSEN, CLUSTERS, CPU, Choice, NAMESPACE, RATE, cluster, hundred, place};
use crate::child;
use crate::contender::Load;
use crate::figure::Sample;
use crate::given;
use crate::testbed::Testbed;

pub(super) struct OfOcm {
    program: PathBuf,
    /// The objects.
    file: PathBuf,
    /// What ours chooses.
    chosen: Vec<String>,
}

/// What the program says.
#[derive(Deserialize)]
struct Said {
    choices: u32,
    /// CPU time of all.
    nanoseconds: u64,
    allocations: u64,
    chosen: Vec<String>,
}

// === impl OfOcm ===

impl OfOcm {
    pub(super) fn new(testbed: &Testbed, file: &str, third: &Value) -> Result<Self> {
        let program = given::program(testbed.given.ocm_schedule.as_ref(), "its scheduler", "--ocm-schedule")?;
        let file = testbed.file(file);
        let objects = json!({
            "placement": place(third),
            "clusters": (0..CLUSTERS).map(cluster).collect::<Vec<_>>(),
            "decisions": (0..CHOSEN.div_ceil(100)).map(decision).collect::<Vec<_>>(),
        });
        fs::write(&file, objects.to_string())?;
        Ok(Self { program, file, chosen: Choice::new(third)?.names() })
    }
}

impl Load for OfOcm {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let arguments = [time.as_secs_f64().to_string(), self.file.display().to_string()];
        let said: Said = serde_json::from_str(&child::said(&self.program, &arguments, time)?)?;
        ensure!(said.chosen == self.chosen, "it chooses others: {:?}", said.chosen);
        let cpu = Duration::from_nanos(said.nanoseconds).as_secs_f64() / f64::from(said.choices);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (taken, clusters) = (said.allocations as f64, CLUSTERS as f64);
        let allocations = taken / f64::from(said.choices) / clusters;
        Ok([(CPU.key, cpu * 1000.0), (RATE.key, 1.0 / cpu), (ALLOCATIONS.key, allocations)].into())
    }
}

fn decision(at: usize) -> Value {
    let decisions: Vec<Value> = hundred(at).map(|name| json!({"clusterName": name, "reason": ""})).collect();
    json!({
        "metadata": {
            "namespace": NAMESPACE, "name": format!("place-decision-{}", at + 1),
            "labels": {"cluster.open-cluster-management.io/placement": "place"},
        },
        "status": {"decisions": decisions},
    })
}
