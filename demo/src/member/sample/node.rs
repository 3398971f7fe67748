//! The Node objects of a sample cluster, and their Leases.

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::{LEASES, Profile, uid};
use crate::member::clock::timestamp;

/// How long ago a node's kubelet last reported.
const HEARTBEAT: Duration = Duration::seconds(20);
/// What a kubelet asks for unless it is told otherwise (`nodeLeaseDurationSeconds`).
const LEASE_SECONDS: u32 = 40;

impl Profile {
    /// The `index`-th node (from 1); the first of several is the control plane.
    pub(super) fn node(&self, name: &str, index: u8, now: OffsetDateTime) -> Value {
        let created = self.node_created(index, now);
        let mut labels = json!({
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/region": self.name,
        });
        if index == 1 {
            labels["node-role.kubernetes.io/control-plane"] = "".into();
        }
        let resources = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "200Gi"});
        json!({
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": uid(&[self.name, "node", name]),
                "creationTimestamp": created,
                "labels": labels,
            },
            "spec": {"podCIDR": format!("10.{}.{index}.0/24", self.network)},
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": conditions(&created, &timestamp(now - HEARTBEAT)),
                "addresses": [
                    {"type": "InternalIP", "address": self.node_address(name)},
                    {"type": "Hostname", "address": name},
                ],
                "nodeInfo": self.node_info(name),
            },
        })
    }

    /// The lease by which the `index`-th node says that it lives; like the node's conditions, it is not renewed.
    pub(super) fn lease(&self, name: &str, index: u8, now: OffsetDateTime) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid(&[self.name, "node", name])});
        json!({
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {
                "name": name,
                "namespace": LEASES,
                "uid": uid(&[self.name, "lease", name]),
                "creationTimestamp": self.node_created(index, now),
                "ownerReferences": [owner],
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                // A MicroTime: clients refuse one without six digits of fraction.
                "renewTime": timestamp(now - HEARTBEAT).replace('Z', ".000000Z"),
            },
        })
    }

    fn node_created(&self, index: u8, now: OffsetDateTime) -> String {
        timestamp(now - Duration::days(i64::from(self.network) * 4) - Duration::minutes(i64::from(index)))
    }

    fn node_info(&self, name: &str) -> Value {
        let id = uid(&[self.name, "machine", name]);
        json!({
            "machineID": id.replace('-', ""),
            "systemUUID": id,
            "bootID": uid(&[self.name, "boot", name]),
            "kernelVersion": "6.12.48",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": self.version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        })
    }
}

fn conditions(since: &str, heartbeat: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastHeartbeatTime": heartbeat,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        })
    };
    json!([
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}
