//! Kubeconfigs: finds the context to use, and creates contexts that lead through a hub to its
//! clusters.
//!
//! Contexts for clusters name the user of the hub's context. Its credential is not copied.

use api::cluster_name::ClusterName;
use api::{GROUP, VERSION};
use kube::config::{Cluster, Context, Kubeconfig, NamedCluster, NamedContext};
use serde_json::Value;
use std::path::{Path, PathBuf};

use crate::trouble::{Result, Trouble};

/// Reads `file`, or what kubectl reads: the files of `KUBECONFIG`, else `~/.kube/config`.
pub fn read(file: Option<&Path>) -> Result<Kubeconfig> {
    let read = file.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    read.map_err(|error| {
        let file = file.map(Path::to_owned).or_else(unreadable);
        let place = file.map_or_else(|| "the kubeconfig".to_owned(), |path| format!("kubeconfig {}", path.display()));
        let remedy = "give the file with --kubeconfig or KUBECONFIG, and check that `kubectl config view` reads it";
        Trouble::usage(format!("{place}: {}", hub::client::mistake(&error)), remedy)
    })
}

/// The file that cannot be read, of those that kubectl reads.
fn unreadable() -> Option<PathBuf> {
    let files: Vec<_> = std::env::var_os("KUBECONFIG").iter().flat_map(std::env::split_paths).collect();
    let is_broken = |file: &PathBuf| file.exists() && Kubeconfig::read_from(file).is_err();
    if files.is_empty() { hub::client::first_kubeconfig() } else { files.into_iter().find(is_broken) }
}

/// Reads one file in order to write it again: its paths stay relative to it. An absent file is
/// empty.
pub fn read_alone(file: &Path) -> Result<Kubeconfig> {
    let broken = |what: String| {
        let remedy = "correct the file: `kubectl config view` must read it";
        Trouble::usage(format!("kubeconfig {}: {what}", file.display()), remedy)
    };
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kubeconfig::default()),
        Err(error) => Err(broken(error.to_string())),
        Ok(text) if text.trim().is_empty() => Ok(Kubeconfig::default()),
        Ok(text) => Kubeconfig::from_yaml(&text).map_err(|error| broken(hub::client::mistake(&error))),
    }
}

/// The context called `wanted`, or the current one.
pub fn named<'a>(kubeconfig: &'a Kubeconfig, wanted: Option<&str>) -> Result<&'a NamedContext> {
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let Some(name) = wanted.or(current) else {
        return Err(Trouble::usage(
            "the kubeconfig has no current context",
            "choose one with --context or `kubectl config use-context`",
        ));
    };
    kubeconfig.contexts.iter().find(|context| context.name == name).ok_or_else(|| {
        let names: Vec<_> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).take(20).collect();
        let known =
            if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        Trouble::usage(format!("the kubeconfig has no context {name:?}"), format!("choose another: {known}"))
    })
}

/// The cluster and the user of a context.
pub fn parts<'a>(kubeconfig: &'a Kubeconfig, context: &'a NamedContext) -> Result<(&'a Cluster, &'a Context)> {
    let broken = |what: String| Trouble::usage(what, "correct the kubeconfig: `kubectl config view` shows it");
    let name = &context.name;
    let inner = context.context.as_ref().ok_or_else(|| broken(format!("context {name:?} is empty")))?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == inner.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).filter(|cluster| cluster.server.is_some());
    let missing = || broken(format!("context {name:?} names the cluster {:?}, which has no server", inner.cluster));
    Ok((cluster.ok_or_else(missing)?, inner))
}

/// The path of a cluster's API on the hub.
pub fn path(cluster: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/clustergateways/{cluster}/proxy")
}

/// Contexts for `clusters`, named by `call`, that lead through the hub of `context` as its user.
pub fn through(
    kubeconfig: &Kubeconfig,
    context: &NamedContext,
    clusters: &[ClusterName],
    call: impl Fn(&ClusterName) -> String,
) -> Result<Kubeconfig> {
    let (hub, inner) = parts(kubeconfig, context)?;
    let server = hub.server.as_deref().unwrap_or_default().trim_end_matches('/');
    let places = clusters.iter().map(|cluster| {
        let place = Cluster { server: Some(server.to_owned() + &path(cluster.as_str())), ..hub.clone() };
        (call(cluster), place)
    });
    Ok(leading(places, inner.user.as_deref()))
}

/// One context for each of `places`, which are names and clusters, as `user`.
pub fn leading(places: impl IntoIterator<Item = (String, Cluster)>, user: Option<&str>) -> Kubeconfig {
    let mut made =
        Kubeconfig { api_version: Some("v1".to_owned()), kind: Some("Config".to_owned()), ..Kubeconfig::default() };
    for (name, place) in places {
        made.clusters.push(NamedCluster { name: name.clone(), cluster: Some(place), ..NamedCluster::default() });
        let context = Context { cluster: name.clone(), user: user.map(str::to_owned), ..Context::default() };
        made.contexts.push(NamedContext { name, context: Some(context), ..NamedContext::default() });
    }
    made
}

