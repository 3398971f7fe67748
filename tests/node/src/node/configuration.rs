//! Configuration of a node's programs. JSON is YAML.

use anyhow::Result;
use kit::pki::PemFiles;
use serde_json::{Value, json};

use super::{Membership, Node};
use crate::image::PAUSE;
use crate::namespaces::{self, group, plugins};

// === impl Node ===

impl Node {
    /// `stats_collect_period`: by default it adds up the files of each container every ten seconds,
    /// and nothing here asks for that.
    ///
    /// `restrict_oom_score_adj`: without it, and without the right to lower its own OOM score
    /// (`CAP_SYS_RESOURCE`), runc ends with "can't get final child's PID from pipe", which names no
    /// cause.
    pub(super) fn containerd(&self) -> Result<String> {
        let (directory, plugins) = (self.directory.display(), plugins()?.display());
        Ok(format!(
            r#"version = 2
root = "{directory}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  stats_collect_period = 3600
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"#
        ))
    }

    pub(super) fn network(&self) -> Value {
        let (first, last) = self.family.pods(self.number);
        let range = json!({"subnet": self.family.network(), "rangeStart": first, "rangeEnd": last,
            "gateway": self.family.node(self.number)});
        let addresses = json!({"type": "host-local", "ranges": [[range]], "routes": [{"dst": self.family.any()}]});
        json!({"cniVersion": "0.4.0", "name": "lab", "plugins": [
            {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
                "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ]})
    }

    /// It looks for no pressure on memory and disk: no test is about evictions by a kubelet, and
    /// each look, every ten seconds, asks containerd and the kernel for the use of every container
    /// of the node. `0%` is no threshold. Nor does it measure volumes, or look every ten seconds
    /// for logs to rotate.
    pub(super) fn kubelet(&self, cluster: &Membership<'_>, serving: &PemFiles) -> Value {
        let run = namespaces::inside().unwrap_or_default();
        let authentication = json!({"anonymous": {"enabled": false}, "webhook": {"enabled": true},
            "x509": {"clientCAFile": cluster.authority_file}});
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": self.family.node(self.number),
            "authentication": authentication, "authorization": {"mode": "Webhook"},
            "tlsCertFile": serving.certificate, "tlsPrivateKeyFile": serving.key,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs", "failCgroupV1": false,
            "cgroupRoot": format!("/{}/{}", group(&run), self.name()),
            "enforceNodeAllocatable": ["pods"], "failSwapOn": false,
            "clusterDNS": [cluster.dns], "clusterDomain": "cluster.local",
            "resolvConf": self.directory.join("resolv.conf"), "podLogsDir": "/var/log/pods",
            "evictionHard": {"memory.available": "0%"}, "localStorageCapacityIsolation": false,
            "volumeStatsAggPeriod": "-1s", "containerLogMonitorInterval": "10m",
            "imageGCHighThresholdPercent": 100,
        })
    }

    /// The sizes and time-outs of tracked connections belong to the outermost namespace, and are
    /// left unchanged.
    pub(super) fn proxy(&self, kubeconfig: &str) -> Value {
        json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
            "mode": "iptables", "hostnameOverride": self.name(), "clusterCIDR": self.family.network(),
            "clientConnection": {"kubeconfig": kubeconfig},
            "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        })
    }
}
