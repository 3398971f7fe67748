//! Texts of others, made to fit.

const LONGEST: usize = 300;

/// Reasons can be logs of several lines: the first and the last say what it was.
pub fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= LONGEST {
        return text;
    }
    let head: String = text.chars().take(LONGEST / 2).collect();
    let tail: String = text.chars().skip(text.chars().count() - LONGEST / 2).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_becomes_a_line_with_its_beginning_and_its_end() {
        assert_eq!(line("it ended:\n  exit 1\n"), "it ended: exit 1");
        let long = line(&format!("first {} last", "log ".repeat(1000)));
        assert!(
            long.starts_with("first log") && long.ends_with("log last") && long.chars().count() == LONGEST + 3,
            "{long}"
        );
    }
}
