//! What is held for clients and whose it is: the gateway's part in the budget of bytes.
//!
//! Two things hold bytes: a client's connection (its buffers, heads that are not whole) and each of
//! its requests (its head, what is unread of its bodies, what was not sent of its answer). What a
//! user holds in all decides who gives way, and who has not been authenticated goes first. Beside
//! them [members](MemberAccounts) begin heads that are not whole, and what comes through the tunnel
//! [waits](Backlog) for whoever is to read it.

mod backlog;
mod member;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::User;
use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, HeaderValue, Uri};
use net::budget::{self, Counters, Holder, Owner};
use net::pending;
use rustls_pki_types::CertificateDer;

pub use self::backlog::Backlog;
use self::member::Member;
pub use self::member::MemberAccounts;

pub type Budget = budget::Budget<Holding>;
pub type Account = budget::Account<Holding>;
pub type Tally = budget::Tally<Holding>;

/// A client's connection, one of its requests, or a connection to a member.
pub struct Holding(Kind);

enum Kind {
    Connection(Arc<Client>),
    Request(Arc<Client>, Request),
    Member(Member),
}

/// Among the extensions of an answer: it tells its client that the request had to give way for what
/// it held, so it is sent all the same.
#[derive(Clone, Copy)]
pub struct ToldToGiveWay;

/// The owner of a connection, and what that holds by itself.
pub struct Client {
    counters: Counters,
    address: IpAddr,
    /// The first user, unless it is a front proxy, which speaks for many.
    user: OnceLock<Arc<User>>,
    is_front_proxy: AtomicBool,
}

#[derive(Default)]
struct Request {
    counters: Counters,
    user: OnceLock<Arc<User>>,
    /// It has no task any more that could end it.
    ends_with_connection: AtomicBool,
    /// Its connection serves nothing else.
    owns_connection: AtomicBool,
}

/// Keeps a head, or trailers, counted for as long as HTTP/2 keeps one of their values.
struct HeldHead {
    value: Bytes,
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
/// Smaller pieces are not worth the buffer that they keep.
const PINS: usize = 16 * 1024;
/// Of a head: what a connection has room for anyway.
const USUAL_HEAD: usize = 16 * 1024;
/// Of an answer, as [`size`] has it: beside what its request counts for, it is nothing.
const SMALL_HEAD: usize = 2 * 1024;

/// An account for a connection from `address`, served on `core`.
pub fn open(budget: &Budget, core: usize, address: IpAddr) -> Account {
    let client = Client {
        counters: Counters::default(),
        address,
        user: OnceLock::new(),
        is_front_proxy: AtomicBool::new(false),
    };
    let account = budget.open(core, Holding(Kind::Connection(Arc::new(client))));
    account.take(CONNECTION);
    account
}

/// An account for a request with such a head on `connection`.
pub fn open_request(budget: &Budget, core: usize, connection: &Account, uri: &Uri, headers: &HeaderMap) -> Account {
    // Members send no requests.
    let Some(client) = connection.holder().client() else { return connection.clone() };
    let account = budget.open(core, Holding(Kind::Request(Arc::clone(client), Request::default())));
    // As the client wrote it, and as the member reads it.
    let path = 2 * uri.path_and_query().map_or(0, |path| path.as_str().len());
    account.take(REQUEST + path + size(headers));
    account
}

/// Bytes that header lines take.
pub fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| LINE + name.as_str().len() + 2 * value.len()).sum()
}

