//! The credential.

use api::secret::{Credential, ExecConfig};
use net::tls::keypair::{self, KeyPair};
use secrecy::{ExposeSecret as _, SecretSlice};

use super::cluster::decoded;
use super::document::User;
use super::{Filled as _, Rules};
use crate::{Refused, parts};

const CERTIFICATE: &str = "client-certificate-data";
const KEY: &str = "client-key-data";

// === impl User ===

impl User {
    /// Prefers the token if there is also a certificate: both identify the same user to the same
    /// cluster, and a change of the token ends no connection. `vela cluster join` makes the same
    /// choice.
    pub(super) fn credential(&self, rules: &Rules) -> Result<Credential, Refused> {
        self.refuse()?;
        let token = self.token.filled();
        let certificate = decoded(CERTIFICATE, self.client_certificate_data.filled())?;
        let key = decoded(KEY, self.client_key_data.filled())?;
        if let Some(exec) = &self.exec {
            if token.is_some() || certificate.is_some() || key.is_some() {
                return Err(Refused::ExecBesideOther);
            }
            return allowed(ExecConfig::parse(exec.to_string().as_bytes())?, rules);
        }
        match (token, certificate, key) {
            (_, Some(_), None) => Err(Refused::Half(CERTIFICATE, KEY)),
            (_, None, Some(_)) => Err(Refused::Half(KEY, CERTIFICATE)),
            (Some(token), _, _) => parts::bearer(token),
            (None, Some(certificate), Some(key)) => {
                keypair::chain_and_key(&certificate, &key).map_err(Refused::KeyPair)?;
                Ok(Credential::X509 { certificate, private_key: SecretSlice::from(key) })
            }
            (None, None, None) => Err(Refused::NoCredential),
        }
    }

    /// Refuses credentials that cannot be taken over.
    fn refuse(&self) -> Result<(), Refused> {
        for (field, text) in [("client-certificate", &self.client_certificate), ("client-key", &self.client_key)] {
            if text.filled().is_some() {
                return Err(Refused::File(field));
            }
        }
        if self.token_file.filled().is_some() {
            return Err(Refused::TokenFile);
        }
        for (field, is_set) in [
            ("auth-provider", self.auth_provider.as_ref().is_some_and(|value| !value.is_null())),
            ("username", self.username.filled().is_some()),
            ("password", self.password.filled().is_some()),
        ] {
            if is_set {
                return Err(Refused::Unsupported(field));
            }
        }
        for (field, is_set) in [
            ("as", self.r#as.filled().is_some()),
            ("as-uid", self.as_uid.filled().is_some()),
            ("as-groups", self.as_groups.as_ref().is_some_and(|groups| !groups.is_empty())),
            ("as-user-extra", self.as_user_extra.as_ref().is_some_and(|extra| !extra.is_empty())),
        ] {
            if is_set {
                return Err(Refused::Impersonation(field));
            }
        }
        Ok(())
    }
}

fn allowed(exec: ExecConfig, rules: &Rules) -> Result<Credential, Refused> {
    rules.check_program(&exec)?;
    exec.env.iter().try_for_each(|(name, _)| parts::variable("exec.env", name, rules))?;
    Ok(Credential::Exec(exec))
}

/// Refuses a certificate and a private key that are not usable or do not belong together.
pub(super) fn check_pair(credential: &Credential) -> Result<(), Refused> {
    let Credential::X509 { certificate, private_key } = credential else { return Ok(()) };
    KeyPair::from_pem(certificate, private_key.expose_secret()).map_err(Refused::KeyPair)?;
    Ok(())
}
