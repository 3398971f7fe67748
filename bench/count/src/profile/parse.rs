//! The lines of a callgrind file.

use std::collections::HashMap;

use super::Profile;

/// The result of the lines so far.
#[derive(Default)]
struct Reader<'a> {
    profile: Profile,
    /// Names are written once, with a number that stands for them later.
    names: HashMap<&'a str, &'a str>,
    function: &'a str,
    callee: &'a str,
    /// The next cost is that of a call.
    is_call: bool,
}

// === impl Profile ===

impl Profile {
    /// Lines that mean nothing here are passed over.
    pub(super) fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.profile
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) {
        if let Some(name) = line.strip_prefix("fn=") {
            self.function = self.name(name);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            self.callee = self.name(name);
        } else if line.starts_with("calls=") {
            self.is_call = true;
        } else if let Some(total) = line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")) {
            self.profile.total = total.trim().parse().unwrap_or_default();
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // A line without costs is one of zero.
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse().ok()).unwrap_or_default();
            self.cost(cost);
        }
    }

    /// `(12) name` or, later, `(12)`.
    fn name(&mut self, written: &'a str) -> &'a str {
        let Some((number, name)) = written.split_once(')') else { return written };
        match name.trim_start() {
            "" => self.names.get(number).copied().unwrap_or("?"),
            name => {
                self.names.insert(number, name);
                name
            }
        }
    }

    fn cost(&mut self, cost: u64) {
        let is_call = std::mem::take(&mut self.is_call);
        let function = self.profile.functions.entry(self.function.to_owned()).or_default();
        if !is_call {
            function.own += cost;
        } else if self.callee != self.function {
            function.below += cost;
            let callee = self.profile.functions.entry(self.callee.to_owned()).or_default();
            *callee.callers.entry(self.function.to_owned()).or_default() += cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
positions: line
events: Ir
summary: 100

ob=(1) /bin/gateway
fl=(1) main.rs
fn=(1) main
16 10
+2 5
cfn=(2) work
calls=0 50
* 70
cfn=(3) copy
calls=3 7
20 15

fn=(2)
50 40
fi=(2) inlined.rs
-3 5
fe=(1)
cfn=(3)
calls=1 7
* 25
cfn=(2)
calls=2 50
* 30

fn=(3)
7 40
";

    #[test]
    fn own_cost_and_that_of_calls_are_told_apart() {
        let profile = Profile::parse(DUMP);
        assert_eq!(profile.total, 100);
        let costs = ["main", "work", "copy"].map(|name| {
            let function = &profile.functions[name];
            (function.own, function.below)
        });
        // A call that began before the zeroing is one; recursion is not counted twice.
        assert_eq!(costs, [(15, 85), (45, 25), (40, 0)]);
    }

    #[test]
    fn callers_come_with_their_shares() {
        let profile = Profile::parse(DUMP);
        let callers = profile.functions["copy"].callers();
        assert_eq!(callers, [(0.625, "work"), (0.375, "main")]);
    }
}
