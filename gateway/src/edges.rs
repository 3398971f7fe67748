//! Reads input of clients and Secrets for tests with generated input. Not a stable interface: it
//! changes with the code.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use auth::User;
use http::header::{CONNECTION, LOCATION, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::config::Kubeconfig;
use net::observed::Observed;
use net::seal::Seal;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use crate::clusters::kubeconfig;
use crate::exchange::{ActingAs, Options, OwnRules};
use crate::inbound::{Inbound, Marks};
use crate::proxy::location::{Origin, rewrite};
use crate::server::lengths::Lengths;
use crate::server::limits;

/// A request on an HTTP/1.1 connection, and whether it counts as having two lengths.
pub type Read = (Parts, bool);

/// A context as its Secret on a hub, with credential type and data, or why there is none.
pub type Context = Result<(&'static str, BTreeMap<String, Vec<u8>>), String>;

/// The head of a request on an HTTP/2 connection: its stream, its headers, and whether a field was
/// removed from it.
pub type Head = (u32, HeaderMap, bool);

/// All requests on an HTTP/1.1 connection, read like clients' requests.
pub async fn http1<S>(stream: S) -> Vec<Read>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lengths = Lengths::default();
    let reader = lengths.reader(None);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let service = service_fn(move |request: Request<Incoming>| {
        let (parts, body) = request.into_parts();
        let last = parts.headers.contains_key(TRANSFER_ENCODING);
        let read = (parts, last && lengths.are_ambiguous());
        seen.lock().push(read);
        async move {
            let _ = body.collect().await;
            let mut response = Response::new(Empty::<bytes::Bytes>::new());
            if last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(Observed::new(stream, reader));
    let _ = limits::http1(true).serve_connection(io, service).await;
    std::mem::take(&mut *requests.lock())
}

/// The heads received on an HTTP/2 connection.
#[derive(Debug)]
pub struct Heads {
    pub heads: Vec<Head>,
    /// A field was removed from a head, which h2 may have refused for another reason.
    pub is_any_marked: bool,
    /// The connection ended cleanly. Otherwise the last heads may be lost.
    pub is_whole: bool,
}

/// The heads of all requests on an HTTP/2 connection, read like clients' requests, or by h2 alone.
/// Long frames are accepted.
pub async fn http2<S>(stream: S, is_filtered: bool) -> Heads
where
    S: AsyncRead + AsyncWrite + Seal + Unpin + Send + 'static,
{
    let marks = Marks::default();
    if is_filtered {
        heads(Inbound::of_client(stream, marks.clone()), &marks).await
    } else {
        heads(stream, &marks).await
    }
}

/// The part of a client's or a member's bytes that is passed on, and why the connection ended
/// before their end, if it did.
pub async fn inbound<S: AsyncRead + Unpin>(stream: S, is_members: bool) -> (Vec<u8>, Option<String>) {
    let marks = Marks::default();
    let mut inbound = if is_members { Inbound::of_member(stream, marks) } else { Inbound::of_client(stream, marks) };
    let mut passed = Vec::new();
    let end = inbound.read_to_end(&mut passed).await;
    (passed, end.err().map(|error| error.to_string()))
}

/// A member's response to one request, read like members' responses: as much as was received,
/// complete or not.
pub async fn member<S>(stream: S) -> Option<(Response<()>, Vec<u8>)>
where
    S: AsyncRead + AsyncWrite + Seal + Unpin + Send + 'static,
{
    let inbound = Inbound::of_member(stream, Marks::default());
    let (mut requests, connection) = h2::client::handshake(inbound).await.ok()?;
    let request = Request::get("https://member.example/").body(()).expect("a valid request");
    let exchange = async {
        let (response, _) = requests.send_request(request, true).ok()?;
        let (head, mut body) = response.await.ok()?.into_parts();
        let mut bytes = Vec::new();
        while let Some(Ok(data)) = body.data().await {
            let _ = body.flow_control().release_capacity(data.len());
            bytes.extend_from_slice(&data);
        }
        Some((Response::from_parts(head, ()), bytes))
    };
    let mut exchange = pin!(exchange);
    tokio::select! {
        answer = exchange.as_mut() => answer,
        _ = connection => exchange.await,
    }
}

async fn heads<S: AsyncRead + AsyncWrite + Unpin>(stream: S, marks: &Marks) -> Heads {
    let mut heads = Vec::new();
    let is_whole = until_its_end(stream, marks, &mut heads).await;
    Heads { heads, is_any_marked: marks.is_any(), is_whole }
}

/// Whether the connection ended cleanly.
async fn until_its_end<S>(stream: S, marks: &Marks, heads: &mut Vec<Head>) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = h2::server::Builder::new().max_frame_size(1 << 20).handshake::<_, bytes::Bytes>(stream);
    let Ok(mut connection) = handshake.await else { return false };
    while let Some(accepted) = connection.accept().await {
        let Ok((request, mut respond)) = accepted else { return false };
        let mut headers = request.into_parts().0.headers;
        let is_marked = marks.take(&mut headers).is_some();
        heads.push((respond.stream_id().as_u32(), headers, is_marked));
        let _ = respond.send_response(Response::new(()), true);
    }
    true
}

/// The identity with which `user` acts on `on` by the annotation `text` of `cluster`. `None` means
/// that no rule matches, and empty headers mean the registered credential.
///
/// # Errors
/// Why the annotation lets no caller through.
pub fn annotated(text: &str, cluster: &str, user: &User, on: &str) -> Result<Option<HeaderMap>, Arc<str>> {
    let options = Options { gate: true, ..Options::default() };
    let rules = match options.annotations().compile(cluster, Some(text)) {
        OwnRules::None => return Ok(None),
        OwnRules::Valid(rules) => rules,
        OwnRules::Invalid(why) => return Err(why),
    };
    let Some(outcome) = rules.find(user, on) else { return Ok(None) };
    let mut headers = HeaderMap::new();
    let applied = ActingAs::from(outcome).apply(user, &mut headers);
    Ok(applied.is_ok().then_some(headers))
}

/// The target of a redirect to `location`, for clients that ask below `prefix` for a member at
/// `https://member.example:6443` with `base_path`. `None` if there is none, or if it is no header.
pub fn redirected(prefix: &str, location: &[u8], base_path: &str) -> Option<String> {
    let authority = Authority::from_static("member.example:6443");
    let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_bytes(location).ok()?)]);
    let origin = Origin { scheme: &Scheme::HTTPS, authority: &authority, base_path };
    rewrite(StatusCode::MOVED_PERMANENTLY, &mut headers, prefix, origin).ok()?;
    headers[LOCATION].to_str().ok().map(str::to_owned)
}

/// A kubeconfig's contexts. `None` if the text is no kubeconfig.
pub fn contexts(text: &str) -> Option<Vec<Context>> {
    let read = Kubeconfig::from_yaml(text).ok()?;
    Some(read.contexts.iter().map(|context| kubeconfig::secret(&read, &context.name)).collect())
}
