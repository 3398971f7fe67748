//! Any certificate request: recognized only if it is whole, and of the cluster that its names say.
//!
//! Input: DER, and as it is, for PEM.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use register::csr::{Request, SIGNER};

pub const WORDS: &[&str] = &[
    "-----BEGIN CERTIFICATE REQUEST-----\n",
    "\n-----END CERTIFICATE REQUEST-----\n",
    "system:open-cluster-management:c1",
    "system:open-cluster-management:c1:agent",
    "system:open-cluster-management:managed-clusters",
    "0\u{2}",
    "1\u{2}0\0",
    "\u{6}\u{3}U\u{4}\u{3}",
    "\u{6}\u{3}U\u{4}\n",
    "\u{2}\u{1}\0",
];

pub fn check(input: &[u8]) {
    let base64 = STANDARD.encode(input);
    let wrapped = format!("-----BEGIN CERTIFICATE REQUEST-----\n{base64}\n-----END CERTIFICATE REQUEST-----\n");
    let usages = ["digital signature", "client auth"].map(str::to_owned);
    for pem in [input, wrapped.as_bytes()] {
        let request = Request { signer: SIGNER, label: Some("c1"), pem, usages: &usages };
        if let Ok(recognized) = request.recognize() {
            assert_eq!(recognized.cluster, "c1");
        }
    }
}
