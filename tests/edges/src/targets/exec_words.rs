//! Any standard error of a credential plugin: one short line without the values that were given to
//! the plugin, and without PEM.
//!
//! Input: a secret value, a line feed, standard error.

use api::secret::{ExecApiVersion, ExecConfig};
use exec_credential::{ClusterInfo, Request};

pub const WORDS: &[&str] = &[
    "s3cret-value",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----",
    "-----",
    "MIGHAgEAMBMGByqGSM49",
    "\n",
    "\r",
    "\u{1b}[31m",
    "\u{202e}",
    "***",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9",
    " ",
    "/",
    "é",
    "error: ",
    "0123456789abcdef0123456789abcdef",
    "\u{2028}",
];

pub fn check(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (value, stderr) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let Ok(value) = std::str::from_utf8(value) else { return };
    let config = ExecConfig {
        api_version: ExecApiVersion::V1,
        command: "plugin".to_owned(),
        args: Vec::new(),
        env: vec![("VALUE".to_owned(), value.into())],
        provide_cluster_info: false,
        install_hint: None,
    };
    let request = Request::new(config, ClusterInfo::default);
    let told = exec_credential::edges::last_words(&request, stderr);
    assert!(!told.contains(char::is_control) && !told.contains('\u{202e}'), "{told:?}");
    let value = value.trim();
    // The placeholders for secrets, and for harmful characters, may form other words by chance.
    let plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if value.len() >= 8 && plain {
        assert!(!told.contains(value), "{told}");
    }
    assert!(!told.contains("-----BEGIN ") && !told.contains("-----END "), "{told}");
}
