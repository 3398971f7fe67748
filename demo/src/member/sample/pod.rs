//! The Pod objects of a sample cluster, in every stage of a pod's life that they can be in.
//!
//! One description gives spec and status together, so that phase, conditions and container states never
//! contradict each other in `kubectl describe`.

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::{Container, uid};
use crate::member::clock::timestamp;

/// Seconds between a pod's creation and the start of its containers.
const START_DELAY: Duration = Duration::seconds(2);
/// How long a crashing container lives.
const CRASH_AFTER: Duration = Duration::seconds(21);

/// The description of one pod.
#[derive(Clone, Debug)]
pub(crate) struct Pod<'a> {
    /// `metadata.uid`.
    pub(crate) uid: String,
    /// Its namespace.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: String,
    /// The value of its label `app`.
    pub(crate) app: &'a str,
    /// Its containers, at least one.
    pub(crate) containers: &'a [Container],
    /// The node it is bound to, unless it is unschedulable.
    pub(crate) node: &'a str,
    /// That node's address.
    pub(crate) node_address: String,
    /// Its own address.
    pub(crate) address: String,
    /// When it was created.
    pub(crate) created: OffsetDateTime,
    /// Where it is in its life.
    pub(crate) stage: Stage,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No node fits.
    Unschedulable,
    /// Bound to a node, its containers are being created.
    Creating,
    /// The image cannot be pulled.
    ImageMissing,
    /// All containers run.
    Running,
    /// The containers ended with an error and wait for their next start.
    Crashing {
        /// How often they were started again.
        restarts: u32,
        /// When they last ended.
        crashed: OffsetDateTime,
    },
    /// The containers ended well at that time.
    Finished(OffsetDateTime),
}

// === impl Pod ===

impl Pod<'_> {
    /// The object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "uid": self.uid,
                "creationTimestamp": timestamp(self.created),
                "labels": {"app": self.app},
            },
            "spec": self.spec(),
            "status": self.status(),
        });
        if self.stage != Stage::Unschedulable {
            body["spec"]["nodeName"] = self.node.into();
            body["status"]["hostIP"] = self.node_address.as_str().into();
            body["status"]["startTime"] = timestamp(self.created).into();
        }
        if self.has_address() {
            body["status"]["podIP"] = self.address.as_str().into();
            body["status"]["podIPs"] = json!([{"ip": self.address}]);
        }
        body
    }

    fn spec(&self) -> Value {
        let containers: Vec<Value> = self
            .containers
            .iter()
            .map(|container| {
                json!({
                    "name": container.name,
                    "image": container.image,
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                })
            })
            .collect();
        let once = matches!(self.stage, Stage::Finished(_));
        json!({
            "containers": containers,
            "restartPolicy": if once { "Never" } else { "Always" },
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "priority": 0,
            "enableServiceLinks": true,
        })
    }

    fn status(&self) -> Value {
        let phase = match self.stage {
            Stage::Unschedulable | Stage::Creating | Stage::ImageMissing => "Pending",
            Stage::Running | Stage::Crashing { .. } => "Running",
            Stage::Finished(_) => "Succeeded",
        };
        let containers: Vec<Value> = match self.stage {
            Stage::Unschedulable => Vec::new(),
            _ => self.containers.iter().map(|container| self.container_status(container)).collect(),
        };
        json!({
            "phase": phase,
            "qosClass": "Burstable",
            "conditions": self.conditions(),
            "containerStatuses": containers,
        })
    }

    fn conditions(&self) -> Value {
        let condition = |kind: &str, holds: bool| {
            json!({
                "type": kind,
                "status": if holds { "True" } else { "False" },
                "lastProbeTime": null,
                "lastTransitionTime": timestamp(self.created),
            })
        };
        let scheduled = self.stage != Stage::Unschedulable;
        let mut conditions = vec![condition("PodScheduled", scheduled)];
        if scheduled {
            let ready = self.stage == Stage::Running;
            conditions.extend([condition("Initialized", true), condition("Ready", ready)]);
            conditions.push(condition("ContainersReady", ready));
        } else {
            conditions[0]["reason"] = "Unschedulable".into();
            conditions[0]["message"] = "0 nodes are available: insufficient nvidia.com/gpu.".into();
        }
        Value::from(conditions)
    }

    fn container_status(&self, container: &Container) -> Value {
        let mut status = json!({
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": self.stage == Stage::Running,
            "started": self.stage == Stage::Running,
            "restartCount": 0,
            "lastState": {},
        });
        let started = self.created + START_DELAY;
        status["state"] = match self.stage {
            Stage::Unschedulable | Stage::Creating => waiting("ContainerCreating", ""),
            Stage::ImageMissing => {
                waiting("ImagePullBackOff", &format!("Back-off pulling image \"{}\"", container.image))
            }
            Stage::Running => json!({"running": {"startedAt": timestamp(started)}}),
            Stage::Finished(at) => terminated("Completed", 0, started, at),
            Stage::Crashing { restarts, crashed } => {
                status["restartCount"] = restarts.into();
                status["lastState"] = terminated("Error", 1, crashed - CRASH_AFTER, crashed);
                waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
            }
        };
        if self.has_address() {
            status["containerID"] = format!("containerd://{}", uid(&[&self.uid, container.name])).into();
        }
        status
    }

    /// Whether the pod ever got as far as an address of its own.
    fn has_address(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Crashing { .. } | Stage::Finished(_))
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

fn terminated(reason: &str, exit_code: u8, started: OffsetDateTime, finished: OffsetDateTime) -> Value {
    json!({"terminated": {
        "reason": reason,
        "exitCode": exit_code,
        "startedAt": timestamp(started),
        "finishedAt": timestamp(finished),
    }})
}
