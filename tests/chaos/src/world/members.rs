//! Two members: an API server on an etcd of its own each, without controllers. A kubelet that both
//! share has the logs of their pods.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hub_tests::control_plane::{ApiServer, Etcd, Launcher};
use hub_tests::hub::Hub;
use hub_tests::process::Process;
use hub_tests::tools::Tool;
use hub_tests::{ports, wait};
use kit::pki::Leaf;
use serde_json::{Value, json};

use super::{FAR, MEMBERS, NEAR, secret};
use crate::lines::line;
use crate::load::{BOOK, BOOK_LINES, MARKER, NAMESPACE, TALKER};

/// Interval of lines in a log that grows.
const LINE_EVERY: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_mins(1);

/// One member.
pub(super) struct Member {
    pub(super) server: ApiServer,
    pub(super) etcd: Etcd,
}

pub(super) struct Members {
    near: Member,
    far: Member,
    kubelet: Process,
    port: u16,
    _talking: Talking,
}

/// A log that grows until this is dropped.
struct Talking(Arc<AtomicBool>, Option<JoinHandle<()>>);

// === impl Members ===

impl Members {
    /// Starts them, without waiting.
    pub(super) fn start(launcher: &Launcher) -> Result<Self> {
        let start = |name: &str, range: &str| {
            let etcd = Etcd::start_called(launcher, &format!("{name}-etcd"))?;
            // Otherwise, pods would need accounts, and those a controller.
            let flags = ["--disable-admission-plugins=ServiceAccount".to_owned()];
            anyhow::Ok(Member { server: ApiServer::start(launcher, &etcd, name, range, &flags)?, etcd })
        };
        let (near, far) = (start(NEAR, "10.97.0.0/16")?, start(FAR, "10.98.0.0/16")?);
        let port = ports::free()?;
        let logs = launcher.file("containers");
        let talking = Talking::start(&logs)?;
        let files = near.server.authority().issue(&Leaf::server("kubelet")).write_to(&launcher.directory, "kubelet")?;
        let flags = [
            format!("--listen=127.0.0.1:{port}"),
            format!("--tls-cert-file={}", files.certificate.display()),
            format!("--tls-private-key-file={}", files.key.display()),
            format!("--root={}", logs.display()),
        ];
        let kubelet = launcher.start("kubelet", Tool::Kubelet, flags)?;
        Ok(Self { near, far, kubelet, port, _talking: talking })
    }

    /// Waits until they are ready, and makes the objects that callers request.
    pub(super) fn wait_ready(&mut self) -> Result<()> {
        let port = self.port;
        for (name, member) in [(NEAR, &mut self.near), (FAR, &mut self.far)] {
            member.server.wait_ready()?;
            let kubectl = member.server.kubectl();
            wait::until("the first namespaces", LIMIT, || kubectl.ok("get namespace default -o name"))?;
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects(name, port)});
            kubectl.apply(&list.to_string())?;
        }
        Ok(())
    }

    /// Registers both at `hub`.
    pub(super) fn register(&self, hub: &Hub) -> Result<()> {
        MEMBERS.into_iter().try_for_each(|name| hub.register_member(name, &secret(self, name)?))
    }

    pub(super) fn get(&self, name: &str) -> &Member {
        if name == NEAR { &self.near } else { &self.far }
    }

    pub(super) fn numbered(&mut self, number: usize) -> &mut Member {
        if number == 0 { &mut self.near } else { &mut self.far }
    }

    pub(super) fn release(&mut self) {
        for member in [&mut self.near, &mut self.far] {
            member.server.release();
            member.etcd.release();
        }
        self.kubelet.release();
    }
}

/// Pods that no scheduler has to place, on a node that no controller watches.
fn objects(member: &str, kubelet: u16) -> Vec<Value> {
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"nodeName": "node", "containers": [{"name": "main", "image": "none"}]},
        })
    };
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet}},
        },
    });
    let marker = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": MARKER, "namespace": NAMESPACE},
        "data": {"member": member},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    vec![namespace, node, marker, pod(TALKER), pod(BOOK)]
}

// === impl Talking ===

impl Talking {
    fn start(logs: &Path) -> Result<Self> {
        let log = |pod: &str| {
            let directory = logs.join(NAMESPACE).join(pod);
            std::fs::create_dir_all(&directory)?;
            let path = directory.join("main.log");
            OpenOptions::new().create(true).append(true).open(&path).with_context(|| format!("{}", path.display()))
        };
        let book: String = (0..BOOK_LINES).map(line).collect();
        log(BOOK)?.write_all(book.as_bytes())?;
        let (mut talker, ended) = (log(TALKER)?, Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                if over.load(Ordering::Relaxed) || talker.write_all(line(number).as_bytes()).is_err() {
                    return;
                }
                std::thread::park_timeout(LINE_EVERY);
            }
        });
        Ok(Self(ended, Some(thread)))
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
