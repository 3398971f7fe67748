//! The part of a hub that a cloud provides: its nodes answer for Services of type `LoadBalancer`.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use hub_tests::kubectl::Kubectl;
use serde_json::json;

/// Time limit for the next line of the watch: longer than any run.
const SILENCE: Duration = Duration::from_hours(2);
const COLUMNS: &str =
    "custom-columns=A:.metadata.namespace,B:.metadata.name,C:.spec.type,D:.status.loadBalancer.ingress[0].ip";

/// Sets `address`, a node's address, as the external address of every such Service, until the API
/// server ends.
pub fn start(kubectl: Kubectl, address: IpAddr) -> Result<()> {
    let words = ["get", "services", "-A", "--watch", "--no-headers", "-o", COLUMNS];
    let mut services = kubectl.args(words).start()?;
    thread::spawn(move || {
        while let Ok(line) = services.next_line(SILENCE) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [namespace, name, "LoadBalancer", "<none>"] = words[..] {
                let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}).to_string();
                let words =
                    ["patch", "service", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", &status];
                drop(kubectl.args(words).run()); // it may be gone
            }
        }
    });
    Ok(())
}
