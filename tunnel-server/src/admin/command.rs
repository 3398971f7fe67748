//! Commands of operators, parsed from the request's path.

use http::StatusCode;
use telemetry::admin::{Answer, text};

use links::Registry;

/// A drain or a close of a link, an agent or a stream, by its identifier.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    DrainLink(u64),
    CloseLink(u64),
    DrainAgent(&'a str),
    CloseAgent(&'a str),
    CloseStream(u64),
}

// === impl Command ===

impl<'a> Command<'a> {
    pub fn parse(path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix("/debug/")?.split('/');
        let (kind, which, verb) = (segments.next()?, segments.next()?, segments.next()?);
        if segments.next().is_some() || which.is_empty() {
            return None;
        }
        Some(match (kind, verb) {
            ("links", "drain") => Self::DrainLink(which.parse().ok()?),
            ("links", "close") => Self::CloseLink(which.parse().ok()?),
            ("agents", "drain") => Self::DrainAgent(which),
            ("agents", "close") => Self::CloseAgent(which),
            ("streams", "close") => Self::CloseStream(which.parse().ok()?),
            _ => return None,
        })
    }

    pub async fn run(self, registry: &Registry) -> Answer {
        let (done, what) = match self {
            Self::DrainLink(id) => (registry.drain_link(id).await, "asked to be replaced"),
            Self::CloseLink(id) => (registry.close_link(id), "closed"),
            Self::DrainAgent(agent) => (registry.drain_agent(agent).await, "asked to replace its links"),
            Self::CloseAgent(agent) => (registry.close_agent(agent), "closed"),
            Self::CloseStream(id) => (registry.stream(id).map(|gauge| gauge.end()), "reset"),
        };
        match done {
            Ok(()) => text(StatusCode::OK, format!("{what}\n")),
            Err(error) => text(StatusCode::NOT_FOUND, format!("{error}: see /debug/links\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_and_which() {
        assert_eq!(Command::parse("/debug/links/7/drain"), Some(Command::DrainLink(7)));
        assert_eq!(Command::parse("/debug/links/7/close"), Some(Command::CloseLink(7)));
        assert_eq!(Command::parse("/debug/agents/a-1/drain"), Some(Command::DrainAgent("a-1")));
        assert_eq!(Command::parse("/debug/agents/a-1/close"), Some(Command::CloseAgent("a-1")));
        assert_eq!(Command::parse("/debug/streams/9/close"), Some(Command::CloseStream(9)));
        for path in [
            "/debug/links/7",
            "/debug/links/x/close",
            "/debug/links/7/close/now",
            "/debug/streams/9/drain",
            "/debug/agents//close",
            "/links/7/close",
        ] {
            assert_eq!(Command::parse(path), None, "{path}");
        }
    }
}
