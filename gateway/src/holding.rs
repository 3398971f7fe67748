//! Counts bytes held for clients by owner: the gateway's part of the budget of bytes.
//!
//! A client's connection holds bytes (its buffers, incomplete heads), and so does each of its
//! requests (its head, unread parts of its bodies, unsent parts of its response). The total of a
//! user decides which requests and connections must give way, and unauthenticated ones go first.
//! Beside clients, [members](MemberAccounts) hold incomplete heads. Bytes from the tunnel
//! [wait](Backlog) for their reader, and bytes for the tunnel until they are sent.

mod backlog;
mod client;
mod head;
mod member;
mod queue;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Context;

use auth::User;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use net::budget::{self, Counters, FRAME, Holder, Owner};
use rustls_pki_types::CertificateDer;

pub use self::backlog::Backlog;
pub use self::client::Client;
use self::client::Request;
pub use self::head::{hold_head, hold_in, hold_trailers, identity, lines, room, size, table};
use self::member::Member;
pub use self::member::MemberAccounts;
pub use self::queue::Uploading;
use self::queue::{Pieces, ResponsePiece, Slots};

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

/// An extension of a response which reports that the request had to give way for its held bytes, so
/// it is sent all the same.
#[derive(Clone, Copy)]
pub struct ToldToGiveWay;

/// Bytes of a connection in addition to what it has received: TLS, HTTP/2's state, tasks. Measured:
/// 30 KiB for an idle one that has served a request.
pub const CONNECTION: usize = 32 * 1024;
/// Bytes of a request in addition to its head and its bodies.
const REQUEST: usize = 4 * 1024;
/// A method that is none of HTTP's own, of any length, is in the request, in its line, in the
/// attributes that are reviewed, in what is kept while the response is sent, in the head for
/// another try, and in the head that HTTP/2 has.
const COPIES_OF_METHOD: usize = 6;
/// The text of headers is shared, but a table is in the request, in the head for another try, and
/// in the head that HTTP/2 has.
const COPIES_OF_TABLE: usize = 3;
/// Smaller pieces are copied, because they would keep a much larger buffer.
const PINS: usize = 16 * 1024;

/// An account for a connection from `address`, served on `core`.
pub fn open(budget: &Budget, core: usize, address: IpAddr) -> Account {
    let client = Client {
        counters: Counters::default(),
        address,
        user: OnceLock::new(),
        is_front_proxy: AtomicBool::new(false),
        slots: Slots::default(),
    };
    let account = budget.open(core, Holding(Kind::Connection(Arc::new(client))));
    account.take(CONNECTION);
    account
}

/// An account for a request with this head on `connection`.
pub fn open_request(
    budget: &Budget,
    core: usize,
    connection: &Account,
    (method, uri): (&Method, &Uri),
    headers: &HeaderMap,
) -> Account {
    // Members send no requests.
    let Some(client) = connection.holder().client() else { return connection.clone() };
    let account = budget.open(core, Holding(Kind::Request(Arc::clone(client), Request::default())));
    // Twice: as the client sent it, and as the member reads it.
    let path = 2 * uri.path_and_query().map_or(0, |path| path.as_str().len());
    // Any client may send one as long as a header, which counts likewise.
    let authority = 2 * uri.authority().map_or(0, |authority| authority.as_str().len());
    let method = COPIES_OF_METHOD * method.as_str().len();
    account.take(REQUEST + path + authority + method + request_headers(headers));
    account
}

/// Bytes of memory for the headers of one request, with all copies of their table.
pub fn request_headers(headers: &HeaderMap) -> usize {
    lines(headers) + COPIES_OF_TABLE * table(headers)
}

