//! Requests to an API server, by its own count.

use kit::exposition::sum_where;

/// Requests to an API server, as it counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Dry runs among them; watches are not.
    pub requests: f64,
    pub writes: f64,
}

const VERBS: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];

// === impl Asked ===

impl Asked {
    /// Counts the requests with labels that satisfy `of`.
    pub fn of(text: &str, of: impl Fn(&str) -> bool) -> Self {
        const NAME: &str = "apiserver_request_total";
        let is_write = |labels: &str| VERBS.iter().any(|verb| labels.contains(&format!("verb=\"{verb}\"")));
        let is_dry = |labels: &str| labels.contains("dry_run=\"All\"");
        Self {
            requests: sum_where(text, NAME, |labels| of(labels) && !labels.contains("verb=\"WATCH\"")),
            writes: sum_where(text, NAME, |labels| of(labels) && is_write(labels) && !is_dry(labels)),
        }
    }

    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { requests: self.requests - before.requests, writes: self.writes - before.writes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "apiserver_request_total{dry_run=\"\",group=\"\",resource=\"secrets\",verb=\"APPLY\"} 3\n\
                        apiserver_request_total{dry_run=\"All\",group=\"\",resource=\"secrets\",verb=\"PATCH\"} 5\n\
                        apiserver_request_total{dry_run=\"\",group=\"\",resource=\"secrets\",verb=\"GET\"} 7\n\
                        apiserver_request_total{dry_run=\"\",group=\"\",resource=\"secrets\",verb=\"WATCH\"} 11\n\
                        apiserver_request_total{dry_run=\"\",group=\"\",resource=\"leases\",verb=\"PUT\"} 13\n\
";

    #[test]
    fn dry_runs_are_requests_and_no_writes_and_watches_are_neither() {
        let asked = Asked::of(TEXT, |labels| labels.contains("resource=\"secrets\""));
        assert_eq!(asked, Asked { requests: 15.0, writes: 3.0 });
        assert_eq!(asked.since(Asked { requests: 5.0, writes: 1.0 }), Asked { requests: 10.0, writes: 2.0 });
    }
}
