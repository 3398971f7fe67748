//! Why an object registers no cluster.

use api::secret::{InvalidEndpoint, InvalidProxyUrl, SecretError};
use net::tls::keypair::KeyPairError;

/// Why an object registers no cluster. A text follows "the kubeconfig is refused: " or the like.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("it is larger than {} KiB: leave one context in it", .0 >> 10)]
    TooLarge(usize),
    #[error("it is not UTF-8 text")]
    NotText,
    /// Parsers quote the lines around a mistake, which may hold credentials: only its place is
    /// told.
    #[error(
        "it is not the YAML of a kubeconfig, near line {line}, column {column} (a key may stand once in a map, and \
         anchors are not allowed): correct it"
    )]
    Syntax { line: u64, column: u64 },
    #[error("it has no contexts: add one, and name it in current-context")]
    NoContext,
    #[error("current-context is not set, and there are several contexts: set it")]
    NoCurrentContext,
    #[error("{0} names nothing in the file: correct it")]
    Missing(&'static str),
    #[error("{0} is empty: set it")]
    Empty(&'static str),
    #[error("{0} names a file, which would be one of this program's machine: put its content into {0}-data")]
    File(&'static str),
    #[error("tokenFile names a file, which would be one of this program's machine: put its content into token")]
    TokenFile,
    #[error("{0} is not supported: use a client certificate, a token or an exec plugin")]
    Unsupported(&'static str),
    #[error("{0} is not supported: the gateway itself decides as whom requests are made")]
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
    #[error("exec stands beside another credential: leave one")]
    ExecBesideOther,
    #[error("exec.command is not among --exec-commands: add it there, and to the gateway's own")]
    ExecCommand,
    #[error("{0} is set, which --allow-insecure would have to allow: set {1} instead")]
    Insecure(&'static str, &'static str),
    #[error("{0}: {1}")]
    Url(&'static str, #[source] InvalidEndpoint),
    #[error("{0}: {1}")]
    ProxyUrl(&'static str, #[source] InvalidProxyUrl),
    #[error("{0} is an address that --deny-endpoints denies: use one that other machines reach it by")]
    Denied(&'static str),
    #[error("{0} leads through the gateway itself: use the cluster's own address")]
    Loop(&'static str),
    #[error("{0}")]
    Secret(#[from] SecretError),
    #[error("it is of another kind than this source reads")]
    Kind,
    #[error("its apiVersion is none that this program knows ({}): serve one of them", .0.join(", "))]
    Version(&'static [&'static str]),
    #[error("{0} has another type than this program knows: is it of another version?")]
    Shape(&'static str),
    #[error("data of the Secret has a key that is none: letters, digits, '-', '_' and '.' make one")]
    DataKey,
    #[error("key {0:?} of the Secret is not base64")]
    Data(String),
    #[error("the Secret has no key {0:?}, or it is empty: set it")]
    NoKey(&'static str),
    #[error("the Secret is of another type than {0} and Opaque: store the credential in one of these")]
    Type(&'static str),
    #[error("the Secret is a cluster's already: leave its label out of the selector")]
    IsCluster,
    #[error("the Secret's label {0} does not name this cluster: set it")]
    Label(&'static str),
    #[error(
        "the Secret has no owner reference to this Cluster, with its uid, or to its control plane: Cluster API sets one"
    )]
    Owner,
    #[error("{0} names no Secret: set its name, and its namespace where there is one")]
    Reference(&'static str),
    #[error(
        "the Secret of {0} is the token of a ServiceAccount of the control plane it stands on, and no member's: copy \
         the member's token into a Secret of type Opaque"
    )]
    OfHub(&'static str),
    #[error("{0} is neither {1}")]
    Choice(&'static str, &'static str),
    #[error(
        "spec.proxyHeader is supported with one header, Proxy-Authorization of scheme Basic, for proxies of http and \
         https whose URL has no user: write user and password into spec.proxyURL"
    )]
    ProxyHeader,
    #[error("spec.disabledTLSValidations has * beside others: leave * alone")]
    AllAndOthers,
    #[error(
        "spec.disabledTLSValidations SubjectName is not supported: register the cluster by a kubeconfig with \
         tls-server-name, the name that its certificate has"
    )]
    SubjectName,
    #[error("spec.disabledTLSValidations ValidityPeriod is not supported: give the cluster a new certificate")]
    ValidityPeriod,
    #[error(
        "the Secret is no ManagedServiceAccount's of this cluster: it is in another namespace than the cluster's, or \
         has not the label authentication.open-cluster-management.io/is-managed-serviceaccount=true"
    )]
    NotOfAccount,
    #[error("the profile is one that this program writes: there is nothing to import")]
    OwnProfile,
    #[error(
        "the extension client.authentication.k8s.io/exec is for the provider's program, and a cluster Secret has no \
         place for it: use a provider whose program does without (provideClusterInfo: false)"
    )]
    ClusterConfig,
    #[error(
        "{0} sets PATH or a variable of the dynamic loader (LD_*), which decide what is run: set it where the gateway runs"
    )]
    Variable(&'static str),
}
