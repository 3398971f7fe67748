//! A member's answers about rights of executors, cached for a while.

use std::collections::HashMap;
use std::time::Duration;

use delivery::executor::Review;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long an answer counts: a right that is granted, or withdrawn, takes effect after that.
const FRESH: Duration = Duration::from_secs(30);
/// Limit of the cached answers of one member in bytes, as [`bytes`] counts them.
const MOST: usize = 4 << 20;
/// Limit of one work.
const MOST_OF_WORK: usize = 1 << 20;
/// Memory of one answer besides its texts.
const ANSWER: usize = 256;

/// The answers of one member, by work: no work displaces another's.
#[derive(Default)]
pub struct Verdicts(Mutex<HashMap<String, OfWork>>);

/// The answers of one work, by user and review.
#[derive(Default)]
struct OfWork {
    answers: HashMap<(String, Review), (Instant, bool)>,
    bytes: usize,
}

// === impl Verdicts ===

impl Verdicts {
    pub fn known(&self, work: &str, key: &(String, Review)) -> Option<bool> {
        let works = self.0.lock();
        let (asked, verdict) = works.get(work)?.answers.get(key)?;
        (asked.elapsed() < FRESH).then_some(*verdict)
    }

    /// Stores an answer. Answers that do not fit are asked for again: those of this work if it has
    /// many, otherwise those of the work that has most.
    pub fn put(&self, work: &str, key: (String, Review), verdict: bool) {
        let mut works = self.0.lock();
        let own = works.entry(work.to_owned()).or_default();
        if own.bytes.saturating_add(bytes(&key)) > MOST_OF_WORK {
            own.clear();
        }
        own.put(key, verdict);
        if sum(&works) <= MOST {
            return;
        }
        works.retain(|_, one| {
            one.forget_stale();
            !one.answers.is_empty()
        });
        while sum(&works) > MOST {
            let most = works.iter().max_by_key(|(_, one)| one.bytes).map(|(work, _)| work.clone());
            let Some(most) = most else { return };
            works.remove(&most);
        }
    }

    /// Forgets a work that is gone.
    pub fn forget(&self, work: &str) {
        self.0.lock().remove(work);
    }
}

// === impl OfWork ===

impl OfWork {
    fn put(&mut self, key: (String, Review), verdict: bool) {
        let size = bytes(&key);
        if self.answers.insert(key, (Instant::now(), verdict)).is_none() {
            self.bytes += size;
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn forget_stale(&mut self) {
        self.answers.retain(|_, (asked, _)| asked.elapsed() < FRESH);
        self.bytes = self.answers.keys().map(bytes).sum();
    }
}

fn sum(works: &HashMap<String, OfWork>) -> usize {
    works.values().map(|one| one.bytes).sum()
}

/// Memory of an answer, rounded up.
fn bytes((user, review): &(String, Review)) -> usize {
    let texts = match review {
        Review::Resource { verb, group, version, resource, subresource, namespace, name } => {
            [verb, group, version, resource, subresource, namespace, name].into_iter().map(String::len).sum()
        }
        Review::Url { verb, path } => verb.len() + path.len(),
    };
    ANSWER + user.len() + texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> (String, Review) {
        ("user".to_owned(), Review::Url { verb: "get".to_owned(), path: path.to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_work_that_asks_much_pushes_nobody_elses_answers_out() {
        let verdicts = Verdicts::default();
        verdicts.put("small", key("/a"), true);
        let long = "x".repeat(10_000);
        for work in 0..20 {
            for number in 0..200 {
                verdicts.put(&format!("large-{work}"), key(&format!("/{number}/{long}")), false);
            }
        }
        assert_eq!(verdicts.known("small", &key("/a")), Some(true));
        assert_eq!(verdicts.known("large-0", &key("/a")), None, "what is known of another is none of its business");
        assert!(sum(&verdicts.0.lock()) <= MOST);
        assert!(verdicts.0.lock().values().all(|one| one.bytes <= MOST_OF_WORK));
        tokio::time::advance(FRESH).await;
        assert_eq!(verdicts.known("small", &key("/a")), None, "a right may have been taken");
    }
}
