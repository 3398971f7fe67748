//! Permits for requests that are heavy work: few in all, fewer for one user, and nobody waits for
//! one.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use api::status::{Details, Reason, Status};
use auth::User;
use http::StatusCode;
use net::permit::Permit;
use prometheus_client::metrics::counter::Counter;

use super::{Kind, Load, LoadPermit, Loads};

/// See the [module](self).
#[derive(Debug)]
pub struct HeavyPermits {
    all: Arc<AtomicUsize>,
    users: Loads,
    most: usize,
    /// Of one user. Nobody is exempt: what is limited is memory.
    most_of_user: usize,
    /// For the caller.
    what: &'static str,
    /// Of all, and of one user.
    rejected: [Counter; 2],
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct HeavyPermit {
    _all: Permit<AtomicUsize>,
    _of_user: LoadPermit,
}

// === impl HeavyPermits ===

impl HeavyPermits {
    /// `most` of `what`, in the plural, for all users together. What gets none counts in
    /// `rejected`: for all users together, and for one.
    pub fn new(what: &'static str, most: usize, most_of_user: usize, rejected: [Counter; 2]) -> Self {
        Self { all: Arc::default(), users: Loads::default(), most, most_of_user, what, rejected }
    }

    /// A permit for `user`. Otherwise 429.
    pub fn enter(&self, user: &User) -> Result<HeavyPermit, Box<Status>> {
        let load = self.users.of(&user.name);
        let of_user = Permit::within(load, Load::count(Kind::Short), self.most_of_user);
        let of_user =
            of_user.ok_or_else(|| Box::new(self.full("of one user ", self.most_of_user, &self.rejected[1])))?;
        let all =
            Permit::of(&self.all, self.most).ok_or_else(|| Box::new(self.full("", self.most, &self.rejected[0])))?;
        Ok(HeavyPermit { _all: all, _of_user: of_user })
    }

    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.all.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn full(&self, whose: &str, most: usize, rejected: &Counter) -> Status {
        rejected.inc();
        let message = format!("too many {} {whose}in flight (limit {most}); retry shortly", self.what);
        let details = Details { retry_after_seconds: 1, ..Details::default() };
        Status::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, message).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User { name: name.into(), ..User::default() }
    }

    #[test]
    fn one_user_has_fewer_than_all() {
        let rejected = [Counter::default(), Counter::default()];
        let permits = HeavyPermits::new("feasts", 3, 2, rejected.clone());
        let (alice, bob) = (user("alice"), user("bob"));
        let refusal =
            |user| permits.enter(user).map_err(|status| (status.code().as_u16(), status.message().to_owned()));
        let mut taken = vec![refusal(&alice).expect("a permit"), refusal(&alice).expect("a permit")];
        let full = "too many feasts of one user in flight (limit 2); retry shortly";
        assert_eq!(refusal(&alice).expect_err("full"), (429, full.to_owned()));
        taken.push(refusal(&bob).expect("a permit"));
        let full = "too many feasts in flight (limit 3); retry shortly";
        assert_eq!(refusal(&bob).expect_err("full"), (429, full.to_owned()));
        assert_eq!(rejected.map(|counter| counter.get()), [1, 1]);
        drop(taken);
        assert_eq!(permits.taken(), 0);
        assert!(permits.enter(&bob).is_ok(), "who was refused holds nothing");
    }
}
