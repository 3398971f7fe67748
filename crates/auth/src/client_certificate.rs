//! Authenticates by a client certificate that the hub's client CA signed: the CN is the user, and
//! every O a group.
//!
//! `CommonNameUserConversion` in `k8s.io/apiserver/pkg/authentication/request/x509/x509.go`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

use crate::ca_bundle::CaBundle;
use crate::certificate::Subject;
use crate::clock::Window;
use crate::peer::{Peer, Verdict};
use crate::review::Opinion;
use crate::trust::Snapshot;
use crate::user::User;

/// Extra key with the ID of the request's credential, for audit logs.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// No opinion without a certificate, or if its CN is empty.
pub(crate) fn authenticate(peer: &Peer, bundle: &Snapshot<Arc<CaBundle>>, now: u64) -> Opinion {
    if peer.certificates().is_empty() {
        return Opinion::None;
    }
    let mut memory = peer.memory();
    match Verdict::recall(&mut memory.client, bundle.generation, now, || judge(peer, &bundle.value, now)) {
        Ok(Some(user)) => Opinion::User(user),
        Ok(None) => Opinion::None,
        Err(why) => Opinion::Refused(why),
    }
}

fn judge(peer: &Peer, bundle: &CaBundle, now: u64) -> Result<(Option<Arc<User>>, Window), Arc<str>> {
    let chain = peer.certificates();
    let refuse = |why: &dyn std::fmt::Display| Arc::from(format!("client certificate: {why}"));
    let window = bundle.verify(chain, now).map_err(|error| refuse(&error))?;
    let subject = Subject::parse(&chain[0]).map_err(|error| refuse(&error))?;
    Ok((user(subject, &chain[0]).map(Arc::new), window))
}

fn user(subject: Subject, der: &[u8]) -> Option<User> {
    if subject.common_name.is_empty() {
        return None;
    }
    let mut id = String::from("X509SHA256=");
    for byte in digest(&SHA256, der).as_ref() {
        let _ = write!(id, "{byte:02x}"); // into a String: cannot fail
    }
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
    let user = User { name: subject.common_name, uid: None, groups: subject.organizations, extra };
    Some(user.with_authenticated_group())
}
