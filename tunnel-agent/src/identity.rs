//! The name of this process, by which servers tell it from others of the same cluster:
//! `Tunnel-Agent`.

use net::random::identifier;

/// Of the host's name that much is kept; with the random part it stays within the 64 of
/// `Tunnel-Agent`.
const LONGEST_HOST: usize = 40;

/// The pod's name, so that operators recognize it, and something random, since a restarted process
/// is another one.
pub fn of_process(variable: impl Fn(&str) -> Option<String>) -> String {
    let host = variable("HOSTNAME").unwrap_or_default();
    let fit = |byte: &char| byte.is_ascii_alphanumeric() || matches!(byte, '.' | '_' | '-');
    let host: String = host.chars().filter(fit).take(LONGEST_HOST).collect();
    let random = identifier();
    if host.is_empty() { random } else { format!("{host}-{random}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let name = |host: &str| of_process(|_| Some(host.to_owned()));
        let pod = name("tunnel-agent-7d4b9-x2x\n y");
        assert!(pod.starts_with("tunnel-agent-7d4b9-x2xy-"), "{pod}");
        assert!(name(&"x".repeat(300)).len() <= 64);
        assert_ne!(of_process(|_| None), of_process(|_| None));
    }
}
