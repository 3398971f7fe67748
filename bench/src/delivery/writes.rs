//! Writes on a hub, by its own count.

use anyhow::Result;

use crate::caller::Caller;

/// What was written since the hub's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Writes {
    /// Of Open Cluster Management's kinds, and of Events. Leases are not among them, nor what the
    /// hub's own controllers write.
    pub all: f64,
    /// Of these, to `ManifestWorkReplicaSets` themselves, their status included.
    pub of_sets: f64,
}

pub async fn count(hub: &Caller) -> Result<Writes> {
    let connection = hub.connect().await?;
    let text = hub.ask(&connection, hub.get("/metrics")?).await?;
    Ok(sum(&String::from_utf8_lossy(&text)))
}

fn sum(metrics: &str) -> Writes {
    let count = |is_counted: &dyn Fn(&str) -> bool| {
        kit::exposition::sum_where(metrics, "apiserver_request_total", |labels| {
            is_counted(labels)
                && ["POST", "PUT", "PATCH", "APPLY", "DELETE"]
                    .iter()
                    .any(|verb| labels.contains(&format!("verb=\"{verb}\"")))
        })
    };
    let all = |labels: &str| labels.contains("open-cluster-management.io\"") || labels.contains("resource=\"events\"");
    Writes { all: count(&all), of_sets: count(&|labels| labels.contains("resource=\"manifestworkreplicasets\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_works_and_events_count_and_reads_and_leases_do_not() {
        let series = |group: &str, resource: &str, verb: &str, count: u32| {
            let labels = format!("code=\"200\",group=\"{group}\",resource=\"{resource}\",verb=\"{verb}\"");
            format!("apiserver_request_total{{{labels}}} {count}\n")
        };
        let works = "work.open-cluster-management.io";
        let text = [
            series(works, "manifestworks", "PATCH", 3),
            series(works, "manifestworks", "LIST", 50),
            series(works, "manifestworkreplicasets", "PATCH", 4),
            series(works, "manifestworkreplicasets", "WATCH", 8),
            series("events.k8s.io", "events", "POST", 2),
            series("coordination.k8s.io", "leases", "PUT", 70),
            "apiserver_request_total_other{resource=\"events\",verb=\"POST\"} 9\n".to_owned(),
        ];
        let Writes { all, of_sets } = sum(&text.concat());
        assert!((all - 9.0).abs() < 0.1 && (of_sets - 4.0).abs() < 0.1, "{all}, {of_sets}");
    }
}
