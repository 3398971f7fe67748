//! A member's refusal of an upgrade: its body is read, within limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_LENGTH, LOCATION};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::body::{Peeked, ResponseBody};
use crate::headers;
use crate::holding::Account;
use crate::upstream::{HeldIncoming, Lost};

/// The body of a refusal is a Status. A larger body is not passed on: a truncated one would look
/// complete.
const REFUSAL_BYTES: usize = 1024 * 1024;
const REFUSAL_WITHIN: Duration = Duration::from_secs(10);

/// Reads the member's refusal to its end: clients print its Status. The client's connection closes
/// after it.
///
/// The bytes read count for the request, in `account`.
pub async fn refused(
    response: Response<Peeked<HeldIncoming>>,
    account: &Account,
) -> Result<Response<ResponseBody>, Lost> {
    let (mut head, body) = response.into_parts();
    let body = match timeout(REFUSAL_WITHIN, read(body, account)).await {
        Ok(body) => body?,
        Err(_) => return Err(format!("the refusal of the upgrade did not end within {REFUSAL_WITHIN:?}").into()),
    };
    headers::to_client(&mut head.headers);
    head.headers.remove(LOCATION);
    head.headers.remove(CONTENT_LENGTH);
    let mut refusal = Response::new(ResponseBody::full(body));
    *refusal.status_mut() = head.status;
    *refusal.headers_mut() = head.headers;
    Ok(refusal)
}

async fn read(mut body: Peeked<HeldIncoming>, account: &Account) -> Result<Bytes, Lost> {
    let (mut read, mut tally) = (BytesMut::new(), account.tally());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if read.len() + data.len() > REFUSAL_BYTES {
            return Err(format!("its refusal of the upgrade has more than {} KiB", REFUSAL_BYTES / 1024).into());
        }
        read.extend_from_slice(&data);
        tally.set(read.capacity());
    }
    Ok(read.freeze())
}
