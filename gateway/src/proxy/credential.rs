//! As whom the gateway speaks to a member: always with the registered credential, and on behalf of
//! somebody where [`crate::exchange`] says so.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::Call;
use crate::clusters::CredentialLease;
use crate::error::Error;
use crate::exchange::NotAHeader;

/// Sets the cluster's own credential, and as whom it acts. The caller's credential was removed when
/// it was authenticated, its identity with the headers that stay here; a cluster that authenticates
/// us by client certificate needs no header.
pub fn apply(call: &Call<'_>, lease: &CredentialLease<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
    call.acting.apply(call.permit.user(), headers).map_err(|NotAHeader| Error::IDENTITY)?;
    if let Some(authorization) = lease.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    Ok(())
}
