//! Moves the frames of a served connection, accepts its streams and checks that its peer is alive.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Connection, SendResponse};
use http::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::Instrument;

use super::incoming::{Incoming, status};
use super::{LinkError, Serving, broken};
use crate::keepalive::Keepalive;
use crate::leaving::LEAVING;
use crate::link::LEAVE;
use crate::refusal::HOP;
use crate::signals::Signal;
use crate::stream::Open;
use crate::turn::Turns;
use crate::{Hop, Reason, Refusal, Settings};

/// Owns the connection.
pub(super) struct Driver<'a, T, H> {
    pub connection: Connection<T, Bytes>,
    pub keepalive: Keepalive,
    pub turns: Turns,
    pub serving: &'a Serving,
    pub settings: &'a Settings,
    pub handler: H,
    pub draining: bool,
}

// === impl Driver ===

impl<T, H, F> Driver<'_, T, H>
where
    T: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Incoming) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    pub async fn run(mut self) -> Result<(), LinkError> {
        while let Some((request, respond)) = poll_fn(|cx| self.poll(cx)).await? {
            self.dispatch(request, respond);
        }
        Ok(())
    }

    /// The next request; `None` at the connection's end.
    #[allow(clippy::type_complexity, reason = "h2's pair, named by its caller")]
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(Request<RecvStream>, SendResponse<Bytes>)>, LinkError>> {
        let signals = &self.serving.0.activity.signals;
        signals.register(cx.waker());
        if signals.has(Signal::Close) {
            return Poll::Ready(Err(LinkError::Closed));
        }
        if !self.draining && signals.has(Signal::Drain) {
            self.draining = true;
            self.serving.0.notices.over();
            self.connection.graceful_shutdown();
        }
        loop {
            match self.connection.poll_accept(cx) {
                Poll::Ready(accepted) => return Poll::Ready(accepted.transpose().map_err(broken)),
                Poll::Pending => {}
            }
            let announce = |window| self.connection.set_initial_window_size(window);
            ready!(self.keepalive.tend(cx, &self.turns, announce)).map_err(LinkError::Silent)?;
        }
    }

    fn dispatch(&self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let (head, body) = request.into_parts();
        if head.method == Method::GET && head.uri.path() == LEAVING {
            // An error: the peer is gone.
            if let Ok(body) = respond.send_response(Response::new(()), false) {
                self.serving.0.notices.ask(body);
            }
            return;
        }
        if head.method != Method::CONNECT {
            answer(respond, self.other(&head.method, head.uri.path()));
            return;
        }
        let parsed = match Incoming::parse(head) {
            Ok(parsed) => parsed,
            Err(message) => return answer(respond, malformed(message)),
        };
        // h2 limits the streams that are open. The limit here also counts those that were reset
        // while a handler still has them: a peer that opens and resets as fast as it can must not
        // have more handlers running than it may have streams.
        let Some(open) = Open::of(&self.serving.0.open, self.settings.max_streams as usize) else {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            return;
        };
        let mut incoming = Incoming::new(parsed, respond, body, open);
        if incoming.poll_cancelled(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn((self.handler)(incoming).in_current_span());
        }
    }

    fn other(&self, method: &Method, path: &str) -> Response<()> {
        match (method, path) {
            (&Method::POST, LEAVE) => {
                self.serving.0.leave.cancel();
                status(StatusCode::NO_CONTENT)
            }
            (_, LEAVE | LEAVING) => status(StatusCode::METHOD_NOT_ALLOWED),
            _ => status(StatusCode::NOT_FOUND),
        }
    }
}

/// Removes the hop, which is not known here: the reader assumes the hop to which it is connected.
fn malformed(message: String) -> Response<()> {
    let mut response = status(Reason::Malformed.status());
    Refusal::new(Hop::Server, Reason::Malformed, message).write(response.headers_mut());
    response.headers_mut().remove(HOP);
    response
}

fn answer(mut respond: SendResponse<Bytes>, response: Response<()>) {
    // An error: the peer is gone.
    let _ = respond.send_response(response, true);
}