/// A member's address and CA from its `ClusterGateway`. `None`: it has no address, because its
/// agents dial out.
pub fn place(object: &Value) -> Option<Cluster> {
    let fixed = &object["spec"]["access"]["endpoint"]["const"];
    Some(Cluster {
        server: Some(fixed["address"].as_str()?.to_owned()),
        certificate_authority_data: fixed["caBundle"].as_str().map(str::to_owned),
        insecure_skip_tls_verify: fixed["insecure"].as_bool().filter(|insecure| *insecure),
        ..Cluster::default()
    })
}

/// The first entry of `made` that would replace an entry of the user's own: one of `known` with the
/// same name that leads elsewhere.
pub fn shadowed<'a>(known: &Kubeconfig, made: &'a Kubeconfig) -> Option<&'a str> {
    let server = |cluster: &NamedCluster| cluster.cluster.as_ref().and_then(|cluster| cluster.server.clone());
    let foreign = made.clusters.iter().find(|new| {
        let old = known.clusters.iter().find(|old| old.name == new.name);
        let context = known.contexts.iter().find(|context| context.name == new.name);
        old.is_some_and(|old| server(old) != server(new))
            || context.is_some_and(|old| old.context.as_ref().is_none_or(|old| old.cluster != new.name))
    });
    foreign.map(|new| new.name.as_str())
}

/// Adds `made` to `into`, and replaces entries with the same names.
pub fn merge(into: &mut Kubeconfig, made: Kubeconfig) {
    into.clusters.retain(|old| made.clusters.iter().all(|new| new.name != old.name));
    into.contexts.retain(|old| made.contexts.iter().all(|new| new.name != old.name));
    into.clusters.extend(made.clusters);
    into.contexts.extend(made.contexts);
    into.api_version.get_or_insert_with(|| "v1".to_owned());
    into.kind.get_or_insert_with(|| "Config".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUB: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
        "clusters": [{"name": "hub", "cluster": {"server": "https://hub:6443/", "certificate-authority-data": "QQ=="}}],
        "users": [{"name": "jane", "user": {"token": "canary"}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "jane"}},
            {"name": "lost", "context": {"cluster": "gone", "user": "jane"}}]}"#;

    fn hub() -> Kubeconfig {
        Kubeconfig::from_yaml(HUB).unwrap()
    }

    fn made(names: &[&str]) -> Kubeconfig {
        let names: Vec<_> = names.iter().map(|name| ClusterName::parse(name).unwrap()).collect();
        let hub = hub();
        through(&hub, named(&hub, None).unwrap(), &names, ToString::to_string).unwrap()
    }

    #[test]
    fn the_context_meant_is_found_or_named() {
        assert_eq!(named(&hub(), None).unwrap().name, "hub");
        assert_eq!(named(&hub(), Some("lost")).unwrap().name, "lost");
        let trouble = named(&hub(), Some("prod")).unwrap_err();
        assert!(trouble.what.contains("\"prod\"") && trouble.remedy.contains("hub, lost"), "{trouble}");
        let lost = hub();
        let trouble = parts(&lost, named(&lost, Some("lost")).unwrap()).unwrap_err();
        assert!(trouble.what.contains("\"gone\""), "{trouble}");
    }

    #[test]
    fn a_member_with_an_address_can_be_reached_directly() {
        let object = |fixed: Value| serde_json::json!({"spec": {"access": {"endpoint": {"const": fixed}}}});
        let place = place(&object(serde_json::json!({"address": "https://m:6443", "caBundle": "QQ=="}))).unwrap();
        let made = leading([("direct/m".to_owned(), place)], Some("jane"));
        let cluster = made.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://m:6443"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("QQ=="));
        assert_eq!((&*made.contexts[0].name, made.auth_infos.len()), ("direct/m", 0));
        assert!(super::place(&object(Value::Null)).is_none(), "behind a tunnel");
    }

    #[test]
    fn contexts_go_through_the_hub_and_copy_no_credential() {
        let made = made(&["berlin"]);
        let text = serde_json::to_string(&made).unwrap();
        assert!(!text.contains("canary"), "{text}");
        let server = made.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(
            server.server.as_deref(),
            Some("https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy")
        );
        assert_eq!(server.certificate_authority_data.as_deref(), Some("QQ=="));
        assert_eq!(made.contexts[0].context.as_ref().unwrap().user.as_deref(), Some("jane"));
    }

    #[test]
    fn merging_twice_changes_nothing_and_leaves_others_entries() {
        let mut own = hub();
        merge(&mut own, made(&["berlin", "munich"]));
        assert_eq!(shadowed(&own, &made(&["berlin", "oslo"])), None);
        merge(&mut own, made(&["berlin"]));
        let names: Vec<_> = own.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(names, ["hub", "lost", "munich", "berlin"]);
        assert_eq!(own.current_context.as_deref(), Some("hub"));
        for foreign in ["hub", "lost"] {
            assert_eq!(shadowed(&own, &made(&["oslo", foreign])), Some(foreign));
        }
    }
}
