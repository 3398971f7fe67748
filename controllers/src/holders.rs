//! Which names have a Secret, and whose it is: the Secrets of the namespace that holds clusters,
//! without their data.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use net::words::causes;

use crate::registrar::Registrar;
use crate::secrets::{Meta, Secrets};

/// Tells the registrar. Never ends.
pub async fn follow(secrets: Secrets, registrar: Arc<Registrar>) {
    let mut events = pin!(watcher::watcher(secrets.metadata(), watcher::Config::default()).default_backoff());
    let mut listed: Vec<Meta> = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(secret)) => listed.push(secret),
            Ok(Event::InitDone) => registrar.secrets_listed(&std::mem::take(&mut listed)),
            Ok(Event::Apply(secret)) => pass_on(&registrar, &secret, Some(&secret)),
            Ok(Event::Delete(secret)) => pass_on(&registrar, &secret, None),
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    namespace = secrets.namespace(),
                    "cannot watch the Secrets of clusters"
                );
            }
        }
    }
}

fn pass_on(registrar: &Registrar, secret: &Meta, now: Option<&Meta>) {
    if let Some(name) = &secret.metadata.name {
        registrar.secret_changed(name, now);
    }
}
