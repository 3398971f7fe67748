//! Any kubeconfig that another client wrote into an object of the hub: a cluster that a gateway can
//! use, or a refusal that repeats no credential.
//!
//! Input: the file.

use api::secret::{Credential, Trust};
use register::kubeconfig::{Rules, checked, cluster};
use register::reading::Reading;

pub const WORDS: &[&str] = super::kubeconfig::WORDS;

pub fn check(input: &[u8]) {
    let exec_commands = vec!["x".to_owned()];
    let read = cluster(input, &Rules { exec_commands, ..Rules::default() });
    let reading = read.map_or_else(Reading::Refused, |secret| checked(Reading::Register(Box::new(secret))));
    let secret = match reading {
        Reading::Register(secret) => secret,
        Reading::Refused(refused) => return assert!(!refused.to_string().contains("~secret~"), "{refused}"),
        other => panic!("{other:?}"),
    };
    assert!(secret.trust != Trust::Insecure, "not verified, which nobody allowed");
    if let Credential::Exec(program) = &secret.credential {
        assert_eq!(program.command, "x");
    }
    secret.document(None, "a").expect("what is accepted can be written");
}
