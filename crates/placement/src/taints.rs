//! The second filter: taints and tolerations.

use time::{Duration, OffsetDateTime};

use crate::objects::{ManagedCluster, Taint, Toleration};

/// Whether a cluster is tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// At least until this time; without a time, until something changes.
    Until(Option<OffsetDateTime>),
    No,
}

/// Whether all taints of `cluster` are tolerated at `now`.
///
/// `PreferNoSelect` always is; `NoSelectIfNew` is if the cluster is chosen already.
pub fn tolerance(
    cluster: &ManagedCluster,
    tolerations: &[Toleration],
    is_decided: bool,
    now: OffsetDateTime,
) -> Tolerance {
    let mut first_end = None;
    for taint in &cluster.taints {
        let is_harmless = taint.effect == "PreferNoSelect" || (taint.effect == "NoSelectIfNew" && is_decided);
        if is_harmless {
            continue;
        }
        // The first toleration that fits counts, though a later one may last longer.
        let mut found = tolerations.iter().map(|toleration| tolerated(taint, toleration, now));
        match found.find(|found| *found != Tolerance::No) {
            Some(Tolerance::Until(end)) => first_end = earlier(first_end, end),
            _ => return Tolerance::No,
        }
    }
    Tolerance::Until(first_end)
}

/// The earlier of two ends; `None` is never.
pub fn earlier(a: Option<OffsetDateTime>, b: Option<OffsetDateTime>) -> Option<OffsetDateTime> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn tolerated(taint: &Taint, toleration: &Toleration, now: OffsetDateTime) -> Tolerance {
    let has_place = (toleration.effect.is_empty() || toleration.effect == taint.effect)
        && (toleration.key.is_empty() || toleration.key == taint.key);
    let has_value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    match (has_place && has_value, toleration.toleration_seconds, taint.time_added) {
        // A taint without a time is older than any toleration.
        (false, ..) | (true, Some(_), None) => Tolerance::No,
        (true, None, _) => Tolerance::Until(None),
        (true, Some(seconds), Some(added)) => {
            let end = added.saturating_add(Duration::seconds(seconds));
            if now < end { Tolerance::Until(Some(end)) } else { Tolerance::No }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// 2026-03-01T12:00:00Z.
    const NOW: i64 = 1_772_366_400;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(NOW + seconds).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
    fn asked(taints: Json, tolerations: Json, is_decided: bool) -> Tolerance {
        let cluster: ManagedCluster = serde_json::from_value(json!({"spec": {"taints": taints}})).unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
        tolerance(&cluster, &tolerations, is_decided, at(0))
    }

    fn added(seconds: &str) -> Json {
        json!([{"key": "a", "effect": "NoSelect", "timeAdded": format!("2026-03-01T11:59:{seconds}Z")}])
    }

    #[test]
    fn a_toleration_ends_its_seconds_after_the_taint() {
        let five = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]);
        assert_eq!(asked(added("56"), five.clone(), false), Tolerance::Until(Some(at(1))));
        assert_eq!(asked(added("55"), five.clone(), false), Tolerance::No);
        let no_time = json!([{"key": "a", "effect": "NoSelect"}]);
        assert_eq!(asked(no_time.clone(), five, false), Tolerance::No);
        assert_eq!(asked(no_time, json!([{"key": "a", "operator": "Exists"}]), false), Tolerance::Until(None));
    }

    #[test]
    fn seconds_beyond_all_time_do_not_wrap() {
        for (seconds, is_tolerated) in [(i64::MAX, true), (i64::MIN, false), (0, false), (-1, false)] {
            let tolerations = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": seconds}]);
            let found = asked(added("59"), tolerations, false);
            assert_eq!(matches!(found, Tolerance::Until(Some(_))), is_tolerated, "{seconds}: {found:?}");
        }
    }

    #[test]
    fn the_first_that_fits_counts_and_the_first_end_of_all() {
        let both = json!([
            {"key": "a", "operator": "Exists", "tolerationSeconds": 10},
            {"key": "a", "operator": "Exists"},
        ]);
        assert_eq!(asked(added("59"), both, false), Tolerance::Until(Some(at(9))));
        let two = json!([
            {"key": "a", "effect": "NoSelect", "timeAdded": "2026-03-01T11:59:59Z"},
            {"key": "b", "effect": "NoSelect", "timeAdded": "2026-03-01T11:59:57Z"},
        ]);
        let all = json!([{"operator": "Exists", "tolerationSeconds": 10}]);
        assert_eq!(asked(two, all, false), Tolerance::Until(Some(at(7))));
    }

    #[test]
    fn effects_differ_for_who_is_chosen() {
        let taint = |effect: &str| json!([{"key": "a", "effect": effect}]);
        assert_eq!(asked(taint("PreferNoSelect"), json!([]), false), Tolerance::Until(None));
        assert_eq!(asked(taint("NoSelectIfNew"), json!([]), false), Tolerance::No);
        assert_eq!(asked(taint("NoSelectIfNew"), json!([]), true), Tolerance::Until(None));
        assert_eq!(asked(taint("NoSelect"), json!([]), true), Tolerance::No);
    }
}
