//! How many files and sockets the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as every Go program does at its start (`os/rlimit.go`):
/// the customary 1,024 is there for programs that use `select`, and each watch, stream and client
/// is a socket. Says what the limit is now; `None` is no limit.
///
/// A system that refuses is left as it is: the limit may do.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }
}
