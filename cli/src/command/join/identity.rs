//! The credential that is registered, and whose it is.

use api::secret::Credential;
use kube::config::Kubeconfig;

use crate::account::Account;
use crate::member::Member;
use crate::output;
use crate::own::own_credential;
use crate::rights::Rights;
use crate::trouble::Result;

/// The credential that is registered for a member, and the account that it belongs to.
pub struct Identity {
    pub credential: Credential,
    pub account: Option<Account>,
    /// CA of the member's API server as its pods see it, in PEM.
    pub authority: Vec<u8>,
    /// Uid of the account's binding.
    pub owner: String,
}

// === impl Identity ===

impl Identity {
    /// The person's own credential.
    pub fn own(kubeconfig: &Kubeconfig, context: &str) -> Result<Self> {
        let credential = own_credential(kubeconfig, context)?;
        Ok(Self { credential, account: None, authority: Vec::new(), owner: String::new() })
    }

    /// Creates an account on the member, with a token.
    pub async fn made(member: &Member, account: Account, rights: &Rights) -> Result<Self> {
        let owner = member.make(&account, rights).await?;
        output::say(&format!("ServiceAccount {} on the member: created, with {}", account.path(), rights.describe()));
        let token = member.token(&account, &owner).await?;
        Ok(Self {
            credential: Credential::Token(token.value),
            account: Some(account),
            authority: token.authority,
            owner,
        })
    }
}
