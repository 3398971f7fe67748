//! Reads one response as a whole.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::core::Status;

use crate::failure::{Failure, LONGEST_ERROR};
use crate::retry_after;
use crate::sender::{Sender, Streamed};

/// Returns the body of the response to `request`, up to `most` bytes. Any status but 2xx is a
/// failure, of which at most 64 KiB are read. The caller must bound the time.
pub async fn answer(sender: &Sender, request: Request<Body>, most: usize) -> Result<Bytes, Failure> {
    read(sender, request, most, Bytes::clone).await
}

/// Like [`answer`], but returns what `make` makes of the body. A response that holds room
/// ([`Sender::roomed`]) holds it until then.
pub async fn read<T>(
    sender: &Sender,
    request: Request<Body>,
    most: usize,
    make: impl FnOnce(&Bytes) -> T,
) -> Result<T, Failure> {
    let mut body = success(sender.send(request).await?).await?.into_body();
    match Limited::new(&mut body, most).collect().await {
        Ok(read) => Ok(make(&read.to_bytes())),
        Err(error) => Err(Failure::broken(&*error)),
    }
}

/// Returns the response if its status is 2xx, and a failure otherwise.
pub async fn success(response: Response<Streamed>) -> Result<Response<Streamed>, Failure> {
    let response = retry_after::into_status(response).await?;
    let code = response.status();
    if code.is_success() {
        return Ok(response);
    }
    let again = retry_after::of(response.headers());
    Err(match Limited::new(response.into_body(), LONGEST_ERROR).collect().await {
        Ok(body) => refusal(code, &body.to_bytes(), again),
        // The code says more than the reason why its body was cut off.
        Err(_) => Failure::unread(code.as_u16()),
    })
}

/// Reads an error as kube does.
fn refusal(code: StatusCode, body: &Bytes, again: Option<Duration>) -> Failure {
    let Ok(status) = serde_json::from_slice::<Status>(body) else {
        let plain = Failure::plain(code.as_u16(), String::from_utf8_lossy(body).trim());
        // API servers that turn requests away before they read them answer in plain text.
        return Failure { retry_after: again.filter(|_| code == StatusCode::TOO_MANY_REQUESTS), ..plain };
    };
    Failure::answered(status)
}

#[cfg(test)]
mod tests {
    use tower::service_fn;

    use super::*;
    use crate::failure::Kind;

    #[tokio::test]
    async fn of_an_error_only_the_beginning_is_read() {
        const MOST: usize = 1 << 20;
        let asked = |code: u16, length: usize| {
            let answer = move |_: Request<Body>| async move {
                let status = serde_json::json!({"kind": "Status", "message": "m".repeat(length), "code": code});
                let mut response = Response::new(Body::from(status.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(code).unwrap();
                Ok::<_, kube::Error>(response)
            };
            let sender = Sender::new(service_fn(answer));
            async move { answer_of(&sender, MOST).await }
        };
        assert_eq!(asked(200, 2 * LONGEST_ERROR).await.unwrap().len() / LONGEST_ERROR, 2);
        let short = asked(500, 10_000).await.unwrap_err();
        assert_eq!((short.kind, short.message.len()), (Kind::Answered(500), 4096));
        let long = asked(500, 2 * LONGEST_ERROR).await.unwrap_err();
        assert_eq!((long.kind, long.message.contains("unreadable body")), (Kind::Plain(500), true), "{long}");
    }

    #[tokio::test]
    async fn who_turns_all_away_says_for_how_long() {
        let asked = |code: u16, kind: &'static str, body: &'static str| {
            let answer = move |_: Request<Body>| async move {
                let response = Response::builder().status(code).header("content-type", kind).header("retry-after", "7");
                Ok::<_, kube::Error>(response.body(Body::from(body.as_bytes().to_vec())).unwrap())
            };
            let sender = Sender::new(service_fn(answer));
            async move { answer_of(&sender, LONGEST_ERROR).await.unwrap_err() }
        };
        let busy = asked(429, "text/plain", "Too many requests, please try again later.").await;
        assert_eq!((busy.kind, busy.retry_after), (Kind::Plain(429), Some(Duration::from_secs(7))));
        let broken = asked(503, "text/plain", "no").await;
        assert_eq!((broken.kind, broken.retry_after), (Kind::Plain(503), None), "it may have been sent on");
    }

    async fn answer_of(sender: &Sender, most: usize) -> Result<Bytes, Failure> {
        answer(sender, Request::get("/").body(Body::empty()).unwrap(), most).await
    }
}
