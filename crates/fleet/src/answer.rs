//! One answer, read whole.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use kube::core::Status;

use crate::failure::Failure;
use crate::retry_after;

/// The body of the answer to `request`, of `most` bytes; anything but a 2xx is a failure. How long
/// it takes is for the caller to bound.
pub async fn answer(client: &Client, request: Request<Body>, most: usize) -> Result<Bytes, Failure> {
    let response = client.send(request).await?;
    let response = retry_after::into_status(response).await?;
    let code = response.status();
    let body = Limited::new(response.into_body(), most).collect().await;
    let body = body.map_err(|error| Failure::broken(&*error))?.to_bytes();
    if code.is_success() { Ok(body) } else { Err(refusal(code, &body)) }
}

/// As kube reads errors.
fn refusal(code: StatusCode, body: &Bytes) -> Failure {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => Failure::answered(status),
        Err(_) => Failure::plain(code.as_u16(), String::from_utf8_lossy(body).trim()),
    }
}
