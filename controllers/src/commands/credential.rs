//! `credential`: a credential plugin for clients with the token in a file
//! (`client.authentication.k8s.io/v1`).

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use k8s_openapi::jiff::Timestamp;
use net::follow;
use register::expiry::Expiry;
use serde_json::json;

/// Limit of a token in bytes: what servers accept in one header.
const LONGEST: u64 = 64 << 10;

/// Print an `ExecCredential` with the token of a file
///
/// For the exec stanza of a kubeconfig, and for providers of `ClusterProfiles`.
#[derive(Debug, clap::Args)]
pub struct Credential {
    /// File with the token. The expiry of a JWT is printed as well
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

// === impl Credential ===

impl Credential {
    pub fn text(&self) -> anyhow::Result<String> {
        let file = self.token_file.display();
        let read = follow::read(&self.token_file, LONGEST);
        let read = read.with_context(|| format!("cannot read the token in {file}: check --token-file"))?;
        let token = read.trim_ascii();
        // The characters that a header accepts (RFC 6750, 2.1). No message contains any part of the
        // token.
        let is_token = !token.is_empty() && token.iter().all(u8::is_ascii_graphic);
        ensure!(is_token, "{file} holds no token: it must be one line of visible ASCII characters");
        let mut status = json!({"token": String::from_utf8_lossy(token)});
        if let Expiry::At(seconds) = Expiry::of_token(token)
            && let Ok(end) = Timestamp::from_second(seconds)
        {
            status["expirationTimestamp"] = end.to_string().into();
        }
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
        });
        Ok(format!("{credential}\n"))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::Value;

    use super::*;

    fn printed(contents: &[u8]) -> Result<Value, String> {
        let directory = tempfile::tempdir().unwrap();
        let token_file = directory.path().join("token");
        std::fs::write(&token_file, contents).unwrap();
        let text = Credential { token_file }.text().map_err(|error| format!("{error:#}"))?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_token_is_printed_with_the_end_that_it_tells() {
        let jwt = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"exp":1900000000}"#));
        assert_eq!(
            printed(format!("{jwt}\n").as_bytes()).unwrap(),
            json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                "status": {"token": jwt, "expirationTimestamp": "2030-03-17T17:46:40Z"}})
        );
        assert_eq!(printed(b"opaque").unwrap()["status"], json!({"token": "opaque"}));
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_repeated() {
        for contents in [&b""[..], b"\n", b"c4n4ry c4n4ry", b"c4n4ry\nc4n4ry", b"c4n4ry\xff"] {
            let told = printed(contents).unwrap_err();
            assert!(told.contains("/token holds no token") && !told.contains("c4n4ry"), "{told}");
        }
        let told = printed(&vec![b'a'; 65 << 10]).unwrap_err();
        assert!(told.contains("longer than 64 KiB"), "{told}");
        let told = Credential { token_file: "/nowhere/token".into() }.text().unwrap_err();
        assert!(format!("{told:#}").contains("/nowhere/token"), "{told:#}");
    }
}
