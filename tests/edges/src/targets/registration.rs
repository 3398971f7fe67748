//! Any bytes from an agent to a server, and from a server to an agent.
//!
//! Input: one byte for the listening end, then the bytes.

use std::time::Duration;

use net::prefixed::Prefixed;
use tunnel::ClusterName;
use tunnel::register::{Registration, applicant, register};

const PATIENCE: Duration = Duration::from_secs(1);

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

pub const WORDS: &[&str] = &[
    "HTTP/1.1 101 Switching Protocols\r\n",
    "GET /tunnel HTTP/1.1\r\n",
    "Connection: Upgrade\r\n",
    "Upgrade: ",
    "\r\n",
    "\r\n\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Authorization: Bearer t\r\n",
    ": ",
    "\n",
    "\t",
    "%0a",
];

pub fn check(input: &[u8]) {
    let Some((first, said)) = input.split_first() else { return };
    let io = Prefixed::new(tokio::io::empty(), said.to_vec().into());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    if first & 1 == 0 {
        let Ok(applicant) = runtime.block_on(applicant(io, PATIENCE)) else { return };
        let Registration { agent, version, .. } = applicant.registration;
        assert!(is_name(&agent) && (1..=64).contains(&version.len()));
        // The parts of it that listings, logs and a hub's reviews get.
        assert!(!version.contains(char::is_control));
    } else {
        let cluster = ClusterName::parse("north").expect("a name");
        let registration = Registration { cluster, agent: "a".into(), link: 0, version: "v".into() };
        match runtime.block_on(register(io, "tunnel", &registration, None, PATIENCE)) {
            Ok(registered) => assert!(is_name(&registered.server)),
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    }
}
