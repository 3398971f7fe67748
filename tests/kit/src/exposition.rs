//! Metrics of programs, in Prometheus' text format.

use std::iter::Sum;
use std::str::FromStr;

/// The value of one series, with its labels as they are written (`requests_total{code="200"}`).
pub fn value<T: FromStr>(text: &str, series: &str) -> Option<T> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// The sum over all series of `name` whose labels contain `labels` (`code="200"`); 0 if there are
/// none.
pub fn sum<T: FromStr + Sum>(text: &str, name: &str, labels: &str) -> T {
    sum_where(text, name, |all| all.contains(labels))
}

/// As [`sum`], over the series whose labels, braces included, `counts`.
pub fn sum_where<T: FromStr + Sum>(text: &str, name: &str, counts: impl Fn(&str) -> bool) -> T {
    let of_line = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let labels = series.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('{'))?;
        counts(labels).then(|| value.parse().ok())?
    };
    text.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE requests counter\n\
                        requests_total{code=\"200\",verb=\"get\"} 3\n\
                        requests_total{code=\"404\",verb=\"get\"} 5\n\
                        requests_total_other{code=\"200\"} 7\n\
                        plain 17\n";

    #[test]
    fn series_of_one_name_are_added_up() {
        assert_eq!(sum::<u64>(TEXT, "requests_total", ""), 8);
        assert_eq!(sum::<u64>(TEXT, "requests_total", "code=\"200\""), 3);
        assert_eq!((sum::<u64>(TEXT, "plain", ""), sum::<u64>(TEXT, "requests", "")), (17, 0));
    }

    #[test]
    fn one_series_is_found_by_its_labels() {
        assert_eq!(value(TEXT, "requests_total{code=\"404\",verb=\"get\"}"), Some(5));
        assert_eq!((value(TEXT, "plain"), value::<u64>(TEXT, "requests_total")), (Some(17), None));
    }
}
