//! The spellings in which a gateway is asked for members, so that a scenario is written once for
//! all.

use kit::client::Client;

use crate::testbed::Reachable;
use crate::{CLUSTER, Connection, Http, Testbed, TestbedBuilder, cluster, proxied};

/// One spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Native,
    Kcp,
    UserServer,
    Karmada,
}

// === impl Dialect ===

impl Dialect {
    /// A gateway that serves it, and no other but the native one.
    #[must_use]
    pub fn on(self, builder: TestbedBuilder) -> TestbedBuilder {
        match self {
            Self::Native => builder,
            Self::Kcp => builder.arg("--kcp-dialect"),
            Self::UserServer => builder.arg("--ocm-user-server-listen=127.0.0.1:0"),
            // Otherwise, members are asked for the identities that their credentials may
            // impersonate.
            Self::Karmada => builder.arg("--karmada-dialect=standalone").arg("--karmada-forward-all-groups"),
        }
    }

    /// As [`Testbed::with`], and it serves this spelling.
    pub async fn testbed(self, member: &impl Reachable) -> Testbed {
        self.on(Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, member))).start().await
    }

    /// The gateway's path to `rest` (path and query) of [`CLUSTER`].
    pub fn path(self, rest: &str) -> String {
        self.path_of(CLUSTER, rest)
    }

    /// The gateway's path to `rest` of `cluster`, as one that knows the spelling writes it.
    pub fn path_of(self, cluster: &str, rest: &str) -> String {
        match self {
            Self::Native => proxied(cluster, rest),
            Self::Kcp => format!("/clusters/{}{rest}", cluster.replace('.', ":")),
            Self::UserServer => format!("/{cluster}{rest}"),
            Self::Karmada => format!("/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy{rest}"),
        }
    }

    /// A client without any credential, where `testbed` serves it.
    pub fn client(self, testbed: &Testbed) -> Client {
        match self {
            Self::UserServer => testbed.user_server_client(None),
            Self::Native | Self::Kcp | Self::Karmada => testbed.client(),
        }
    }

    /// A new connection without any credential.
    pub async fn connect(self, testbed: &Testbed, http: Http) -> Connection {
        http.connect(&self.client(testbed)).await.expect("the gateway accepts connections")
    }

    /// Its name in metrics and the audit log.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Kcp => Some("kcp"),
            Self::UserServer => Some("ocm-user-server"),
            Self::Karmada => Some("karmada"),
        }
    }

    /// Group and resource with the reviewed subresource `proxy`.
    pub fn reviewed(self) -> (&'static str, &'static str) {
        match self {
            Self::Native | Self::Kcp | Self::UserServer => ("cluster.core.oam.dev", "clustergateways"),
            Self::Karmada => ("cluster.karmada.io", "clusters"),
        }
    }
}

/// Makes one test of each named `async fn(Dialect)` for each spelling.
#[macro_export]
macro_rules! across_dialects {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            use $crate::Dialect;

            #[tokio::test]
            async fn native() {
                Box::pin(super::$scenario(Dialect::Native)).await;
            }

            #[tokio::test]
            async fn kcp() {
                Box::pin(super::$scenario(Dialect::Kcp)).await;
            }

            #[tokio::test]
            async fn user_server() {
                Box::pin(super::$scenario(Dialect::UserServer)).await;
            }

            #[tokio::test]
            async fn karmada() {
                Box::pin(super::$scenario(Dialect::Karmada)).await;
            }
        }
    )+};
}
