//! kube-controller-manager and kube-scheduler beside an API server.

use std::path::Path;

use anyhow::Result;

use super::{ApiServer, Launcher};
use crate::ports;
use crate::process::Process;
use crate::tools::Tool;

/// Starts a kube-controller-manager for `server` that runs `controllers`: fewer controllers leave
/// more of the machine to tests.
pub fn start_controller_manager(launcher: &Launcher, server: &ApiServer, controllers: &[&str]) -> Result<Process> {
    start(launcher, server, "controller-manager", controllers, &[])
}

/// Starts only the controller of `HorizontalPodAutoscalers` for `server`, at one round per second,
/// as an administrator: a ServiceAccount would stay on the server.
pub fn start_autoscaler(launcher: &Launcher, server: &ApiServer) -> Result<Process> {
    let more = ["--horizontal-pod-autoscaler-sync-period=1s", "--use-service-account-credentials=false"];
    start(launcher, server, "autoscaler", &["horizontal-pod-autoscaler-controller"], &more)
}

/// Starts the controller of Jobs for `server` alone.
pub fn start_job_controller(launcher: &Launcher, server: &ApiServer) -> Result<Process> {
    start(launcher, server, "jobs", &["job-controller"], &[])
}

fn start(launcher: &Launcher, server: &ApiServer, name: &str, controllers: &[&str], more: &[&str]) -> Result<Process> {
    let mut args = common_flags(server)?;
    args.extend([
        format!("--controllers={}", controllers.join(",")),
        format!("--service-account-private-key-file={}", server.keys.service_accounts.display()),
        format!("--root-ca-file={}", server.keys.authority_file.display()),
        format!("--cluster-signing-cert-file={}", server.keys.authority_file.display()),
        format!("--cluster-signing-key-file={}", server.keys.authority_key.display()),
        "--use-service-account-credentials".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        "--concurrent-namespace-syncs=4".to_owned(),
    ]);
    args.extend(more.iter().map(|&flag| flag.to_owned()));
    launcher.start(&format!("{}-{name}", server.name), Tool::ControllerManager, args)
}

/// Starts a kube-scheduler for `server`, without which pods stay Pending.
pub fn start_scheduler(launcher: &Launcher, server: &ApiServer) -> Result<Process> {
    launcher.start(&format!("{}-scheduler", server.name), Tool::Scheduler, common_flags(server)?)
}

/// Starts a kwok for `server`, as its file `config` says. Its nodes say that their kubelet listens
/// on this machine's port `kubelet`.
///
/// No `--node-name`: it would become a Hostname address, which the API server prefers over the IP
/// address.
pub fn start_kwok(launcher: &Launcher, server: &ApiServer, config: &Path, kubelet: u16) -> Result<Process> {
    let args = [
        format!("--kubeconfig={}", server.admin_kubeconfig.display()),
        format!("--config={}", config.display()),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        "--cidr=10.99.0.0/16".to_owned(),
        "--node-ip=127.0.0.1".to_owned(),
        format!("--node-port={kubelet}"),
        format!("--server-address=127.0.0.1:{}", ports::free()?), // else it takes the node port itself
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    launcher.start(&format!("{}-kwok", server.name), Tool::Kwok, args)
}

fn common_flags(server: &ApiServer) -> Result<Vec<String>> {
    let kubeconfig = server.admin_kubeconfig.display();
    Ok(vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secure-port={}", ports::free()?),
        format!("--tls-cert-file={}", server.keys.serving.certificate.display()),
        format!("--tls-private-key-file={}", server.keys.serving.key.display()),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ])
}
