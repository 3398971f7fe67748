//! Serves HTTP/1.1 to hubs and clients: one request at a time, until the connection ends or is
//! upgraded.

mod held;

use std::convert::Infallible;
use std::sync::Arc;

use http::HeaderValue;
use http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use net::linger::Linger;
use net::observed::Observed;

use self::held::{Heads, HeldBody};
use super::lengths::Lengths;
use super::{Ended, Stream, limits};
use crate::connection::Connection;
use crate::handler::handle;
use crate::request::framing;
use crate::request_body::RequestBody;

/// Serves until the client or the gateway closes the connection. Not an `async fn`, which would
/// keep space for `stream` after it has moved into the connection.
pub fn serve(stream: Stream, connection: Arc<Connection>) -> impl Future<Output = Result<(), Ended>> {
    let requests = Arc::clone(&connection);
    let many_users = connection.gateway().authenticator.recognize(connection.peer());
    let lengths = Lengths::default();
    let reader = lengths.reader(Some(connection.held()));
    let io = TokioIo::new(Observed::new(Linger::new(stream), reader));
    let heads = Arc::<Heads>::default();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let account = requests.begin((request.method(), request.uri()), request.headers());
        let request = request.map(|body| RequestBody::of_http1(body, lengths.ahead(), account.clone()));
        let mut request = Box::new(request);
        let (connection, heads) = (Arc::clone(&requests), Arc::clone(&heads));
        let last = framing::must_close_after(&request);
        if last && lengths.are_ambiguous() {
            request.extensions_mut().insert(framing::TwoLengths);
        }
        if last || framing::leaves_http(&request) {
            lengths.enough();
        }
        // Boxed, so that idle connections keep no memory for it.
        Box::pin(async move {
            let mut response = handle(Arc::clone(&connection), request, &account).await;
            heads.keep(response.headers(), connection.held());
            if last {
                // By the header, and not by a graceful shutdown of the connection: bytes already in
                // its buffer must not be parsed.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, account)))
        })
    });
    let serving = Box::pin(limits::http1(many_users).serve_connection(io, service).with_upgrades());
    async move { super::drive(serving, UpgradeableConnection::graceful_shutdown, &connection).await }
}
