//! kube-controller-manager and kube-scheduler beside an API server.

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

/// Starts only the controller of `HorizontalPodAutoscalers` for `server`, at one round per second.
pub fn start_autoscaler(launcher: &Launcher, server: &ApiServer) -> Result<Process> {
    let period = "--horizontal-pod-autoscaler-sync-period=1s";
    start(launcher, server, "autoscaler", &["horizontal-pod-autoscaler-controller"], &[period])
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
