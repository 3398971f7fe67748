//! What a client holds: its connections and requests.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::User;
use net::budget::{Counters, Owner};
use net::pending;

use super::queue::{Pieces, Slots};

/// The owner of a connection, and what the connection itself holds.
pub struct Client {
    pub(super) counters: Counters,
    pub(super) address: IpAddr,
    /// The first user, unless the client is a front proxy, which acts for many.
    pub(super) user: OnceLock<Arc<User>>,
    pub(super) is_front_proxy: AtomicBool,
    /// Where pieces of its responses wait.
    pub(super) slots: Slots,
}

#[derive(Default)]
pub(super) struct Request {
    pub(super) counters: Counters,
    pub(super) user: OnceLock<Arc<User>>,
    /// No task is left that could end the request.
    pub(super) ends_with_connection: AtomicBool,
    /// Its connection serves no other request.
    pub(super) owns_connection: AtomicBool,
    /// Those of its response that wait.
    pub(super) pieces: Pieces,
}

// === impl Client ===

impl Client {
    pub(super) fn is_front_proxy(&self) -> bool {
        self.is_front_proxy.load(Ordering::Relaxed)
    }

    /// The owner of bytes on the connection, for the user `of` if known.
    pub(super) fn owner(&self, of: Option<&Arc<User>>) -> Owner {
        let address = || pending::network(self.address).to_string();
        match of.or_else(|| self.user.get()) {
            // Any client may be anonymous.
            Some(user) if user.is_anonymous() => Owner::Unauthenticated(address()),
            // A user that may create one ServiceAccount in a namespace can create any number.
            Some(user) => match user.service_account_namespace() {
                Some(namespace) => Owner::Group(format!("system:serviceaccounts:{namespace}")),
                None => Owner::Named(user.name.clone()),
            },
            None if self.is_front_proxy() => Owner::Address(address()),
            None => Owner::Unauthenticated(address()),
        }
    }
}

// === impl Request ===

impl Request {
    /// Whether it can end without ending another request.
    pub(super) fn harms_nobody_else(&self) -> bool {
        !self.ends_with_connection.load(Ordering::Acquire) || self.owns_connection.load(Ordering::Relaxed)
    }
}
