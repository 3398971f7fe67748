//! Writes on a hub, by its own count.

use anyhow::Result;

use crate::caller::Caller;

/// Writes of Open Cluster Management's kinds, and of Events, since the hub's start. Leases are not
/// among them, nor writes of the hub's own controllers.
pub async fn count(hub: &Caller) -> Result<f64> {
    let connection = hub.connect().await?;
    let text = hub.ask(&connection, hub.get("/metrics")?).await?;
    Ok(sum(&String::from_utf8_lossy(&text)))
}

fn sum(metrics: &str) -> f64 {
    kit::exposition::sum_where(metrics, "apiserver_request_total", |labels| {
        (labels.contains("open-cluster-management.io\"") || labels.contains("resource=\"events\""))
            && ["POST", "PUT", "PATCH", "APPLY", "DELETE"]
                .iter()
                .any(|verb| labels.contains(&format!("verb=\"{verb}\"")))
    })
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
            series("events.k8s.io", "events", "POST", 2),
            series("coordination.k8s.io", "leases", "PUT", 70),
            "apiserver_request_total_other{resource=\"events\",verb=\"POST\"} 9\n".to_owned(),
        ];
        assert!((sum(&text.concat()) - 5.0).abs() < 0.1);
    }
}
