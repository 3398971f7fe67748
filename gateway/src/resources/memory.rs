//! Reads of Secrets' views, and of `virtualclusters`, without a hub: from the current snapshot.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::list_options::{ListOptions, Selectors, WatchOptions};
use api::served::{Form, ListMeta};
use api::virtual_cluster::{LOCAL, RESOURCE, VirtualCluster};
use auth::User;
use http::{Request, Response};

use super::kinds::{Kind, Subject};
use super::memory_watch::MemoryWatch;
use super::virtual_sources::{not_found, sorted};
use super::watch::Watch as _;
use super::weight::Weight;
use super::{ClustersRead, ok, watch};
use crate::body::ResponseBody;
use crate::clusters::{Cluster, LookupError, Snapshot};
use crate::error::{Cause, Error};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get`, `list` and `watch`.
pub fn clusters<K: Kind>(
    kind: &K,
    gateway: &RequestNeeds,
    user: &User,
    read: ClustersRead<'_>,
    form: Form,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let snapshot = listed(gateway)?;
    let view = kind.view();
    match read {
        ClustersRead::Get(name) => {
            let cluster = registered(gateway, name, K::absent)?;
            Ok(ok(form.object(&kind.object(cluster.spec(), view.health_of(cluster.spec())))))
        }
        ClustersRead::List(options) => {
            let selectors = selectors(options)?;
            let ready = snapshot.ready();
            let specs = ready.iter().map(|cluster| cluster.spec());
            let selected = specs.filter(|spec| selectors.matches(spec.name.as_str(), &spec.labels));
            let objects: Vec<_> = selected.map(|spec| kind.object(spec, view.health_of(spec))).collect();
            let metadata = ListMeta { resource_version: snapshot.resource_version(), ..ListMeta::default() };
            Ok(ok(form.list(&objects, metadata)))
        }
        ClustersRead::Watch(options) => watched(gateway, user, (K::RESOURCE, kind.subject()), (options, form), request),
    }
}

/// Starts a watch of `subject`, with the resource's name for errors, if the user may have one more.
fn watched(
    gateway: &RequestNeeds,
    user: &User,
    (resource, subject): (&'static str, Subject),
    (options, form): (WatchOptions, Form),
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let permit = gateway.limits.watch(user).map_err(|failure| Error::hub(failure, resource))?;
    let watch = MemoryWatch::begin(gateway, subject, options, form, (Weight::of(request), permit))?;
    Ok(watch::response(gateway, request.method(), watch.stream()))
}

/// The snapshot, once the clusters are known.
fn listed(gateway: &RequestNeeds) -> Result<Arc<Snapshot>, Error> {
    let snapshot = gateway.clusters.snapshot();
    if snapshot.is_listed() { Ok(snapshot) } else { Err(Error::ClustersUnknown) }
}

/// The selectors for a list from memory.
fn selectors(options: ListOptions) -> Result<Selectors, Error> {
    options.from_memory().map_err(Error::List)
}

/// The cluster with this name; `absent` makes the failure if there is none.
fn registered(
    gateway: &RequestNeeds,
    name: &ClusterName,
    absent: impl FnOnce(&ClusterName) -> Error,
) -> Result<Arc<Cluster>, Error> {
    gateway.clusters.get(name).map_err(|error| match error {
        LookupError::Absent => absent(name),
        LookupError::Invalid(reason) => Cause::Unconvertible(reason).at(name),
        other => Error::lookup(name, other),
    })
}

/// [`clusters`] for `virtualclusters`: with the gateway's own control plane.
pub fn virtual_clusters(
    gateway: &RequestNeeds,
    user: &User,
    read: ClustersRead<'_>,
    form: Form,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let snapshot = listed(gateway)?;
    match read {
        ClustersRead::Get(name) if name.as_str() == LOCAL => Ok(ok(form.object(&VirtualCluster::local()))),
        ClustersRead::Get(name) => {
            let cluster = registered(gateway, name, not_found)?;
            Ok(ok(form.object(&VirtualCluster::of_spec(cluster.spec()))))
        }
        ClustersRead::List(options) => {
            let selectors = selectors(options)?;
            let ready = snapshot.ready();
            let registered = ready.iter().map(|cluster| cluster.spec()).filter(|spec| spec.name.as_str() != LOCAL);
            let all = std::iter::once(VirtualCluster::local()).chain(registered.map(VirtualCluster::of_spec));
            let clusters = sorted(all.filter(|cluster| cluster.is_selected(&selectors)));
            let metadata = ListMeta { resource_version: snapshot.resource_version(), ..ListMeta::default() };
            Ok(ok(form.list(&clusters, metadata)))
        }
        ClustersRead::Watch(options) => {
            watched(gateway, user, (RESOURCE, Subject::VirtualClusters), (options, form), request)
        }
    }
}
