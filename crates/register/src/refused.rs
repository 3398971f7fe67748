//! Why an object registers no cluster.

use api::secret::{InvalidEndpoint, InvalidProxyUrl, SecretError};
use net::tls::keypair::KeyPairError;

/// Why an object registers no cluster. A text follows "the kubeconfig is refused: " or the like.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("it is larger than {} KiB: leave one context in it", .0 >> 10)]
    TooLarge(usize),
    #[error(
        "it has more than {} KiB in the fields that are read, or very many labels or annotations: shorten its CA bundles, \
         list fewer addresses, or remove labels or annotations", .0 >> 10
    )]
    LongFields(u64),
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("its token is longer than {} KiB, which no API server accepts: put the right token there", .0 >> 10)]
    LongToken(usize),
    /// Parsers quote the lines around a mistake, which may hold credentials: the text has only the
    /// position.
    #[error(
        "it is not a kubeconfig in YAML, near line {line}, column {column} (keys must be unique, and anchors are not \
         allowed): correct it"
    )]
    Syntax { line: u64, column: u64 },
    #[error("it has no contexts: add one, and name it in current-context")]
    NoContext,
    #[error("current-context is not set, and there are several contexts: set it")]
    NoCurrentContext,
    #[error("{0} names an entry that is not in the file: correct it")]
    Missing(&'static str),
    #[error("{0} is empty: set it")]
    Empty(&'static str),
    #[error("{0} names a file, which would be on this program's machine: put its content into {0}-data")]
    File(&'static str),
    #[error("tokenFile names a file, which would be on this program's machine: put its content into token")]
    TokenFile,
    #[error("{0} is not supported: use a client certificate, a token or an exec plugin")]
    Unsupported(&'static str),
    #[error("{0} is not supported: the gateway itself chooses the identity of requests")]
    Impersonation(&'static str),
    #[error("{0} is not base64")]
    NotBase64(&'static str),
    #[error("{0}: {1}")]
    Authority(&'static str, #[source] KeyPairError),
    #[error("client-certificate-data and client-key-data: {0}")]
    KeyPair(#[source] KeyPairError),
    #[error("{0} is set without {1}: set both")]
    Half(&'static str, &'static str),
    #[error("the user has no credential: set client-certificate-data and client-key-data, token or exec")]
    NoCredential,
    #[error("exec and another credential are both set: remove one")]
    ExecBesideOther,
    #[error(
        "exec.command is not among --exec-commands, or its arguments begin with other words than listed there: add it \
         there, and the program to the gateway's own"
    )]
    ExecCommand,
    #[error("{0} is set, but --allow-insecure is not: set {1} instead")]
    Insecure(&'static str, &'static str),
    #[error("{0}: {1}")]
    Url(&'static str, #[source] InvalidEndpoint),
    #[error("{0}: {1}")]
    ProxyUrl(&'static str, #[source] InvalidProxyUrl),
    #[error("{0} is an address that --deny-endpoints denies: use one that other machines can reach")]
    Denied(&'static str),
    #[error("{0} points to the gateway itself: use the cluster's own address")]
    Loop(&'static str),
    #[error("{0}")]
    Secret(#[from] SecretError),
    #[error("its kind is not the one that this source reads")]
    Kind,
    #[error("its apiVersion is not supported ({}): serve one of these", .0.join(", "))]
    Version(&'static [&'static str]),
    #[error("{0} has an unexpected type: check that the object is of a supported version")]
    Shape(&'static str),
    #[error("data of the Secret has an invalid key: use only letters, digits, '-', '_' and '.'")]
    DataKey,
    #[error("key {0:?} of the Secret is not base64")]
    Data(String),
    #[error("the Secret has no key {0:?}, or it is empty: set it")]
    NoKey(&'static str),
    #[error("the Secret's type is neither {0} nor Opaque: store the credential in one of these")]
    Type(&'static str),
    #[error("the Secret itself registers a cluster: exclude its label from the selector")]
    IsCluster,
    #[error("the Secret's label {0} does not name this cluster: set it")]
    Label(&'static str),
    #[error(
        "the Secret has no owner reference to this Cluster, with its UID, or to its control plane: Cluster API sets one"
    )]
    Owner,
    #[error("{0} names no Secret: set its name, and its namespace if it has one")]
    Reference(&'static str),
    #[error(
        "the Secret of {0} is the token of a ServiceAccount of its own control plane, not a member's: copy the \
         member's token into a Secret of type Opaque"
    )]
    OfHub(&'static str),
    #[error("{0} names a Secret outside of the namespace {1}, where these credentials are kept: copy it there")]
    Elsewhere(&'static str, &'static str),
    #[error("the Secret of {0} is a registered cluster's: its credential is not given to another")]
    OfCluster(&'static str),
    #[error("the Secret of {0} has another type than Opaque: copy the token into one of type Opaque")]
    NotOpaque(&'static str),
    #[error("{0} is neither {1}")]
    Choice(&'static str, &'static str),
    #[error(
        "spec.proxyHeader supports only one header, Proxy-Authorization with scheme Basic, for http and https \
         proxies whose URL has no user: write user and password into spec.proxyURL"
    )]
    ProxyHeader,
    #[error("spec.disabledTLSValidations has * and others: use only *")]
    AllAndOthers,
    #[error(
        "spec.disabledTLSValidations SubjectName is not supported: register the cluster with a kubeconfig whose \
         tls-server-name is the name in its certificate"
    )]
    SubjectName,
    #[error("spec.disabledTLSValidations ValidityPeriod is not supported: give the cluster a new certificate")]
    ValidityPeriod,
    #[error(
        "the Secret does not belong to a ManagedServiceAccount of this cluster: it is not in the cluster's \
         namespace, or lacks the label authentication.open-cluster-management.io/is-managed-serviceaccount=true"
    )]
    NotOfAccount,
    #[error("this program writes the profile: there is nothing to import")]
    OwnProfile,
    #[error(
        "the extension client.authentication.k8s.io/exec is for the provider's program, and a cluster Secret cannot \
         hold it: use a provider whose program does not need it (provideClusterInfo: false)"
    )]
    ClusterConfig,
    #[error(
        "{0} sets a variable that is not among --exec-env, and a variable may decide what is run: set it where the \
         gateway runs, or list it"
    )]
    Variable(&'static str),
}
