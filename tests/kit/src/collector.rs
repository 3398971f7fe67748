//! A trace collector: takes OTLP over gRPC, in the clear, and keeps the spans.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
pub use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span as Received};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::wait::{AbortOnDrop, Gate, Signal};

/// The one method (`opentelemetry/proto/collector/trace/v1/trace_service.proto`).
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Prefix of each gRPC message: a flag of compression, four bytes of length.
const PREFIX: usize = 5;

/// A running collector. Ends when dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    state: Arc<State>,
    _task: AbortOnDrop,
}

#[derive(Debug)]
struct State {
    spans: Mutex<Vec<Span>>,
    more: Signal,
    answers: Gate,
}

/// One finished span. Ids are in hexadecimal, texts of attributes as they are, numbers in decimal.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    /// Empty: it has none.
    pub parent: String,
    pub name: String,
    pub kind: SpanKind,
    /// Nanoseconds since the epoch.
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the process that sent it.
    pub resource: BTreeMap<String, String>,
    pub state: String,
    /// The message of its failure.
    pub error: Option<String>,
    /// Spans that it is linked to.
    pub links: Vec<String>,
}

// === impl Collector ===

impl Collector {
    /// Listens, and answers every export.
    pub async fn start() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Takes no span before `answers` is opened.
    pub async fn answering(answers: Gate) -> Self {
        Self::listening((Ipv4Addr::LOCALHOST, 0).into(), answers).await
    }

    /// At a known address; answers every export.
    pub async fn at(address: SocketAddr) -> Self {
        let gate = Gate::new();
        gate.open();
        Self::listening(address, gate).await
    }

    async fn listening(address: SocketAddr, answers: Gate) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port for the collector");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State { spans: Mutex::default(), more: Signal::new(), answers });
        let task = AbortOnDrop(tokio::spawn(accept(listener, Arc::clone(&state))));
        Self { address, state, _task: task }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        self.state.spans.lock().clone()
    }

    /// Waits until there is a span that `is_it` says it is.
    #[track_caller]
    pub fn span(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> impl Future<Output = Span> {
        self.state.more.until(format!("the span of {what}"), move || self.spans().into_iter().find(&is_it))
    }

    /// Waits until the trace has a span called `name` that ended, with all that are beneath it.
    pub async fn trace(&self, name: &str, id: &str) -> Vec<Span> {
        self.span(&format!("{name} of trace {id}"), |span| span.name == name && span.trace == id).await;
        self.spans().into_iter().filter(|span| span.trace == id).collect()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((tcp, _)) = listener.accept().await else { continue };
        connections.spawn(serve(tcp, Arc::clone(&state)));
    }
}

async fn serve(tcp: TcpStream, state: Arc<State>) {
    let Ok(mut connection) = h2::server::handshake(tcp).await else { return };
    let mut calls = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        calls.spawn(answer(request, respond, Arc::clone(&state)));
    }
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, state: Arc<State>) -> Option<()> {
    assert_eq!(request.uri().path(), EXPORT, "the only call");
    assert_eq!(request.headers().get("content-type"), Some(&HeaderValue::from_static("application/grpc")));
    let mut body = request.into_body();
    let mut message = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece.ok()?;
        body.flow_control().release_capacity(piece.len()).ok()?;
        message.extend_from_slice(&piece);
    }
    state.answers.passed().await;
    let export = ExportTraceServiceRequest::decode(&message[PREFIX..]).expect("an export");
    state.spans.lock().extend(export.resource_spans.into_iter().flat_map(spans));
    state.more.notify();
    let head = Response::builder().header("content-type", "application/grpc").body(()).expect("a head");
    let mut stream = respond.send_response(head, false).ok()?;
    stream.send_data(Bytes::from_static(&[0; PREFIX]), false).ok()?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers).ok()
}

fn spans(of: ResourceSpans) -> Vec<Span> {
    let resource = attributes(of.resource.unwrap_or_default().attributes);
    let received = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
    received.map(|span| Span::of(span, resource.clone())).collect()
}

// === impl Span ===

impl Span {
    fn of(span: Received, resource: BTreeMap<String, String>) -> Self {
        let status = span.status.unwrap_or_default();
        Self {
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            kind: SpanKind::try_from(span.kind).expect("a kind"),
            name: span.name,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            attributes: attributes(span.attributes),
            resource,
            state: span.trace_state,
            error: (status.code == StatusCode::Error as i32).then_some(status.message),
            links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
        }
    }

    /// An attribute; empty if it has none of the name.
    pub fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    pub fn took(&self) -> Duration {
        Duration::from_nanos(self.end - self.start)
    }

    /// Whether it began and ended within `outer`.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.start <= self.start && self.end <= outer.end
    }
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::BoolValue(truth)) => truth.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
