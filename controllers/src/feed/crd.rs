//! Whether a kind exists: the hub serves it, and its `CustomResourceDefinition`, whose deletion
//! deletes all objects, is not being deleted.

use std::time::Duration;

use hub::cause_text;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::runtime::watcher;
use kube::{Api, Client, discovery};
use net::backoff::Backoff;
use net::follow::Complaints;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::follow::{self, Change};
use crate::calls::paged;
use crate::raw::Meta;
use crate::sources::Kind;

/// Wait between two checks of a kind that is not served: an administrator may be installing it.
const LOOKS: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(10));
/// Timeout of one check.
const WITHIN: Duration = Duration::from_secs(10);

/// State of a kind's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// No definition, or no right to read it. Then discovery decides.
    Unknown,
    There,
    /// Being deleted, or gone.
    Leaving,
}

/// Completes when the kind is being deleted, or is gone.
pub async fn leaves(presence: &mut watch::Receiver<Presence>) {
    if presence.wait_for(|presence| *presence == Presence::Leaving).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Completes when the hub serves a version of the kind that this program understands. Returns the
/// first of those by Kubernetes' order of versions.
pub async fn served(kind: &Kind, client: &Client) -> ApiResource {
    let (mut failures, mut complaints) = (0, Complaints::default());
    loop {
        let cause = match timeout(WITHIN, look(kind, client)).await {
            Ok(Ok(Some(resource))) => return resource,
            Ok(Ok(None)) => "the hub does not serve it in a version that is understood".to_owned(),
            Ok(Err(error)) => cause_text(&error),
            Err(_) => format!("no answer within {} s", WITHIN.as_secs()),
        };
        if let Some(reason) = complaints.new_cause(&cause) {
            tracing::warn!(
                kind = kind.name,
                group = kind.group,
                reason,
                "cannot use a kind of the hub: the sources and parts that need it wait"
            );
        }
        sleep(LOOKS.wait(failures)).await;
        failures = failures.saturating_add(1);
    }
}

/// Whether the kind's definition is being deleted, or gone. False if the hub does not answer.
pub async fn is_leaving(kind: &Kind, client: &Client) -> bool {
    let api: Api<Meta<CustomResourceDefinition>> = Api::all(client.clone());
    let name = format!("{}.{}", kind.plural, kind.group);
    match timeout(WITHIN, api.get_opt(&name)).await {
        Ok(Ok(definition)) => definition.is_none_or(|found| found.metadata.deletion_timestamp.is_some()),
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Whether the hub reports that it serves none of the kind's versions. False if it does not answer.
pub async fn is_absent(kind: &Kind, client: &Client) -> bool {
    matches!(timeout(WITHIN, look(kind, client)).await, Ok(Ok(None)))
}

async fn look(kind: &Kind, client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    if kind.group.is_empty() {
        return Ok(Some(ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&())));
    }
    let group = discovery::group(client, kind.group).await?;
    let versions = group.versions().map(str::to_owned).collect::<Vec<_>>();
    let understood = versions.iter().filter(|version| kind.versions.contains(&version.as_str()));
    Ok(understood.into_iter().find_map(|version| {
        let found = group.versioned_resources(version).into_iter().find(|(resource, _)| resource.kind == kind.name);
        found.map(|(resource, _)| resource)
    }))
}

/// Follows the kind's definition until the receiver is dropped.
pub fn follow(kind: &Kind, client: Client) -> watch::Receiver<Presence> {
    let (presence, followed) = watch::channel(Presence::Unknown);
    if kind.is_custom {
        let name = format!("{}.{}", kind.plural, kind.group);
        tokio::spawn(async move {
            tokio::select! {
                () = send(&presence, client, &name) => {}
                () = presence.closed() => {}
            }
        });
    }
    followed
}

async fn send(presence: &watch::Sender<Presence>, client: Client, name: &str) {
    let api: Api<Meta<CustomResourceDefinition>> = Api::all(client);
    let only = paged().fields(&format!("metadata.name={name}"));
    let found = |definition: &Meta<CustomResourceDefinition>| {
        let is_leaving = definition.metadata.deletion_timestamp.is_some();
        if is_leaving { Presence::Leaving } else { Presence::There }
    };
    let apply = |change: Change<Meta<CustomResourceDefinition>>| {
        presence.send_replace(match change {
            Change::Listed(definitions) => definitions.first().map_or(Presence::Leaving, found),
            Change::Applied(definition) => found(&definition),
            Change::Deleted(_) => Presence::Leaving,
        });
    };
    let failed = |error: &str| {
        tracing::debug!(error, name, "cannot watch the definition");
        // A failed watch does not mean that a deleted definition has come back.
        presence.send_if_modified(|now| {
            let is_there = *now == Presence::There;
            if is_there {
                *now = Presence::Unknown;
            }
            is_there
        });
    };
    follow::each_or(watcher(api, only), failed, follow::whole(apply)).await;
}

#[cfg(test)]
mod tests {
    use std::io;

    use kube::Config;
    use tokio::sync::mpsc;

    use super::*;
    use crate::sources::MANAGED_CLUSTERS;

    /// Sends the log, line by line.
    struct Lines(mpsc::UnboundedSender<String>);

    impl io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(line).into_owned());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The text of kube's errors leaves out the cause.
    #[tokio::test]
    async fn a_watch_that_fails_is_logged_with_its_cause() {
        let (sender, mut lines) = mpsc::unbounded_channel();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
        let _guard = tracing::subscriber::set_default(log.with_writer(move || Lines(sender.clone())).finish());
        let closed = Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let _presence = follow(&MANAGED_CLUSTERS, Client::try_from(closed).expect("a client"));
        let line = loop {
            let line = lines.recv().await.expect("a line");
            if line.contains("cannot watch the definition") {
                break line;
            }
        };
        assert!(line.to_lowercase().contains("connection refused"), "{line}");
    }
}
