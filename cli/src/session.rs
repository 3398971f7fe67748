//! The hub as the person reaches it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fleet::{Failure, Fleet, Limits, answer, bounded};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::trouble::{Result, Trouble};
use crate::{contexts, span};

/// Most clusters asked at the same time.
pub const AT_ONCE: usize = 16;
/// Interval between two checks of something that takes seconds to become true.
pub const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// Largest response to one request, in bytes.
const LARGEST: usize = 64 << 20;
/// Largest response that holds one fact, in bytes: 16 clusters are asked for it at a time.
const SMALL: usize = 64 << 10;
const NAME: &str = concat!("kubectl-clusters/", env!("CARGO_PKG_VERSION"));

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Kubeconfig of the hub [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the hub in it [default: the current one]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the clusters' Secrets on the hub [default: read from the gateway's Deployment]
    #[arg(long, global = true, value_name = "NAMESPACE")]
    pub clusters_namespace: Option<String>,
    /// Timeout per request; in `list`, `get` and `check`, of all requests to one cluster
    #[arg(long, global = true, value_name = "TIME", default_value = "10s", value_parser = span::parse)]
    pub request_timeout: Duration,
    /// Cancelled at Ctrl-C. A command that is still polled then starts nothing more, and ends soon.
    #[arg(skip)]
    pub interrupted: CancellationToken,
}

/// The hub, as the user of the person's kubeconfig.
#[derive(Clone)]
pub struct Session {
    pub fleet: Fleet,
    pub kubeconfig: Kubeconfig,
    /// Name of the hub's context in the kubeconfig.
    pub context: String,
    pub options: Options,
    hub_uid: Arc<OnceCell<String>>,
}

// === impl Session ===

impl Session {
    /// Reads the kubeconfig. Sends nothing.
    pub async fn open(options: Options) -> Result<Self> {
        let kubeconfig = contexts::read(options.kubeconfig.as_deref())?;
        let context = contexts::named(&kubeconfig, options.context.as_deref())?.name.clone();
        let config = config(&kubeconfig, &context, options.request_timeout).await?;
        let fleet = Fleet::new(connected(config, &context)?).listing_within(options.request_timeout);
        Ok(Self { fleet, kubeconfig, context, options, hub_uid: Arc::default() })
    }

    /// The hub's client.
    pub fn hub(&self) -> &Client {
        self.fleet.hub()
    }

    /// Identifies the hub: the uid of its Namespace `kube-system`.
    pub async fn hub_uid(&self) -> Result<&str> {
        let ask = || async {
            let namespaces: Api<Namespace> = Api::all(self.hub().clone());
            let found = self.within(namespaces.get("kube-system")).await.map_err(unidentified)?;
            found.metadata.uid.ok_or_else(|| Trouble::failed("the hub's Namespace kube-system has no uid", ""))
        };
        self.hub_uid.get_or_try_init(ask).await.map(String::as_str)
    }

    /// Limits of operations over many clusters, with one request for each.
    pub fn limits(&self) -> Limits {
        Limits { at_once: AT_ONCE, within: self.options.request_timeout }
    }

    /// Awaits `asked`, within the time limit of one request and until Ctrl-C.
    pub async fn within<T, E: Into<Trouble>>(
        &self,
        asked: impl Future<Output = std::result::Result<T, E>>,
    ) -> Result<T> {
        let span = self.options.request_timeout;
        let Some(outcome) = self.options.interrupted.run_until_cancelled(timeout(span, asked)).await else {
            return Err(Trouble::interrupted());
        };
        let Ok(outcome) = outcome else {
            return Err(Trouble::late(span));
        };
        outcome.map_err(Into::into)
    }

    /// Awaits `asked`, within the time limit of one request. Its failures name the side that
    /// failed.
    pub async fn bounded<T>(
        &self,
        asked: impl Future<Output = std::result::Result<T, Failure>>,
    ) -> std::result::Result<T, Failure> {
        let span = self.options.request_timeout;
        timeout(span, asked).await.unwrap_or_else(|_| Err(Failure::late(span)))
    }
}

/// Without its uid, this hub's accounts on members look like those of other hubs.
fn unidentified(trouble: Trouble) -> Trouble {
    let trouble = trouble.when("cannot identify this hub");
    if !trouble.is_forbidden() {
        return trouble;
    }
    trouble.remedied("ask the hub's administrator for the verb get on the namespace kube-system")
}

/// A client for another context: a member, as the person reaches it.
pub async fn client(kubeconfig: &Kubeconfig, context: &str, connecting: Duration) -> Result<(Client, Config)> {
    let config = config(kubeconfig, context, connecting).await?;
    Ok((connected(config.clone(), context)?, config))
}

/// Limits the size of responses, so that no server can fill the memory.
fn connected(config: Config, context: &str) -> Result<Client> {
    let client = Client::try_from(config).map_err(|error| unusable(context, &Failure::from(error).message))?;
    Ok(bounded(client, LARGEST))
}

async fn config(kubeconfig: &Kubeconfig, context: &str, connecting: Duration) -> Result<Config> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
    let mut config = config.map_err(|error| unusable(context, &hub::client::mistake(&error)))?;
    config.connect_timeout = Some(connecting);
    // By default, kube repeats each request to an unreachable member, up to 15 times.
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(NAME)));
    Ok(config)
}

fn unusable(context: &str, what: &str) -> Trouble {
    Trouble::usage(
        format!("context {context:?} cannot be used: {what}"),
        format!("check that `kubectl --context {context} version` works"),
    )
}

/// The response to a GET of `path`, in the form that `accept` asks for.
pub async fn get(client: &Client, path: &str, accept: &str) -> std::result::Result<Bytes, Failure> {
    send(client, Request::get(path).header(ACCEPT, accept).body(Body::empty()), LARGEST).await
}

/// The response to a GET of `path`, in JSON and of at most 64 KiB.
pub async fn get_small(client: &Client, path: &str) -> std::result::Result<Bytes, Failure> {
    send(client, Request::get(path).header(ACCEPT, JSON).body(Body::empty()), SMALL).await
}

/// The response to a POST of a JSON document to `path`, of at most 64 KiB.
pub async fn post(client: &Client, path: &str, document: &serde_json::Value) -> std::result::Result<Bytes, Failure> {
    let request = Request::builder().method(Method::POST).uri(path).header(ACCEPT, JSON).header(CONTENT_TYPE, JSON);
    send(client, request.body(Body::from(document.to_string().into_bytes())), SMALL).await
}

async fn send(
    client: &Client,
    request: http::Result<Request<Body>>,
    most: usize,
) -> std::result::Result<Bytes, Failure> {
    answer(&client.clone().into(), request.map_err(|error| Failure::own(error.to_string()))?, most).await
}

pub const JSON: &str = "application/json";
