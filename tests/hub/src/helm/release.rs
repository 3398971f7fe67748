//! Runs here what an installed release would run: the Deployment from the hub, without a kubelet.
//!
//! The mounted Secrets and ConfigMaps are written to a directory, and the container's arguments are
//! unchanged except for the paths of these mounts. If the pod is to have credentials of its own, a
//! kubeconfig with a token of the same ServiceAccount replaces them, so the program has exactly the
//! rights that the chart grants.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::control_plane::ApiServer;
use crate::kubeconfig::Credential;

/// A Deployment with one container of one of our programs, ready to be started.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The Deployment.
    pub deployment: Value,
    /// The program's name and the container's arguments, with this machine's paths.
    pub args: Vec<String>,
}

// === impl Workload ===

impl Workload {
    /// Reads the Deployment `namespace/name` from `hub`, and writes its volumes below `directory`.
    pub fn read(hub: &ApiServer, namespace: &str, name: &str, directory: &Path) -> Result<Self> {
        let deployment = hub.read(&format!("deployment {name} -n {namespace}"))?;
        ensure!(!deployment.is_null(), "no Deployment {namespace}/{name}");
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let mounts = mounts(pod, container)?;
        let mut args = vec![text(&container["name"])?];
        for arg in container["args"].as_array().into_iter().flatten() {
            args.push(text(arg)?);
        }
        for (path, volume) in &mounts {
            let place = directory.join(path.trim_start_matches('/'));
            write(hub, namespace, volume, &place)?;
            let place = place.to_string_lossy();
            for arg in &mut args {
                *arg = arg.replace(&format!("={path}/"), &format!("={place}/"));
            }
        }
        if pod["automountServiceAccountToken"] == true {
            let account = text(&pod["serviceAccountName"])?;
            args.push(format!("--kubeconfig={}", account_kubeconfig(hub, namespace, &account)?.display()));
        }
        Ok(Self { deployment, args })
    }

    /// The value of the argument `flag`.
    pub fn flag(&self, flag: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(flag)?.strip_prefix('='))
    }
}

/// A kubeconfig for the existing ServiceAccount `namespace/name` of `hub`.
pub fn account_kubeconfig(hub: &ApiServer, namespace: &str, name: &str) -> Result<PathBuf> {
    hub.kubeconfig(&format!("{namespace}-{name}"), Credential::Token(hub.token(namespace, name)?))
}

/// Each mount path with its volume.
fn mounts<'a>(pod: &'a Value, container: &Value) -> Result<Vec<(String, &'a Value)>> {
    let volumes = pod["volumes"].as_array().context("no volumes")?;
    let mounts = container["volumeMounts"].as_array().context("no mounts")?;
    let mount = |mount: &Value| {
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
        Ok((text(&mount["mountPath"])?, volume.with_context(|| format!("no volume for {mount}"))?))
    };
    mounts.iter().map(mount).collect()
}

/// Writes the files of `volume` to `place`, as the kubelet would.
fn write(hub: &ApiServer, namespace: &str, volume: &Value, place: &Path) -> Result<()> {
    let (kind, name) = match (volume["secret"]["secretName"].as_str(), volume["configMap"]["name"].as_str()) {
        (Some(name), None) => ("secret", name),
        (None, Some(name)) => ("configmap", name),
        _ => anyhow::bail!("another kind of volume: {volume}"),
    };
    let object = hub.read(&format!("{kind} {name} -n {namespace}"))?;
    if object.is_null() && volume[kind_of_source(kind)]["optional"] == true {
        return Ok(());
    }
    let data = object["data"].as_object().context("no data")?;
    ensure!(!data.is_empty(), "{kind} {name} is empty");
    std::fs::create_dir_all(place)?;
    for (key, value) in data {
        let value = text(value)?;
        let bytes = if kind == "secret" { BASE64.decode(value)? } else { value.into_bytes() };
        std::fs::write(place.join(key), bytes)?;
    }
    Ok(())
}

fn kind_of_source(kind: &str) -> &'static str {
    if kind == "secret" { "secret" } else { "configMap" }
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("not a string: {value}"))
}
