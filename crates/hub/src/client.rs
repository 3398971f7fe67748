//! Clients of the hub, with the same settings in every program.

mod kubeconfig;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::USER_AGENT;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use kube::config::{AuthInfo, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use self::kubeconfig::{ca, pem};
use super::{bounded, streamed};

pub use self::kubeconfig::{ca_file, handed_over, mistake};
pub(super) use self::kubeconfig::{current_cluster, current_user};

/// Time limit for a connection to the hub. The caller retries with back-off.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A hub that is silent for longer than this is dead. It is above the 290 s after which the hub
/// itself ends a watch.
pub(super) const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// Why there is no client. The texts quote nothing from the files, because those hold credentials.
#[derive(Debug, thiserror::Error)]
pub enum HubClientError {
    #[error("no kubeconfig given and not running in a pod")]
    InCluster(#[source] InClusterError),
    #[error("kubeconfig {path}: {what}")]
    Kubeconfig { path: PathBuf, what: String },
    #[error("{url} is not an https URL")]
    Url { url: String },
    #[error("no CA certificate in {path}: {what}")]
    Ca { path: PathBuf, what: String },
    #[error("the User-Agent cannot be sent in a header")]
    UserAgent,
    #[error("tls-server-name of the kubeconfig is not a DNS name")]
    ServerName,
    #[error("cannot set up the client for the hub")]
    Client(#[source] kube::Error),
}

/// The first kubeconfig that kubectl would read, and the one where kubectl puts new contexts: the
/// first of `KUBECONFIG`, or `~/.kube/config`. `None` if there is no home directory.
pub fn first_kubeconfig() -> Option<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG");
    let first = listed.as_ref().and_then(|list| std::env::split_paths(list).find(|path| !path.as_os_str().is_empty()));
    first.or_else(|| Some(std::env::home_dir()?.join(".kube/config")))
}

/// Whether this process runs in a pod, so that its cluster can be the hub: [`client`] finds there
/// what it needs without a kubeconfig.
pub fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
        && Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token").exists()
}

/// The domain of the cluster whose pod this process runs in, such as `cluster.local`. `None`: it
/// runs in no pod, or in one that resolves names in another way.
pub fn domain() -> Option<String> {
    if !is_in_pod() {
        return None;
    }
    searched(&std::fs::read_to_string("/etc/resolv.conf").ok()?)
}

/// The domain in `search NAMESPACE.svc.DOMAIN svc.DOMAIN DOMAIN`, which the kubelet writes. The
/// namespace may be `svc`, too.
fn searched(resolver: &str) -> Option<String> {
    let lines = resolver.lines().filter_map(|line| line.trim_start().strip_prefix("search "));
    let names: Vec<&str> = lines.flat_map(str::split_ascii_whitespace).collect();
    let mut pairs = names.iter().zip(names.iter().skip(1));
    let (_, services) = pairs.find(|(first, second)| second.starts_with("svc.") && first.ends_with(**second))?;
    let domain = services.strip_prefix("svc.")?.trim_end_matches('.').to_ascii_lowercase();
    (!domain.is_empty()).then_some(domain)
}

/// A client for `kubeconfig`, or for the cluster that this process runs in. `user_agent` is its
/// User-Agent. Must be called on the runtime that drives the client. Reads tokens of pods, and
/// tokens that the kubeconfig names by file, again when they change. A response of more than 128
/// MiB, or a watch event of more than 10 MiB, ends with an error. If the hub does not send lists as
/// [`crate::watcher()`] asks for them, it refuses such requests itself for some minutes. Watches
/// that callers word are for [`watch_client`], which passes them on.
pub async fn client(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Client, HubClientError> {
    let mut config = config(kubeconfig, user_agent).await?;
    config.read_timeout = Some(READ_TIMEOUT);
    streamed::client(config).map_err(HubClientError::Client)
}

/// Like [`client`], for watches of any length: these may be silent for as long as nothing happens.
pub async fn watch_client(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Client, HubClientError> {
    bounded::client(config(kubeconfig, user_agent).await?).map_err(HubClientError::Client)
}

/// Like [`watch_client`], without limits on responses: the caller sets its own.
pub async fn unbounded_client(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Client, HubClientError> {
    Client::try_from(config(kubeconfig, user_agent).await?).map_err(HubClientError::Client)
}

/// Where [`client`] would find the hub.
pub async fn url(kubeconfig: Option<&Path>) -> Result<String, HubClientError> {
    Ok(read(kubeconfig).await?.cluster_url.to_string())
}

/// Another server than the hub that believes the hub's credentials: the gateway itself.
#[derive(Debug)]
pub struct Server<'a> {
    pub url: &'a str,
    /// PEM. `None` is the hub's CA.
    pub ca_file: Option<&'a Path>,
    /// `None` is the credential for the hub.
    pub token_file: Option<PathBuf>,
}

/// The client settings for `server`. Its files are read again when they change.
pub(super) async fn config_of_server(
    kubeconfig: Option<&Path>,
    server: Server<'_>,
    user_agent: &str,
) -> Result<Config, HubClientError> {
    let mut config = config(kubeconfig, user_agent).await?;
    let url = server.url.parse().ok().filter(|url: &Uri| url.scheme() == Some(&Scheme::HTTPS));
    config.cluster_url = url.ok_or_else(|| HubClientError::Url { url: server.url.to_owned() })?;
    // These are the hub's settings. Verification must be on, because our credential goes there.
    config.tls_server_name = None;
    config.proxy_url = None;
    config.accept_invalid_certs = false;
    if let Some(path) = server.ca_file {
        config.root_cert = Some(ca(path)?);
        // The pod's own CA file would take precedence. This file is read again when it changes.
        config.root_cert_file = Some(path.to_owned());
    }
    if let Some(file) = server.token_file {
        let token_file = Some(file.to_string_lossy().into_owned());
        config.auth_info = AuthInfo { token_file, ..AuthInfo::default() };
    }
    Ok(config)
}

/// rustls takes its crypto provider from the process. kube's clients set the same one.
pub(super) fn with_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster, which installed the same provider.
        let _ = aws_lc_rs::default_provider().install_default();
    }
}

/// The hub's address and how to verify its certificate, for clients that get the address from us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// Without a trailing slash.
    pub url: String,
    /// PEM. `None` is the system's roots.
    pub ca: Option<Vec<u8>>,
    pub tls_server_name: Option<String>,
    pub proxy_url: Option<String>,
    /// Whether its certificate is not verified.
    pub is_insecure: bool,
}

