//! Tokens of an account, each in a Secret of the member.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use tokio::time::{Instant, sleep};

use super::{Member, TOKEN_LIMIT, Token};
use crate::account::{ACCOUNT_ANNOTATION, Account, MANAGED_BY, TOKEN_TYPE};
use crate::session::LOOK_AGAIN;
use crate::trouble::{Result, Trouble};

/// Most token Secrets that are read.
const MOST: u32 = 500;

// === impl Member ===

impl Member {
    /// The newest existing token of the account, or a new one.
    pub async fn token(&self, account: &Account, owner: &str) -> Result<Token> {
        let mut secrets = self.token_secrets(account).await?;
        match secrets.pop() {
            Some(newest) => self.filled(account, newest.name_any()).await,
            None => self.new_token(account, owner).await,
        }
    }

    /// Creates a token.
    pub async fn new_token(&self, account: &Account, owner: &str) -> Result<Token> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let mut document = account.token_document(owner);
        self.claim(account).put_on(&mut document);
        let document: Secret = serde_json::from_value(document)
            .map_err(|error| Trouble::failed(format!("cannot create a Secret: {error}"), ""))?;
        let made = self.ask(secrets.create(&PostParams::default(), &document)).await?;
        self.filled(account, made.name_any()).await
    }

    /// The account's token Secrets that the hub's joins created, the newest last.
    pub async fn token_secrets(&self, account: &Account) -> Result<Vec<Secret>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let params = ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)).limit(MOST);
        let list = self.ask(secrets.list(&params.fields(&format!("type={TOKEN_TYPE}")))).await?;
        let claim = self.claim(account);
        let own = |secret: &Secret| {
            secret.annotations().get(ACCOUNT_ANNOTATION) == Some(&account.name) && claim.is_on(secret)
        };
        let mut own: Vec<_> = list.items.into_iter().filter(own).collect();
        own.sort_by_key(|secret| (secret.creation_timestamp(), secret.name_any()));
        Ok(own)
    }

    /// Deletes a token Secret, which revokes its token.
    pub async fn revoke(&self, account: &Account, secret: &str) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        self.gone(secrets.delete(secret, &DeleteParams::default())).await
    }

    async fn filled(&self, account: &Account, secret: String) -> Result<Token> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
        let end = Instant::now() + TOKEN_LIMIT;
        loop {
            let mut data = self.ask(secrets.get(&secret)).await?.data.unwrap_or_default();
            if let Some(token) = data.remove("token").and_then(|token| String::from_utf8(token.0).ok()) {
                let authority = data.remove("ca.crt").map(|pem| pem.0).unwrap_or_default();
                return Ok(Token { secret, value: token.into(), authority });
            }
            if Instant::now() > end {
                let what = format!("the member put no token into the Secret {}/{secret}", account.namespace);
                let remedy = "check that its kube-controller-manager runs, and run the same command again";
                return Err(Trouble::failed(what, remedy));
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}
