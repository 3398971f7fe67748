//! One cluster on the page of all clusters: the words of its fields.

use api::secret::{ENDPOINT_TYPE_CLUSTER_PROXY, ENDPOINT_TYPE_CONST};

use crate::findings::{SOON, renewal};
use crate::row::{Agents, Row};

/// Whether a person should look at the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rating {
    /// It cannot be used.
    Bad,
    /// It works, but may soon not, or it was reported unhealthy.
    Warning,
    Good,
    /// Not asked yet, or not for this person.
    #[default]
    Unknown,
}

/// The words of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    pub state: Rating,
    pub status: &'static str,
    pub version: String,
    pub latency: String,
    pub reached: String,
    pub is_tunnelled: bool,
    pub agents: String,
    pub credential: String,
    pub expires: String,
    pub alias: String,
    pub labels: String,
    pub reason: String,
    pub endpoint: String,
    /// The latency as it is shown, in milliseconds.
    pub millis: Option<u64>,
}

// === impl Rating ===

impl Rating {
    pub const ALL: [Self; 4] = [Self::Bad, Self::Warning, Self::Good, Self::Unknown];

    /// The word for style sheet and script.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Warning => "warning",
            Self::Good => "good",
            Self::Unknown => "unknown",
        }
    }

    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bad => "Failing",
            Self::Warning => "Needs attention",
            Self::Good => "Ready",
            Self::Unknown => "Not known",
        }
    }

    fn of(row: &Row, now: i64) -> Self {
        match row.status {
            "Unknown" | "Forbidden" => Self::Unknown,
            "Ready" if omen(row, now).is_none() => Self::Good,
            "Ready" | "Unhealthy" => Self::Warning,
            _ => Self::Bad,
        }
    }
}

/// Why a cluster that works may soon fail.
fn omen(row: &Row, now: i64) -> Option<String> {
    if row.credential_expires_at.is_some_and(|end| end - now < SOON) {
        // A cell is plain text: commands cannot be set apart in it.
        let renewal = renewal(&row.name, row.rotates).replace('`', "");
        return Some(format!("its credential ends in {}: {renewal}", row.credential_expires_in));
    }
    row.agents.and_then(Agents::lacking)
}

// === impl Cells ===

impl Cells {
    /// The cells of a row at `now`, seconds since 1970. `shown` is the latency as it was shown
    /// before. It stays if the new one is about the same: otherwise, every look would change every
    /// cluster.
    pub fn new(row: Row, shown: Option<u64>, now: i64) -> Self {
        let state = Rating::of(&row, now);
        let latency = row.latency_millis.map(|millis| steady(millis, shown));
        let labels: Vec<_> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let omen = if row.status == "Ready" { omen(&row, now) } else { None };
        let agents = row.agents.map(|Agents { linked, wanted }| format!("{linked}/{wanted}"));
        Self {
            state,
            status: if row.status == "Unknown" { "Asking" } else { row.status },
            version: row.version,
            latency: latency.map(|millis| format!("{millis} ms")).unwrap_or_default(),
            reached: reached(&row.endpoint_type).to_owned(),
            is_tunnelled: row.endpoint_type == ENDPOINT_TYPE_CLUSTER_PROXY,
            agents: agents.unwrap_or_default(),
            credential: credential(&row.credential_type).to_owned(),
            expires: match row.credential_expires_in.as_str() {
                "-" => String::new(),
                left => left.to_owned(),
            },
            alias: row.alias,
            labels: labels.join(" "),
            reason: omen.unwrap_or(row.reason),
            endpoint: row.endpoint,
            millis: latency,
        }
    }

    /// The fields that are sent, by their names in the page.
    pub fn fields(&self) -> [(&'static str, &str); 11] {
        [
            ("state", self.state.word()),
            ("status", self.status),
            ("version", &self.version),
            ("latency", &self.latency),
            ("reached", &self.reached),
            ("agents", &self.agents),
            ("credential", &self.credential),
            ("expires", &self.expires),
            ("alias", &self.alias),
            ("labels", &self.labels),
            ("reason", &self.reason),
        ]
    }
}

/// `millis`, or `shown` if the two are less than a quarter of `shown` or less than 10 ms apart.
pub fn steady(millis: u64, shown: Option<u64>) -> u64 {
    let near = |shown: &u64| millis.abs_diff(*shown) < (shown / 4).max(10);
    shown.filter(near).unwrap_or(millis)
}

fn reached(endpoint_type: &str) -> &str {
    match endpoint_type {
        ENDPOINT_TYPE_CONST => "directly",
        ENDPOINT_TYPE_CLUSTER_PROXY => "tunnel",
        other => other,
    }
}

fn credential(kind: &str) -> &str {
    match kind {
        "ServiceAccountToken" => "token",
        "X509Certificate" => "certificate",
        "Dynamic" => "issued",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: &'static str) -> Row {
        Row {
            name: "berlin".into(),
            status,
            reason: String::new(),
            version: "v1.35.4".into(),
            latency_millis: Some(20),
            latency: "20ms".into(),
            endpoint_type: "Const".into(),
            endpoint: String::new(),
            credential_type: "ServiceAccountToken".into(),
            credential_expires_at: None,
            credential_expires_in: "-".into(),
            rotates: false,
            agents: None,
            alias: String::new(),
            labels: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_cluster_that_works_may_need_a_look() {
        let state = |row: &Row| Rating::of(row, 1_000);
        assert_eq!(
            ["Ready", "Unhealthy", "Unreachable", "Unknown", "Forbidden"].map(|status| state(&row(status))),
            [Rating::Good, Rating::Warning, Rating::Bad, Rating::Unknown, Rating::Unknown]
        );
        assert_eq!(state(&Row { credential_expires_at: Some(1_000 + SOON - 1), ..row("Ready") }), Rating::Warning);
        assert_eq!(state(&Row { credential_expires_at: Some(1_000 + SOON), ..row("Ready") }), Rating::Good);
        let one_of_two = Some(Agents { linked: 1, wanted: 2 });
        assert_eq!(state(&Row { agents: one_of_two, ..row("Ready") }), Rating::Warning);
        let cells = Cells::new(Row { agents: one_of_two, ..row("Ready") }, None, 0);
        assert_eq!((cells.status, &*cells.reason), ("Ready", "1 of 2 agents are linked"));
    }

    #[test]
    fn a_latency_that_is_about_the_same_is_the_same() {
        assert_eq!([20, 29, 30, 11, 10].map(|millis| steady(millis, Some(20))), [20, 20, 30, 20, 10]);
        assert_eq!((steady(1_200, Some(1_000)), steady(1_250, Some(1_000)), steady(7, None)), (1_000, 1_250, 7));
    }
}
