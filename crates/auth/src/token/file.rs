//! A file of tokens in Kubernetes' format: CSV lines of `token,user,uid`, optionally with
//! `"group1,group2"`.
//!
//! `k8s.io/apiserver/pkg/authentication/token/tokenfile`. Fields may be quoted (RFC 4180). Blank
//! lines and lines without a token are skipped, and the last line with a token wins. Tokens are
//! stored as keyed hashes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::token_id::{TokenHasher, TokenId};
use crate::user::User;

/// Users by token. A new file takes effect with the next request.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    users: Arc<ArcSwap<HashMap<TokenId, Arc<User>>>>,
    hasher: TokenHasher,
}

/// Why a token file is invalid. The texts never contain the file's contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    #[error("the token file is not UTF-8")]
    NotUtf8,
    #[error("line {line}: a quote is out of place or not closed")]
    Quote { line: usize },
    #[error("line {line}: a token needs at least three columns: token, user name, user uid")]
    Columns { line: usize },
    #[error("line {line}: the user name is empty")]
    NoUser { line: usize },
}

/// The fields of one line.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    line: usize,
    fields: Vec<String>,
}

// === impl TokenFile ===

impl TokenFile {
    pub(crate) fn parse(csv: &[u8]) -> Result<Self, TokenFileError> {
        let hasher = TokenHasher::new();
        let users = users(csv, &hasher)?;
        Ok(Self { users: Arc::new(ArcSwap::from_pointee(users)), hasher })
    }

    /// Replaces all tokens. On an error, the old ones stay.
    pub(crate) fn replace(&self, csv: &[u8]) -> Result<(), TokenFileError> {
        self.users.store(Arc::new(users(csv, &self.hasher)?));
        Ok(())
    }

    /// The holder of the token with this `id` by [`TokenFile::hasher`].
    pub(super) fn find(&self, id: &TokenId) -> Option<Arc<User>> {
        self.users.load().get(id).cloned()
    }

    pub(super) fn hasher(&self) -> &TokenHasher {
        &self.hasher
    }
}

fn users(csv: &[u8], hasher: &TokenHasher) -> Result<HashMap<TokenId, Arc<User>>, TokenFileError> {
    let text = std::str::from_utf8(csv).map_err(|_| TokenFileError::NotUtf8)?;
    let mut users = HashMap::new();
    for Record { line, fields } in records(text)? {
        let [token, name, uid, rest @ ..] = fields.as_slice() else { return Err(TokenFileError::Columns { line }) };
        if token.is_empty() {
            tracing::warn!(line, "a line of the token file has no token: skipped");
            continue;
        }
        if name.is_empty() {
            return Err(TokenFileError::NoUser { line });
        }
        let user = User {
            name: name.clone(),
            uid: (!uid.is_empty()).then(|| uid.clone()),
            groups: groups(rest.first()),
            ..User::default()
        };
        if users.insert(hasher.id(token.as_bytes()), Arc::new(user.with_authenticated_group())).is_some() {
            tracing::warn!(line, "a token is in the token file twice: the later line wins");
        }
    }
    Ok(users)
}

fn groups(column: Option<&String>) -> Vec<String> {
    let groups = column.map(String::as_str).unwrap_or_default();
    groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect()
}

/// Splits CSV. A quote may only open a field at its start, and a closing quote must be followed by
/// a comma or the line's end.
fn records(text: &str) -> Result<Vec<Record>, TokenFileError> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let start = line;
        let mut fields = Vec::new();
        loop {
            let (field, end) = field(rest, line)?;
            let raw = &rest[..end];
            line += raw.matches('\n').count();
            rest = &rest[end..];
            fields.push(field);
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        line += 1;
        if fields != [""] {
            records.push(Record { line: start, fields });
        }
    }
    Ok(records)
}

/// Returns the first field of `text`, and its end: a comma, a line's end or the end of the text.
fn field(text: &str, line: usize) -> Result<(String, usize), TokenFileError> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        let end = if text[end..].starts_with('\n') { end - usize::from(text[..end].ends_with('\r')) } else { end };
        let field = &text[..end];
        return if field.contains('"') { Err(TokenFileError::Quote { line }) } else { Ok((field.to_owned(), end)) };
    };
    let mut field = String::new();
    let mut from = 0;
    while let Some(quote) = quoted[from..].find('"').map(|at| from + at) {
        field.push_str(&quoted[from..quote]);
        let after = &quoted[quote + 1..];
        if after.starts_with('"') {
            field.push('"');
            from = quote + 2;
            continue;
        }
        let ended = after.is_empty() || [",", "\n", "\r\n"].iter().any(|end| after.starts_with(end));
        return if ended { Ok((field, quote + 2)) } else { Err(TokenFileError::Quote { line }) };
    }
    Err(TokenFileError::Quote { line })
}

#[cfg(test)]
mod tests;