/// Bytes that a client's certificates take, ours and TLS's copy.
pub fn certificates(chain: &[CertificateDer<'_>]) -> usize {
    2 * chain.iter().map(|certificate| certificate.len()).sum::<usize>()
}

/// A piece of a body, which counts for `account` until a library has let go of it. One that is
/// small and follows what is not sent yet is copied, see [`apart`].
pub fn hold_piece(account: &Account, data: Bytes) -> Bytes {
    let waits = data.len() < PINS && account.has_lent();
    account.charge(if waits { Bytes::copy_from_slice(&data) } else { data })
}

/// The same piece in memory of its own, if it is small: as a slice it keeps the buffer that its
/// connection was read into, up to 128 KiB, and only its own bytes count.
pub fn apart(account: &Account, data: Bytes) -> Bytes {
    if data.is_empty() || data.len() >= PINS {
        return data;
    }
    account.charge(Bytes::copy_from_slice(&data))
}

/// What a buffer keeps that once had a head of so many bytes; usual ones are among what a
/// [`CONNECTION`] holds.
pub fn room(head: usize) -> usize {
    if head > USUAL_HEAD { head.next_power_of_two() } else { 0 }
}

/// The head of an answer, which counts until HTTP/2 has let go of it: written, or void. With it the
/// request does. So do pieces of a body ([`hold_piece`]): a small head counts only if it `is_all`.
pub fn hold_head(account: &Account, headers: &mut HeaderMap, is_all: bool) {
    let bytes = size(headers);
    if bytes <= SMALL_HEAD && !is_all {
        return;
    }
    // Each answer has one by now (RFC 9110 §6.6.1).
    let Some(value) = headers.get_mut(DATE) else { return };
    hold_with(account, bytes, value);
}

/// Trailers, as [`hold_head`]: their sender is done then, and has let go of the request.
pub fn hold_trailers(account: &Account, trailers: &mut HeaderMap) {
    let bytes = size(trailers);
    if let Some(value) = trailers.values_mut().next() {
        hold_with(account, bytes, value);
    }
}

/// So many bytes count until `value` is let go of.
fn hold_with(account: &Account, bytes: usize, value: &mut HeaderValue) {
    account.take(bytes);
    let held = HeldHead { value: Bytes::copy_from_slice(value.as_bytes()), bytes, account: account.clone() };
    if let Ok(mut held) = HeaderValue::from_maybe_shared(Bytes::from_owner(held)) {
        // Or HPACK's table would keep it.
        held.set_sensitive(true);
        *value = held;
    }
}

// === impl Holding ===

impl Holding {
    /// The request's user is known; nothing changes for a connection.
    pub fn identified(&self, user: &Arc<User>) {
        if let Some(request) = self.request() {
            let _ = request.user.set(Arc::clone(user));
        }
    }

    /// The user of the request, once that is known.
    pub fn user(&self) -> Option<&User> {
        self.request().and_then(|request| request.user.get()).map(Arc::as_ref)
    }

    /// The connection is one of a front proxy, or else this user's.
    pub fn authenticated(&self, user: &Arc<User>, is_front_proxy: bool) {
        let Some(client) = self.client() else { return };
        if is_front_proxy {
            client.is_front_proxy.store(true, Ordering::Relaxed);
        } else {
            let _ = client.user.set(Arc::clone(user));
        }
    }

    /// Of the connection of a known user, its number of requests in flight.
    pub fn known_connection(&self) -> Option<usize> {
        let Kind::Connection(client) = &self.0 else { return None };
        client.user.get().map(|_| Arc::strong_count(client) - 1)
    }

    /// The request does not end on request any more: from now on its connection ends in its place.
    pub fn end_with_connection(&self) {
        if let Some(request) = self.request() {
            request.ends_with_connection.store(true, Ordering::Release);
        }
    }

    /// As [`Holding::end_with_connection`], of a request that is all that its connection serves:
    /// ending that ends no other request. Hubs upgrade on such connections.
    pub fn end_with_own_connection(&self) {
        if let Some(request) = self.request() {
            request.owns_connection.store(true, Ordering::Relaxed);
        }
        self.end_with_connection();
    }

    fn client(&self) -> Option<&Arc<Client>> {
        match &self.0 {
            Kind::Connection(client) | Kind::Request(client, _) => Some(client),
            Kind::Member(_) => None,
        }
    }

    fn request(&self) -> Option<&Request> {
        if let Kind::Request(_, request) = &self.0 { Some(request) } else { None }
    }
}

impl Holder for Holding {
    fn counters(&self) -> &Counters {
        match &self.0 {
            Kind::Connection(client) => &client.counters,
            Kind::Request(_, request) => &request.counters,
            Kind::Member(member) => member.counters(),
        }
    }

    fn owner(&self) -> Owner {
        match &self.0 {
            Kind::Connection(client) => client.owner(None),
            Kind::Request(client, request) => client.owner(request.user.get()),
            Kind::Member(member) => member.owner(),
        }
    }

    /// The connection of a front proxy is everybody's. It holds little by itself, and what is left
    /// there of answers that were handed over goes as soon as the hub reads.
    fn may_be_ended(&self) -> bool {
        match &self.0 {
            Kind::Connection(client) => !client.is_front_proxy(),
            Kind::Request(client, request) => request.harms_nobody_else() || !client.is_front_proxy(),
            Kind::Member(_) => true,
        }
    }

    fn end(&self) {
        self.counters().end();
        if let Kind::Request(client, request) = &self.0
            && request.ends_with_connection.load(Ordering::Acquire)
        {
            client.counters.end();
        }
    }
}

// === impl Client ===

impl Client {
    fn is_front_proxy(&self) -> bool {
        self.is_front_proxy.load(Ordering::Relaxed)
    }

    /// The owner of something on the connection, of the user `of` if that is known.
    fn owner(&self, of: Option<&Arc<User>>) -> Owner {
        let address = || pending::network(self.address).to_string();
        match of.or_else(|| self.user.get()) {
            // Any client may be that.
            Some(user) if user.is_anonymous() => Owner::Unauthenticated(address()),
            // A user that may create one in a namespace can create any number.
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
    /// Whether its end ends no other request.
    fn harms_nobody_else(&self) -> bool {
        !self.ends_with_connection.load(Ordering::Acquire) || self.owns_connection.load(Ordering::Relaxed)
    }
}

// === impl HeldHead ===

impl AsRef<[u8]> for HeldHead {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

#[cfg(test)]
mod tests;
