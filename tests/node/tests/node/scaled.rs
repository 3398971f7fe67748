//! The chart's autoscaler on real pods: under load it adds a gateway, by the CPU time that the
//! processes really use; clients notice neither the new gateway nor its end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::usage::Usage;
use hub_tests::wait;
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use tokio::time::Instant;

use crate::pods::{GATEWAY, living};
use crate::readme;

const NAMESPACE: &str = "vela-system";
/// Name of the Deployment and of its container.
const NAME: &str = "cluster-gateway";
/// Per cent of the 100m that a gateway requests. An idle gateway uses about 2m; under half of this
/// load two have used 52m together, which is more than the target even if three share it.
const TARGET: u32 = 10;
/// Thousandths of a CPU: a pod that uses less has no requests.
const REST: u64 = 7;
/// Time for the autoscaler to see reported values, and for a pod to be ready.
const LIMIT: Duration = Duration::from_mins(1);
/// A pod's reported use is the mean of so long: the kernel counts in steps of 10 ms, each of which
/// is 2m of this time. Within a second, one would be as much as [`TARGET`], and two gateways that
/// nobody asks for anything would be scaled for one look at the hub.
const WINDOW: Duration = Duration::from_secs(5);
/// Thousandths of a CPU that all gateways together use at least, for a third to be wanted and to
/// stay: [`TARGET`] of each, and the tenth more that the autoscaler tolerates.
const ENOUGH: u64 = 33;
/// Readers beside the usual load. As many again are added where gateways use less, because others
/// want the machine as well; and how often.
const MORE: usize = 8;
const TIMES: usize = 4;
/// Least number of reads after the end of the third gateway.
const SOME: usize = 30;

/// CPU time of gateways, by pod: each value with the time of the look.
#[derive(Default)]
struct Meter(BTreeMap<String, VecDeque<(Instant, u64)>>);

pub(crate) fn by_load(testbed: &Testbed) -> Result<()> {
    let operator = readme::operator(testbed)?;
    let done = more_and_less(testbed, &operator);
    if done.is_err() {
        set(&operator, "enabled=false")?;
    }
    done
}

fn more_and_less(testbed: &Testbed, operator: &Operator<'_>) -> Result<()> {
    let usage = Usage::start(&testbed.hub.server, NAMESPACE)?;
    let autoscaler = testbed.start_autoscaler()?;
    let mut meter = Meter::default();
    let mut tell = || -> Result<BTreeMap<String, u64>> {
        let used = meter.used()?;
        let told: Vec<_> = used.iter().map(|(pod, millis)| (pod.as_str(), format!("{millis}m"))).collect();
        usage.tell(NAME, &told.iter().map(|(pod, cpu)| (*pod, cpu.as_str())).collect::<Vec<_>>());
        Ok(used)
    };
    // The use during the tests before no longer counts.
    wait::until("gateways at rest", LIMIT, || {
        let used = tell()?;
        ensure!(used.len() == 2 && used.values().all(|millis| *millis < REST), "{used:?}");
        Ok(())
    })?;
    set(
        operator,
        &format!("enabled=true,autoscaling.maxReplicas=3,autoscaling.targetCPUUtilizationPercentage={TARGET}"),
    )?;
    wait::until("the autoscaler to know what is used", LIMIT, || {
        let used = tell()?;
        let object = format!("horizontalpodautoscaler {NAME} -n {NAMESPACE}");
        let told = testbed.hub.server.text(&object, "/status/currentMetrics")?;
        ensure!(told.contains("averageUtilization"), "{used:?}: {told}");
        Ok(())
    })?;
    let idle = replicas(testbed)?;
    ensure!(idle[0] == 2, "{idle:?} of two gateways that nobody asks for anything");
    // On a busy machine a probe may have been late.
    wait::until_true("both to be ready", LIMIT, || Ok(replicas(testbed)? == [2, 2]))?;

    let mut load = Load::start(&testbed.hub, &[("berlin", &testbed.member)])?;
    load.read_more(&testbed.hub, "berlin", MORE)?;
    let (mut measured, mut added) = (Instant::now(), 0);
    let limit = LIMIT * u32::try_from(1 + TIMES)?;
    let scaled = wait::until("a third gateway", limit, || {
        let used = tell()?;
        let now = replicas(testbed)?;
        if measured.elapsed() >= 2 * WINDOW && added < TIMES {
            measured = Instant::now();
            if used.values().sum::<u64>() < ENOUGH {
                load.read_more(&testbed.hub, "berlin", MORE)?;
                added += 1;
            }
        }
        ensure!(now == [3, 3] && used.len() == 3, "{now:?} at {used:?}");
        Ok(())
    });
    scaled.with_context(|| operator.run(&format!("kubectl -n {NAMESPACE} describe hpa")).unwrap_or_default())?;
    load.wait_for_more(SOME)?;
    // helm sets the number of pods first, and then deletes the autoscaler's object, by which an
    // autoscaler that looks every second would set three again in between.
    drop(autoscaler);
    set(operator, "enabled=false")?;
    // The third has up to 35 s to end (`shutdownDelaySeconds` and `drainTimeoutSeconds`).
    wait::until("two gateways", 2 * LIMIT, || {
        let (now, running) = (replicas(testbed)?, living(GATEWAY)?.len());
        ensure!(now == [2, 2] && running == 2, "{now:?}, and {running} run");
        Ok(())
    })?;
    load.wait_for_more(SOME)?;
    let tally = load.finish().context("while gateways come and go")?;
    ensure!(tally.reads > 2 * SOME && tally.changes > 0, "no load: {tally:?}");
    load::clean(&[&testbed.hub, &testbed.member])
}

/// Sets values of the autoscaler: the pods' template is unchanged, so nothing is rolled out.
fn set(operator: &Operator<'_>, values: &str) -> Result<()> {
    let upgrade = format!("helm upgrade {NAME} charts/cluster-gateway -n {NAMESPACE} --reuse-values");
    operator.run(&format!("{upgrade} --set autoscaling.{values}")).map(drop)
}

/// The desired and the ready number of pods.
fn replicas(testbed: &Testbed) -> Result<[u64; 2]> {
    let deployment = testbed.hub.get(&format!("deployment {NAME} -n {NAMESPACE}"))?;
    let counts = [&deployment["spec"]["replicas"], &deployment["status"]["readyReplicas"]];
    Ok(counts.map(|count| count.as_u64().unwrap_or_default()))
}

// === impl Meter ===

impl Meter {
    /// Thousandths of a CPU that each pod has used lately, without pods that were not seen for long
    /// enough yet.
    fn used(&mut self) -> Result<BTreeMap<String, u64>> {
        let now = Instant::now();
        let mut used = BTreeMap::new();
        for gateway in living(GATEWAY)? {
            // A gateway that ends meanwhile uses nothing.
            let (Ok(pod), Ok(millis)) = (gateway.host_name(), gateway.cpu_millis()) else { continue };
            let looks = self.0.entry(pod.clone()).or_default();
            looks.push_back((now, millis));
            // The window begins with the last look before it.
            while looks.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
                looks.pop_front();
            }
            let (since, before) = looks.front().copied().context("there is one")?;
            let elapsed = now.duration_since(since);
            if elapsed >= WINDOW {
                used.insert(pod, 1000 * millis.saturating_sub(before) / u64::try_from(elapsed.as_millis())?);
            }
        }
        Ok(used)
    }
}