/// Bytes of memory for a client's certificates: our copy and TLS's.
pub fn certificates(chain: &[CertificateDer<'_>]) -> usize {
    2 * chain.iter().map(|certificate| certificate.len()).sum::<usize>()
}

/// Counts a piece of a response, and its frame, for `account` until the library drops it. A small
/// piece that follows unsent ones is copied, see [`apart`].
pub fn hold_piece(account: &Account, data: Bytes) -> Bytes {
    let waits = data.len() < PINS && account.holder().has_pieces();
    let counted = data.len() + FRAME;
    ResponsePiece::counted(if waits { Bytes::copy_from_slice(&data) } else { data }, account.tally(), counted)
}

/// Counts the frame of a part of a held piece that is sent by itself. Its bytes count already.
pub fn hold_part(account: &Account, data: Bytes) -> Bytes {
    ResponsePiece::counted(data, account.tally(), FRAME)
}

/// Copies a small piece of a response into its own memory: as a slice it would keep the buffer into
/// which its connection was read, up to 128 KiB, and only its own bytes count.
pub fn apart(account: &Account, data: Bytes) -> Bytes {
    if !keeps_its_buffer(&data) {
        return data;
    }
    ResponsePiece::counted(Bytes::copy_from_slice(&data), account.tally(), data.len() + FRAME)
}

/// The same for a piece of an upload, which does not wait in HTTP/2 yet.
pub fn upload_apart(account: &Account, data: Bytes) -> Bytes {
    if keeps_its_buffer(&data) { account.charge_frame(Bytes::copy_from_slice(&data)) } else { data }
}

fn keeps_its_buffer(data: &Bytes) -> bool {
    !data.is_empty() && data.len() < PINS
}

// === impl Holding ===

impl Holding {
    /// Sets the request's user. Does nothing for a connection.
    pub fn identified(&self, user: &Arc<User>) {
        if let Some(request) = self.request() {
            let _ = request.user.set(Arc::clone(user));
        }
    }

    /// The user of the request, once known.
    pub fn user(&self) -> Option<&User> {
        self.request().and_then(|request| request.user.get()).map(Arc::as_ref)
    }

    /// Marks the connection as a front proxy's, or otherwise sets its user.
    pub fn authenticated(&self, user: &Arc<User>, is_front_proxy: bool) {
        let Some(client) = self.client() else { return };
        if is_front_proxy {
            client.is_front_proxy.store(true, Ordering::Relaxed);
        } else {
            let _ = client.user.set(Arc::clone(user));
        }
    }

    /// For a connection with a known user, its number of requests in flight.
    pub fn known_connection(&self) -> Option<usize> {
        let Kind::Connection(client) = &self.0 else { return None };
        client.user.get().map(|_| Arc::strong_count(client) - 1)
    }

    /// The request can no longer end by itself: from now on its connection ends instead.
    pub fn end_with_connection(&self) {
        if let Some(request) = self.request() {
            request.ends_with_connection.store(true, Ordering::Release);
        }
    }

    /// The same as [`Holding::end_with_connection`], for the only request on its connection: to end
    /// the connection ends no other request. Hubs use such connections for upgrades.
    pub fn end_with_own_connection(&self) {
        if let Some(request) = self.request() {
            request.owns_connection.store(true, Ordering::Relaxed);
        }
        self.end_with_connection();
    }

    /// Whether no more pieces of the response may wait in HTTP/2. Then the task is woken when few
    /// are left.
    pub fn has_many_pieces(&self, cx: &Context<'_>) -> bool {
        self.pieces().is_some_and(|pieces| pieces.is_full(cx))
    }

    /// Bytes that HTTP/2 keeps for pieces that wait on the connection, or once waited.
    pub fn slots_bytes(&self) -> usize {
        self.slots().bytes()
    }

    fn has_pieces(&self) -> bool {
        self.pieces().is_some_and(Pieces::is_any)
    }

    fn pieces(&self) -> Option<&Pieces> {
        self.request().map(|request| &request.pieces)
    }

    fn slots(&self) -> &Slots {
        match &self.0 {
            Kind::Connection(client) | Kind::Request(client, _) => &client.slots,
            Kind::Member(member) => member.slots(),
        }
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

    /// All users of a front proxy share its connection. It holds little by itself, and unsent parts
    /// of finished responses go as soon as the hub reads.
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

#[cfg(test)]
mod tests;
