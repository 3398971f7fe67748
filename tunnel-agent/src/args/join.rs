//! The configuration of a cluster that joins a hub.

use std::path::{Path, PathBuf};

use api::ocm_agent::is_cluster;
use net::random::identifier;

use super::Args;

/// Limit of a Secret's name (RFC 1123 subdomain).
const LONGEST_NAME: usize = 253;

/// A cluster that joins a hub.
#[derive(Debug, Clone)]
pub struct JoinConfig {
    /// Kubeconfig of the hub, with the right to ask to join it.
    pub bootstrap: PathBuf,
    pub state_dir: PathBuf,
    /// The state directory exists for one run only: the Secret holds what outlives it.
    pub is_for_one_run: bool,
    /// A Secret of the member with the same files.
    pub state_secret: Option<SecretName>,
    pub member: Member,
    /// The member's account whose tokens the hub gets.
    pub credential: Option<SecretName>,
    /// Address at which clients of the hub reach the member's API server.
    pub member_url: Option<String>,
}

/// A Secret, or a ServiceAccount: `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    pub namespace: String,
    pub name: String,
}

/// How to reach the member's own API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    Kubeconfig(PathBuf),
    InCluster,
    /// Not at all.
    Unknown,
}

// === impl JoinConfig ===

impl JoinConfig {
    /// None without `--register`, or if an argument is invalid.
    pub(super) fn new(args: &Args, in_pod: bool, wrong: &mut Vec<String>) -> Option<Self> {
        let join = args.join.register.then_some(&args.join)?;
        let mistakes = wrong.len();
        check(args, wrong);
        let is_for_one_run = join.state_dir.is_none() && join.state_secret.is_some();
        let state_dir = if is_for_one_run { Some(for_one_run()) } else { join.state_dir.clone() };
        if state_dir.is_none() {
            wrong.push(
                "--register needs --state-dir, a directory that outlives the agent's runs, or --state-secret, a Secret \
                 of this cluster"
                    .into(),
            );
        }
        let member = Member::of(join.kubeconfig.as_deref(), in_pod);
        let mut named = |text: &Option<String>, flag: &str, what: &str| {
            let parsed = text.as_deref().map(|text| SecretName::parse(text, flag));
            if let Some(Err(why)) = &parsed {
                wrong.push(why.clone());
            }
            if parsed.is_some() && member == Member::Unknown {
                wrong.push(format!("{flag} is a {what} of this cluster: give --kubeconfig outside a pod"));
            }
            parsed.and_then(Result::ok)
        };
        let state_secret = named(&join.state_secret, "--state-secret", "Secret");
        let credential = named(&join.credential_service_account, "--credential-service-account", "ServiceAccount");
        if wrong.len() > mistakes {
            return None;
        }
        Some(Self {
            bootstrap: join.bootstrap_kubeconfig.clone()?,
            state_dir: state_dir?,
            is_for_one_run,
            state_secret,
            credential,
            member,
            member_url: join.member_api_url.clone(),
        })
    }
}

/// Flags that exclude `--register`, or are invalid with it.
fn check(args: &Args, wrong: &mut Vec<String>) {
    let (join, credential) = (&args.join, &args.credential);
    if credential.cert_file.is_some() || credential.key_file.is_some() || credential.token_file.is_some() {
        wrong.push("--register brings the credential: give no --cert-file, --key-file or --token-file".into());
    }
    if let Some(name) = args.servers.cluster.as_deref().filter(|name| !is_cluster(name)) {
        wrong.push(format!(
            "--cluster={name}: a cluster that joins becomes a namespace of the hub: at most 63 lower case letters, \
             digits and \"-\", not at the ends"
        ));
    }
    if let Some(url) = join.member_api_url.as_deref().filter(|url| !url.starts_with("https://")) {
        wrong.push(format!("--member-api-url={url} is not an https URL"));
    }
    if join.bootstrap_kubeconfig.is_none() {
        wrong.push("--register needs --bootstrap-kubeconfig: a kubeconfig of the hub".into());
    }
}

/// No other user can know the directory's name before it exists.
fn for_one_run() -> PathBuf {
    std::env::temp_dir().join(format!("tunnel-agent-{}", identifier()))
}

// === impl Member ===

impl Member {
    fn of(kubeconfig: Option<&Path>, in_pod: bool) -> Self {
        match (kubeconfig, in_pod) {
            (Some(path), _) => Self::Kubeconfig(path.to_owned()),
            (None, true) => Self::InCluster,
            (None, false) => Self::Unknown,
        }
    }
}

// === impl SecretName ===

impl SecretName {
    fn parse(text: &str, flag: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(fits)
        };
        let parts = text.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
        let parts = parts.ok_or_else(|| format!("{flag}={text} is not NAMESPACE/NAME"));
        parts.map(|(namespace, name)| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}
