//! Scenarios over all protocol versions: a scenario is one function, its tests are made by a macro.
//!
//! ```text
//! across_versions!(bodies_arrive);
//!
//! async fn bodies_arrive(versions: Versions) { … }
//! ```

use kit::client::Client;
use kit::member::{FakeMember, MemberOptions};
use kit::pki::{ALPN_BOTH, ALPN_H1};

use crate::Connection;

/// An HTTP version on one side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
}

/// The versions on both sides of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The client's protocol with the gateway.
    pub client: Http,
    /// The member's protocols: both for [`Http::H2`], HTTP/1.1 alone for [`Http::H1`].
    pub member: Http,
}

// === impl Http ===

impl Http {
    /// Options of a member that speaks this at best.
    pub fn member_options(self) -> MemberOptions {
        let alpn = match self {
            Self::H1 => ALPN_H1,
            Self::H2 => ALPN_BOTH,
        };
        MemberOptions { alpn, ..MemberOptions::default() }
    }

    /// A member that speaks this at best.
    pub async fn member(self) -> FakeMember {
        FakeMember::start(self.member_options()).await
    }

    /// A connection of `client` in this version, without any credential.
    pub async fn connect(self, client: &Client) -> std::io::Result<Connection> {
        Ok(match self {
            Self::H1 => Connection::from(client.h1().await?),
            Self::H2 => Connection::from(client.h2().await?),
        })
    }
}

/// Makes one test of each named `async fn(Versions)` for each pair of versions.
#[macro_export]
macro_rules! across_versions {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            use $crate::{Http::{H1, H2}, Versions};

            #[tokio::test]
            async fn h1_to_h1() {
                Box::pin(super::$scenario(Versions { client: H1, member: H1 })).await;
            }

            #[tokio::test]
            async fn h1_to_h2() {
                Box::pin(super::$scenario(Versions { client: H1, member: H2 })).await;
            }

            #[tokio::test]
            async fn h2_to_h1() {
                Box::pin(super::$scenario(Versions { client: H2, member: H1 })).await;
            }

            #[tokio::test]
            async fn h2_to_h2() {
                Box::pin(super::$scenario(Versions { client: H2, member: H2 })).await;
            }
        }
    )+};
}

/// Makes one test of each named `async fn(Http)` for each version, be it the client's, the member's
/// or that of both: where what is tested depends on either side alone.
#[macro_export]
macro_rules! across_http {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            use $crate::Http::{H1, H2};

            #[tokio::test]
            async fn h1() {
                Box::pin(super::$scenario(H1)).await;
            }

            #[tokio::test]
            async fn h2() {
                Box::pin(super::$scenario(H2)).await;
            }
        }
    )+};
}
