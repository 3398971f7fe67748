//! The response to a request that failed in the gateway, and the report of the failure.

use api::cluster_name::ClusterName;
use tracing::Level;

use crate::connection::Connection;
use crate::error::{Error, Refusal};
use crate::holding::{Account, ToldToGiveWay};
use crate::proxy::Answer;
use crate::record::{Failed, Record};
use crate::request::Head;

/// Responds with a failure, reports it to log and metrics, and closes a stranger's connection.
pub(super) fn refuse(
    connection: &Connection,
    head: &Head<'_>,
    error: Error,
    account: &Account,
    record: &mut Record,
) -> (Answer, Refusal) {
    let (gateway, verdict) = (connection.gateway(), error.verdict());
    let side = verdict.side;
    gateway.metrics.failed(side.as_str());
    let share = record.refused(side, head.cluster(), gateway);
    let is_strangers = error.is_unauthenticated() || error.is_before_authentication() && !connection.is_known();
    if is_strangers && !connection.peer().is_front_proxy() {
        connection.close_soon();
    }
    let is_operational = verdict.level == Level::WARN;
    let due = if is_operational { gateway.failure_log.due(share, side) } else { None };
    // As text, which the log escapes: an error may repeat text from a caller or another server.
    let text = due.map(|_| error.to_string());
    if !is_operational {
        tracing::debug!(
            cluster = head.cluster().map_or("", ClusterName::as_str),
            side = side.as_str(),
            error = error.to_string(),
            "request refused"
        );
    }
    let (refusal, gave_way) = (error.refusal(), matches!(error, Error::HeldTooMuch));
    let mut response = error.into_response_as(head.form.pick());
    if gave_way {
        response.extensions_mut().insert(ToldToGiveWay);
    }
    if let (Some(suppressed), Some(text)) = (due, text) {
        let (user, code) = (account.holder().user(), response.status().as_u16());
        record.failed(head, &Failed { user, side, code, text: &text, suppressed });
    }
    (Answer::from(response), refusal)
}