/// The address of the hub in `kubeconfig`, or of the cluster that this process runs in.
pub async fn address(kubeconfig: Option<&Path>) -> Result<Address, HubClientError> {
    let config = config(kubeconfig, "").await?;
    let certificates = config.root_cert.unwrap_or_default();
    Ok(Address {
        url: without_user(&config.cluster_url).trim_end_matches('/').to_owned(),
        ca: (!certificates.is_empty()).then(|| certificates.iter().flat_map(|certificate| pem(certificate)).collect()),
        tls_server_name: config.tls_server_name,
        proxy_url: config.proxy_url.as_ref().map(without_user),
        is_insecure: config.accept_invalid_certs,
    })
}

/// A URL without its userinfo, which is a credential.
fn without_user(url: &Uri) -> String {
    let text = url.to_string();
    match url.authority().map(Authority::as_str).and_then(|authority| Some((authority, authority.rsplit_once('@')?.1)))
    {
        Some((authority, host)) => text.replacen(authority, host, 1),
        None => text,
    }
}

pub(super) async fn config(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Config, HubClientError> {
    let mut config = read(kubeconfig).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // The call site decides about retries: a hidden retry would multiply with its own.
    config.default_retry = false;
    let user_agent = HeaderValue::from_str(user_agent).map_err(|_| HubClientError::UserAgent)?;
    config.headers.push((USER_AGENT, user_agent));
    Ok(config)
}

async fn read(kubeconfig: Option<&Path>) -> Result<Config, HubClientError> {
    match kubeconfig {
        Some(path) => from_file(path).await,
        None => Config::incluster().map_err(HubClientError::InCluster),
    }
}

async fn from_file(path: &Path) -> Result<Config, HubClientError> {
    let told = |error: KubeconfigError| HubClientError::Kubeconfig { path: path.to_owned(), what: mistake(&error) };
    let kubeconfig = Kubeconfig::read_from(path).map_err(told)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clusters_domain_is_what_the_kubelet_tells_resolvers() {
        let domain = |search: &str| searched(&format!("nameserver 10.96.0.10\n{search}\noptions ndots:5\n"));
        assert_eq!(
            domain("search ns.svc.Cluster.local svc.Cluster.local Cluster.local x.example"),
            Some("cluster.local".into())
        );
        assert_eq!(domain("search ns.svc.corp.example. svc.corp.example. corp.example."), Some("corp.example".into()));
        assert_eq!(domain("search svc.svc.corp.example svc.corp.example corp.example"), Some("corp.example".into()));
        let comment = "# search ns.svc.corp.example svc.corp.example";
        for none in ["", "search", "search corp.example", "search ns.svc. svc.", comment] {
            assert_eq!(domain(none), None, "{none}");
        }
    }

    #[test]
    fn a_kubeconfig_is_never_quoted() {
        for broken in [
            "users:\n- name: a\n  user:\n    token: CANARY\n    username: [x]y\n",
            "users: [{token: CANARY",
            "token: \"CANARY",
        ] {
            let error = Kubeconfig::from_yaml(broken).unwrap_err();
            let text = mistake(&error);
            assert!(text.contains("line") && !text.contains("CANARY"), "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_missing_is_named() {
        let told = client(Some(Path::new("/nowhere/hub.yaml")), "test").await.err().unwrap().to_string();
        assert!(told.contains("/nowhere/hub.yaml"), "{told}");
    }

    #[tokio::test]
    async fn the_files_of_another_server_are_named_when_they_are_no_use() {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("hub.yaml");
        let text = "{clusters: [{name: h, cluster: {server: https://hub}}], users: [{name: u, user: {token: t}}],
            contexts: [{name: c, context: {cluster: h, user: u}}], current-context: c}";
        std::fs::write(&kubeconfig, text).unwrap();
        let of = async |url: &str, ca: Option<&Path>| {
            let server = Server { url, ca_file: ca, token_file: None };
            config_of_server(Some(&kubeconfig), server, "test").await.err().map(|error| error.to_string())
        };
        let empty = directory.path().join("empty.crt");
        std::fs::write(&empty, "nothing").unwrap();
        for (url, ca, part) in [
            ("http://g", None, "http://g is not an https URL"),
            ("https://a b", None, "https://a b is not an https URL"),
            ("https://g", Some(&empty), "empty.crt"),
        ] {
            let told = of(url, ca.map(|path| &**path)).await.unwrap();
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(of("https://gateway:8443", None).await, None);
    }

    #[test]
    fn what_was_handed_over_runs_nothing_and_reads_nothing_here() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bootstrap.yaml");
        let judged = |server: &str, user: &str| {
            let text = format!(
                "{{clusters: [{{name: h, cluster: {{{server}}}}}], users: [{{name: u, user: {{{user}}}}}],
                contexts: [{{name: c, context: {{cluster: h, user: u}}}}], current-context: c}}"
            );
            std::fs::write(&file, text).unwrap();
            handed_over(&file).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let good = "server: https://hub:6443";
        assert_eq!(judged(good, "token: t"), "");
        assert_eq!(judged(good, "client-certificate-data: YQ==, client-key-data: YQ=="), "");
        for (user, field) in [
            ("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "exec"),
            ("auth-provider: {name: gcp, config: {cmd-path: sh}}", "auth-provider"),
            ("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "tokenFile"),
            ("client-certificate: a.crt, client-key: a.key", "client-certificate"),
        ] {
            assert!(judged(good, user).contains(field), "{user}");
        }
        for (server, field) in [
            ("server: http://hub", "https"),
            ("server: https://hub, insecure-skip-tls-verify: true", "insecure-skip-tls-verify"),
            ("server: https://hub, certificate-authority: /etc/shadow", "certificate-authority"),
        ] {
            assert!(judged(server, "token: t").contains(field), "{server}");
        }
    }

    #[test]
    fn an_address_that_is_told_has_no_credential() {
        for (url, told) in [
            ("http://user:secret@proxy:3128/", "http://proxy:3128/"),
            ("https://hub.example:6443/base", "https://hub.example:6443/base"),
        ] {
            assert_eq!(without_user(&url.parse().unwrap()), told);
        }
    }

    #[tokio::test]
    async fn a_name_that_no_header_can_hold_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hub.yaml");
        let kubeconfig = r#"{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://hub:6443"}}]}"#;
        std::fs::write(&file, kubeconfig).unwrap();
        assert!(matches!(config(Some(&file), "te\nst").await, Err(HubClientError::UserAgent)));
    }
}
