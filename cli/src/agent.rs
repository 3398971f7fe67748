//! A tunnel-agent: its identity on the hub, and its objects on the member.

use api::cluster_name::ClusterName;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::account::{Account, MANAGED_BY};
use crate::member::Token;
use crate::rights::Rights;
use crate::trouble::Result;

/// Name of the Helm release, and of the Secret with the agent's token.
pub const RELEASE: &str = "tunnel-agent";
/// Keys of that Secret.
pub const TOKEN: &str = "token";
const SERVER_CA: &str = "server-ca.crt";

/// The servers that agents link to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers {
    /// `HOST:PORT`.
    pub addresses: Vec<String>,
    /// Name in their certificate. `None`: the dialled host.
    pub name: Option<String>,
    /// CA of their certificate, in PEM. `None`: the system's roots.
    pub authority: Option<String>,
}

/// The agent's ServiceAccount on the hub.
pub fn account(cluster: &ClusterName, namespace: &str) -> Result<Account> {
    let account = Account::of(cluster, namespace)?;
    Ok(Account { name: format!("{RELEASE}-{cluster}"), ..account })
}

/// The right to link this cluster, and nothing else.
pub fn rights(cluster: &ClusterName) -> Rights {
    let resource = "clustergateways/tunnel";
    let rule = json!({"apiGroups": [api::GROUP], "resources": [resource], "resourceNames": [cluster.as_str()],
        "verbs": ["create"]});
    Rights::Rules(vec![rule])
}

/// The agent's Secret, with only its kind and name.
pub fn named(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": RELEASE, "namespace": namespace}})
}

/// The Secret on the member that the agent reads.
pub fn secret(namespace: &str, token: &Token, servers: &Servers) -> Value {
    let mut data = json!({TOKEN: token.value.expose_secret()});
    if let Some(authority) = &servers.authority {
        data[SERVER_CA] = json!(authority);
    }
    let mut document = named(namespace);
    document["type"] = json!("Opaque");
    document["stringData"] = data;
    document
}

/// Values for the agent's chart, without the token.
pub fn values(cluster: &ClusterName, servers: &Servers, image: Option<&str>) -> Value {
    let credential = json!({"type": "token", "existingSecret": RELEASE});
    let mut values = json!({"cluster": cluster.as_str(), "servers": servers.addresses, "credential": credential});
    if let Some(name) = &servers.name {
        values["serverName"] = json!(name);
    }
    if servers.authority.is_some() {
        values["serverCA"] = json!({"secretKey": SERVER_CA});
    }
    if let Some(image) = image {
        values["image"] = image_values(image);
    }
    values
}

/// The value `image` of the agent's chart.
pub fn image_values(image: &str) -> Value {
    let (repository, tag) = split_image(image);
    json!({"repository": repository, "tag": tag})
}

/// Makes the binding of `account`, whose uid is `uid`, the owner of the object: both are deleted
/// together.
pub fn owned(mut document: Value, account: &Account, uid: &str) -> Value {
    document["metadata"]["ownerReferences"] = json!([account.owner(uid)]);
    if document["metadata"]["labels"][MANAGED_BY.0] == "Helm" {
        // The object belongs to no Helm release.
        document["metadata"]["labels"][MANAGED_BY.0] = json!(MANAGED_BY.1);
    }
    document
}

/// The agent's image from the same registry and folder, and with the same tag, as `image`, the
/// image of a program of the hub. `None`: `image` is of no such program, or has a digest, which
/// only one build has.
pub fn image_beside(image: &str) -> Option<String> {
    if image.contains('@') {
        return None;
    }
    let (repository, tag) = split_image(image);
    let (folder, name) = repository.rsplit_once('/').unwrap_or(("", repository));
    if !matches!(name, "cluster-gateway" | "tunnel-server") {
        return None;
    }
    let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let tag = if tag.is_empty() { String::new() } else { format!(":{tag}") };
    Some(format!("{folder}{RELEASE}{tag}"))
}

/// Splits an image into repository and tag. A port is not a tag.
fn split_image(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> ClusterName {
        ClusterName::parse("berlin").unwrap()
    }

    #[test]
    fn an_agent_may_link_its_cluster_and_nothing_else() {
        let Rights::Rules(rules) = rights(&berlin()) else { panic!("rules") };
        assert_eq!(
            rules,
            [json!({"apiGroups": ["cluster.core.oam.dev"], "resources": ["clustergateways/tunnel"],
                    "resourceNames": ["berlin"], "verbs": ["create"]})]
        );
        assert_eq!(account(&berlin(), "hub").unwrap().path(), "hub/tunnel-agent-berlin");
    }

    #[test]
    fn the_agents_image_is_where_those_of_the_hubs_programs_are() {
        let beside = |image| image_beside(image).unwrap_or_default();
        assert_eq!(beside("registry:5000/team/tunnel-server:0.2.0"), "registry:5000/team/tunnel-agent:0.2.0");
        assert_eq!(
            [beside("registry:5000/cluster-gateway"), beside("cluster-gateway:1")],
            ["registry:5000/tunnel-agent", "tunnel-agent:1"]
        );
        assert_eq!([beside("registry/other:1"), beside("registry/tunnel-server@sha256:00")], ["", ""]);
    }

    #[test]
    fn values_name_the_secret_and_hold_no_token() {
        let servers =
            Servers { addresses: vec!["hub:8091".into()], name: Some("x.svc".into()), authority: Some("PEM".into()) };
        let written = values(&berlin(), &servers, Some("registry:5000/tunnel-agent:0.1.0"));
        let expected = json!({"cluster": "berlin", "servers": ["hub:8091"], "serverName": "x.svc",
            "credential": {"type": "token", "existingSecret": "tunnel-agent"},
            "serverCA": {"secretKey": "server-ca.crt"},
            "image": {"repository": "registry:5000/tunnel-agent", "tag": "0.1.0"}});
        assert_eq!(written, expected);
        assert_eq!(split_image("registry:5000/tunnel-agent"), ("registry:5000/tunnel-agent", ""));
        let token = Token { secret: "s".into(), value: "t".to_owned().into(), authority: Vec::new() };
        assert_eq!(secret("ns", &token, &servers)["stringData"], json!({"token": "t", "server-ca.crt": "PEM"}));
    }
}
