//! Whose credential is registered.

use api::secret::Credential;
use kube::config::Kubeconfig;

use crate::account::Account;
use crate::member::Member;
use crate::output;
use crate::own::own_credential;
use crate::rights::Rights;
use crate::trouble::Result;

/// What is registered of a member, and whose credential it is.
pub struct Identity {
    pub credential: Credential,
    pub account: Option<Account>,
    /// PEM, as pods of the member see it.
    pub authority: Vec<u8>,
    /// Uid of the account's binding.
    pub owner: String,
}

// === impl Identity ===

impl Identity {
    /// The person's own.
    pub fn own(kubeconfig: &Kubeconfig, context: &str) -> Result<Self> {
        let credential = own_credential(kubeconfig, context)?;
        Ok(Self { credential, account: None, authority: Vec::new(), owner: String::new() })
    }

    /// The token of an account on the member, which is made.
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
