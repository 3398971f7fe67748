//! What is held for clients and whose it is: the gateway's part in the budget of bytes.
//!
//! Two things hold bytes: a client's connection (its buffers, heads that are not whole) and each of
//! its requests (its head, what is unread of its bodies, what was not sent of its answer). What a
//! user holds in all decides who gives way, and who has not been authenticated goes first.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::User;
use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, HeaderValue, Uri};
use net::budget::{self, Hold, Holder, Owner};
use net::pending;

pub type Budget = budget::Budget<Holding>;
pub type Account = budget::Account<Holding>;

/// A connection, or one of its requests.
pub struct Holding {
    client: Arc<Client>,
    request: Option<Request>,
}

/// Who has a connection, and what that holds by itself.
pub struct Client {
    hold: Hold,
    address: IpAddr,
    /// The first user, unless it is a front proxy, which speaks for many.
    user: OnceLock<Arc<User>>,
    is_front_proxy: AtomicBool,
}

#[derive(Default)]
struct Request {
    hold: Hold,
    user: OnceLock<Arc<User>>,
    /// It has no task any more that could end it: it ends with its connection.
    is_on_its_own: AtomicBool,
    /// Its connection serves nothing else.
    has_connection: AtomicBool,
}

/// A head, by one of its values.
struct HeldHead {
    date: Bytes,
    bytes: usize,
    account: Account,
}

/// Of a connection, beside what it has received: TLS, HTTP/2's state, tasks. Measured: 30 KiB of an
/// idle one that has made a request.
pub const CONNECTION: usize = 32 * 1024;
/// Of a request, beside its head and its bodies.
const REQUEST: usize = 4 * 1024;
/// Of a header line, beside its text. A value counts twice: where it was received in Huffman's
/// code, it has a buffer of twice the coded length.
const LINE: usize = 64;
/// Of a head: what a connection has room for anyway.
const USUAL_HEAD: usize = 16 * 1024;

/// An account for a connection from `address`, served on `core`.
pub fn open(budget: &Budget, core: usize, address: IpAddr) -> Account {
    let client =
        Client { hold: Hold::default(), address, user: OnceLock::new(), is_front_proxy: AtomicBool::new(false) };
    let account = budget.open(core, Holding { client: Arc::new(client), request: None });
    account.take(CONNECTION);
    account
}

/// An account for a request with such a head on the connection that `of` is of.
pub fn open_request(budget: &Budget, core: usize, of: &Account, uri: &Uri, headers: &HeaderMap) -> Account {
    let client = Arc::clone(&of.holder().client);
    let account = budget.open(core, Holding { client, request: Some(Request::default()) });
    // As the client wrote it, and as the member reads it.
    let path = 2 * uri.path_and_query().map_or(0, |path| path.as_str().len());
    account.take(REQUEST + path + size(headers));
    account
}

/// What header lines hold.
pub fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| LINE + name.as_str().len() + 2 * value.len()).sum()
}

/// What a buffer keeps that once had a head of so many bytes; usual ones are among what a
/// [`CONNECTION`] holds.
pub fn room(head: usize) -> usize {
    if head > USUAL_HEAD { head.next_power_of_two() } else { 0 }
}

/// The head of an answer, which counts until HTTP/2 has let go of it: written, or void.
pub fn hold_head(account: &Account, headers: &mut HeaderMap) {
    let bytes = size(headers);
    if bytes <= USUAL_HEAD {
        return;
    }
    let Some(value) = headers.get_mut(DATE) else { return };
    account.take(bytes);
    let held = HeldHead { date: Bytes::copy_from_slice(value.as_bytes()), bytes, account: account.clone() };
    if let Ok(mut date) = HeaderValue::from_maybe_shared(Bytes::from_owner(held)) {
        // Or HPACK's table would keep it.
        date.set_sensitive(true);
        *value = date;
    }
}

// === impl Holding ===

impl Holding {
    /// The request's user is known; nothing changes for a connection.
    pub fn identified(&self, user: &Arc<User>) {
        if let Some(request) = &self.request {
            let _ = request.user.set(Arc::clone(user));
        }
    }

    /// The connection is one of a front proxy, or else this user's.
    pub fn authenticated(&self, user: &Arc<User>, is_front_proxy: bool) {
        if is_front_proxy {
            self.client.is_front_proxy.store(true, Ordering::Relaxed);
        } else {
            let _ = self.client.user.set(Arc::clone(user));
        }
    }

    /// Nobody looks whether the request is to end: from now on its connection ends in its place.
    pub fn leave_alone(&self) {
        if let Some(request) = &self.request {
            request.is_on_its_own.store(true, Ordering::Release);
        }
    }

    /// As [`Holding::leave_alone`], of a request that is all that its connection serves: ending
    /// that harms nobody else, whoever's it is. Hubs upgrade on such connections.
    pub fn leave_to_connection(&self) {
        if let Some(request) = &self.request {
            request.has_connection.store(true, Ordering::Relaxed);
        }
        self.leave_alone();
    }

    fn user(&self) -> Option<&Arc<User>> {
        self.request.as_ref().and_then(|request| request.user.get()).or_else(|| self.client.user.get())
    }

    fn has_connection(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.has_connection.load(Ordering::Relaxed))
    }

    fn is_on_its_own(&self) -> bool {
        self.request.as_ref().is_none_or(|request| request.is_on_its_own.load(Ordering::Acquire))
    }
}

impl Holder for Holding {
    fn hold(&self) -> &Hold {
        self.request.as_ref().map_or(&self.client.hold, |request| &request.hold)
    }

    fn owner(&self) -> Owner {
        let address = || pending::network(self.client.address).to_string();
        match self.user() {
            // Anybody may be that.
            Some(user) if user.is_anonymous() => Owner::Unauthenticated(address()),
            Some(user) => Owner::Named(user.name.clone()),
            None if self.client.is_front_proxy.load(Ordering::Relaxed) => Owner::Address(address()),
            None => Owner::Unauthenticated(address()),
        }
    }

    /// The connection of a front proxy is everybody's. It holds little by itself, and what is left
    /// there of answers that were handed over goes as soon as the hub reads.
    fn may_be_ended(&self) -> bool {
        !self.is_on_its_own() || self.has_connection() || !self.client.is_front_proxy.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.hold().end();
        if self.is_on_its_own() {
            self.client.hold.end();
        }
    }
}

// === impl HeldHead ===

impl AsRef<[u8]> for HeldHead {
    fn as_ref(&self) -> &[u8] {
        &self.date
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

#[cfg(test)]
mod tests;
