//! A watch as its reader has to take it: whole lines, each a change, each change once, in order,
//! and on from the last version after an end.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The reader's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Read,
    /// The version has expired: list again.
    List,
    /// The member ended the stream by an error.
    Resume,
}

/// All objects that one reader has seen, over all of its streams.
#[derive(Debug, Default)]
pub struct Feed {
    last: u64,
    seen: HashSet<String>,
    /// A line of the current stream that is not whole yet.
    partial: Vec<u8>,
}

// === impl Feed ===

impl Feed {
    /// The version at which the next stream has to begin.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Number of seen objects.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Takes a list: the objects (uid, version) that there are at `version`. They never change, so
    /// each that is not newer than the last event has to have been seen. An error names those that
    /// were not: a list may not hide losses of a stream.
    pub fn list(&mut self, version: u64, objects: impl IntoIterator<Item = (String, u64)>) -> Result<(), String> {
        let last = std::mem::replace(&mut self.last, version);
        let mut lost = Vec::new();
        for (uid, created) in objects {
            if created <= last && !self.seen.contains(&uid) {
                lost.push(format!("{uid} of version {created}"));
            }
            self.seen.insert(uid);
        }
        if lost.is_empty() {
            return Ok(());
        }
        Err(format!("a list has what no stream told until version {last}: {}", lost.join(", ")))
    }

    /// Takes bytes of the stream. An error: content that no reader may get.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Next, String> {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.partial.drain(..whole).collect();
        let mut next = Next::Read;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match self.event(line)? {
                Next::Read => {}
                other => next = other,
            }
        }
        Ok(next)
    }

    /// The stream has ended: `clean` as one that is whole does, otherwise by an error.
    pub fn end(&mut self, clean: bool) -> Result<(), String> {
        let left = std::mem::take(&mut self.partial);
        if clean && !left.is_empty() {
            let line = String::from_utf8_lossy(&left).into_owned();
            return Err(format!("the stream ended as if it were whole, in the middle of a line: {line:?}"));
        }
        Ok(())
    }

    /// The names of those of `objects` (uid, name) that it never saw.
    pub fn missing(&self, objects: &HashMap<String, String>) -> Vec<String> {
        objects.iter().filter(|(uid, _)| !self.seen.contains(*uid)).map(|(_, name)| name.clone()).collect()
    }

    fn event(&mut self, line: &[u8]) -> Result<Next, String> {
        let shown = || String::from_utf8_lossy(line).trim_end().chars().take(400).collect::<String>();
        let event: Value =
            serde_json::from_slice(line).map_err(|error| format!("a line is no event ({error}): {}", shown()))?;
        let object = &event["object"];
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
        match (event["type"].as_str(), version) {
            (Some("ERROR"), _) => Ok(if object["code"] == 410 { Next::List } else { Next::Resume }),
            (Some("BOOKMARK"), Some(version)) if version >= self.last => {
                self.last = version;
                Ok(Next::Read)
            }
            (Some("ADDED"), Some(version)) if version > self.last => {
                self.last = version;
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                if self.seen.insert(uid) { Ok(Next::Read) } else { Err(format!("added twice: {}", shown())) }
            }
            (Some("ADDED" | "BOOKMARK"), Some(version)) => {
                Err(format!("version {version} comes again, or late, after {}: {}", self.last, shown()))
            }
            _ => Err(format!("an event that nobody caused: {}", shown())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, uid: &str, version: u64) -> Vec<u8> {
        let object = json!({"metadata": {"uid": uid, "resourceVersion": version.to_string()}});
        format!("{}\n", json!({"type": kind, "object": object})).into_bytes()
    }

    fn objects(uids: &[&str]) -> HashMap<String, String> {
        uids.iter().map(|uid| ((*uid).to_owned(), format!("name-{uid}"))).collect()
    }

    #[test]
    fn changes_in_pieces_over_several_streams() {
        let mut feed = Feed::default();
        feed.list(5, [("a".to_owned(), 4)]).unwrap();
        let both = [event("ADDED", "b", 6), event("ADDED", "c", 8)].concat();
        let (first, cut) = both.split_at(both.len() - 3);
        assert_eq!(feed.take(first), Ok(Next::Read));
        assert_eq!(feed.last(), 6);
        assert_eq!(feed.end(false), Ok(()));
        assert!(!cut.is_empty());
        assert_eq!(feed.take(&event("ADDED", "c", 8)), Ok(Next::Read));
        assert_eq!(feed.take(&event("BOOKMARK", "", 8)), Ok(Next::Read));
        assert_eq!(feed.end(true), Ok(()));
        assert!(feed.missing(&objects(&["a", "b", "c"])).is_empty());
    }

    #[test]
    fn a_lost_change_is_missing() {
        let mut feed = Feed::default();
        feed.take(&event("ADDED", "a", 1)).unwrap();
        feed.take(&event("ADDED", "c", 3)).unwrap(); // b, of version 2, is lost
        assert_eq!(feed.missing(&objects(&["a", "b", "c"])), ["name-b"]);
    }

    #[test]
    fn a_list_hides_no_change_that_was_lost() {
        let mut feed = Feed::default();
        feed.take(&event("ADDED", "a", 1)).unwrap();
        feed.take(&event("BOOKMARK", "", 3)).unwrap(); // b, of version 2, is lost
        let all = [("a", 1), ("b", 2), ("c", 4)].map(|(uid, version)| (uid.to_owned(), version));
        let lost = feed.list(5, all.clone()).unwrap_err();
        assert!(lost.contains("b of version 2") && !lost.contains("c of"), "{lost}");
        assert_eq!((feed.list(5, all), feed.last()), (Ok(()), 5), "it is told once");
    }

    #[test]
    fn what_comes_twice_is_found() {
        let mut feed = Feed::default();
        feed.take(&event("ADDED", "a", 1)).unwrap();
        assert!(feed.take(&event("ADDED", "a", 1)).unwrap_err().contains("comes again"));
        assert!(feed.take(&event("ADDED", "a", 2)).unwrap_err().contains("added twice"));
    }

    #[test]
    fn half_a_line_before_a_proper_end_is_found() {
        let mut feed = Feed::default();
        feed.take(b"{\"type\":\"ADD").unwrap();
        assert!(feed.end(true).unwrap_err().contains("middle of a line"));
        feed.take(b"{\"type\":\"ADD\n").unwrap_err();
    }

    #[test]
    fn errors_say_how_to_go_on() {
        let error = |code: u16| format!("{}\n", json!({"type": "ERROR", "object": {"code": code}}));
        assert_eq!(Feed::default().take(error(410).as_bytes()), Ok(Next::List));
        assert_eq!(Feed::default().take(error(500).as_bytes()), Ok(Next::Resume));
    }
}
