//! Files that flags of a Deployment name, read from their Secrets.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PodSpec, Secret, SecretVolumeSource, VolumeMount};
use kube::ResourceExt as _;
use kube::api::Api;

use crate::session::Session;
use crate::trouble::Result;

/// Flag for the gateway's serving certificate.
pub const CERTIFICATE: &str = "--tls-cert-file";

/// The content of the file that `flag` names. `None`: there is no such flag, or the file does not
/// come from a Secret.
pub async fn file(session: &Session, deployment: &Deployment, flag: &str) -> Result<Option<Vec<u8>>> {
    let Some((secret, key)) = place(deployment, flag) else { return Ok(None) };
    let secrets = Api::<Secret>::namespaced(session.hub().clone(), &deployment.namespace().unwrap_or_default());
    let found = session.within(secrets.get_opt(&secret)).await?;
    Ok(found.and_then(|secret| Some(secret.data?.remove(&key)?.0)))
}

/// The Secret that the file which `flag` names is from.
pub fn secret(deployment: &Deployment, flag: &str) -> Option<String> {
    place(deployment, flag).map(|(secret, _)| secret)
}

/// Name of the Secret, and the key in it: that of the volume which has the file that a flag names.
fn place(deployment: &Deployment, flag: &str) -> Option<(String, String)> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.iter().find_map(|container| {
        let words = [&container.command, &container.args].into_iter().flatten().flatten().map(String::as_str);
        let file = value(words, flag)?;
        let mounts = container.volume_mounts.as_deref().unwrap_or_default();
        mounts.iter().find_map(|mount| key(pod, mount, file))
    })
}

fn value<'a>(mut words: impl Iterator<Item = &'a str>, flag: &str) -> Option<&'a str> {
    loop {
        match words.next()?.strip_prefix(flag) {
            Some("") => return words.next(),
            Some(value) if value.starts_with('=') => return value.strip_prefix('='),
            _ => {}
        }
    }
}

fn key(pod: &PodSpec, mount: &VolumeMount, file: &str) -> Option<(String, String)> {
    let path = file.strip_prefix(mount.mount_path.trim_end_matches('/'))?.strip_prefix('/')?;
    let volume = pod.volumes.as_deref()?.iter().find(|volume| volume.name == mount.name)?;
    let SecretVolumeSource { secret_name, items, .. } = volume.secret.as_ref()?;
    let item = items.as_ref().map(|items| items.iter().find(|item| item.path == path));
    let key = match item {
        Some(item) => item?.key.clone(),
        None => path.to_owned(),
    };
    Some((secret_name.clone()?, key))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(args: &[&str], secret: &Value) -> Option<(String, String)> {
        let mounts = json!([{"name": "tunnel", "mountPath": "/etc/tunnel"}, {"name": "tls", "mountPath": "/etc/tls/"}]);
        let container = json!({"name": "c", "args": args, "volumeMounts": mounts});
        let volumes = json!([{"name": "tunnel", "secret": {"secretName": "t"}}, {"name": "tls", "secret": secret}]);
        let pod = json!({"containers": [{"name": "side"}, container], "volumes": volumes});
        let spec = json!({"selector": {}, "template": {"spec": pod}});
        place(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap(), CERTIFICATE)
    }

    #[test]
    fn the_file_of_the_flag_is_a_key_of_a_secret() {
        let whole = json!({"secretName": "s"});
        let expected = Some(("s".to_owned(), "tls.crt".to_owned()));
        assert_eq!(found(&["--a", "--tls-cert-file=/etc/tls/tls.crt"], &whole), expected);
        assert_eq!(found(&["--tls-cert-file", "/etc/tls/tls.crt"], &whole), expected);
        let renamed = json!({"secretName": "s", "items": [{"key": "tls.crt", "path": "own.pem"}]});
        assert_eq!(found(&["--tls-cert-file=/etc/tls/own.pem"], &renamed), expected);
        for elsewhere in ["--tls-cert-file=/run/tls.crt", "--tls-cert-file-x=/etc/tls/tls.crt", "--tls-cert-file"] {
            assert_eq!(found(&[elsewhere], &whole), None, "{elsewhere}");
        }
        assert_eq!(found(&["--tls-cert-file=/etc/tls/tls.crt"], &renamed), None, "no such key");
    }
}
