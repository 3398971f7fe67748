//! Permits for expensive requests: few for all users, fewer for one, and never a wait for one.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use auth::User;
use net::permit::Permit;
use prometheus_client::metrics::counter::Counter;

use super::{Kind, Load, LoadPermit, Loads};

/// See the [module](self).
#[derive(Debug)]
pub struct HeavyPermits {
    all: Arc<AtomicUsize>,
    users: Loads,
    most: usize,
    /// Limit of one user. No user is exempt, because this limits memory.
    most_of_user: usize,
    /// Limit of all ServiceAccounts of one namespace: there may be one for each cluster's agent.
    most_of_namespace: usize,
    /// The name of the requests, for the caller.
    what: &'static str,
    /// At the limit of all users, and at the limit of one user or namespace.
    rejected: [Counter; 2],
}

/// The share of all permits that the ServiceAccounts of one namespace may have: one in this many.
const NAMESPACE: usize = 4;

/// A limit on expensive requests is reached.
#[derive(Debug, thiserror::Error)]
#[error("too many {what} {whose}in flight (limit {most}); retry shortly")]
pub struct TooManyHeavy {
    what: &'static str,
    whose: &'static str,
    most: usize,
}

/// One permit, until it is dropped.
#[derive(Debug)]
pub struct HeavyPermit {
    _all: Permit<AtomicUsize>,
    _of_user: LoadPermit,
    _of_namespace: Option<LoadPermit>,
}

// === impl HeavyPermits ===

impl HeavyPermits {
    /// Limits requests called `what`, in the plural, to `most` for all users together. Counts
    /// refusals in `rejected`: at the limit of all users, and at that of one.
    pub fn new(what: &'static str, most: usize, most_of_user: usize, rejected: [Counter; 2]) -> Self {
        let (all, users, most_of_namespace) = (Arc::default(), Loads::default(), most_of_user.max(most / NAMESPACE));
        Self { all, users, most, most_of_user, most_of_namespace, what, rejected }
    }

    /// Returns a permit for `user`.
    pub fn enter(&self, user: &User) -> Result<HeavyPermit, TooManyHeavy> {
        let (name, owner) = (&*user.name, user.owner());
        let of_user = self.of(name, "of one user ", self.most_of_user)?;
        // One account takes no more than a user does, so that it cannot take its namespace's whole
        // share.
        let of_namespace = (owner != name)
            .then(|| self.of(owner, "of one namespace's ServiceAccounts ", self.most_of_namespace))
            .transpose()?;
        let all = Permit::of(&self.all, self.most).ok_or_else(|| self.full("", self.most, &self.rejected[0]))?;
        Ok(HeavyPermit { _all: all, _of_user: of_user, _of_namespace: of_namespace })
    }

    fn of(&self, name: &str, whose: &'static str, most: usize) -> Result<LoadPermit, TooManyHeavy> {
        let permit = Permit::within(self.users.of(name), Load::count(Kind::Short), most);
        permit.ok_or_else(|| self.full(whose, most, &self.rejected[1]))
    }

    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.all.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn full(&self, whose: &'static str, most: usize, rejected: &Counter) -> TooManyHeavy {
        rejected.inc();
        TooManyHeavy { what: self.what, whose, most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn user(name: &str) -> User {
        User { name: name.into(), ..User::default() }
    }

    #[test]
    fn the_service_accounts_of_a_namespace_have_a_quarter_together() {
        let permits = HeavyPermits::new("feasts", 16, 2, [Counter::default(), Counter::default()]);
        let account = |number: usize| user(&format!("system:serviceaccount:tenant:account-{number}"));
        let taken: Vec<_> = (0..16).filter_map(|number| permits.enter(&account(number)).ok()).collect();
        assert_eq!(taken.len(), 4);
        let full = permits.enter(&account(16)).expect_err("full").to_string();
        assert_eq!(full, "too many feasts of one namespace's ServiceAccounts in flight (limit 4); retry shortly");
        assert!(permits.enter(&user("system:serviceaccount:other:account")).is_ok(), "another namespace's");
        assert!(permits.enter(&user("alice")).is_ok());
        drop(taken);
        let own: Vec<_> = (0..4).map_while(|_| permits.enter(&account(0)).ok()).collect();
        assert_eq!(own.len(), 2, "one account leaves some to its neighbours");
    }

    #[test]
    fn one_user_has_fewer_than_all() {
        let rejected = [Counter::default(), Counter::default()];
        let permits = HeavyPermits::new("feasts", 3, 2, rejected.clone());
        let (alice, bob) = (user("alice"), user("bob"));
        let refusal = |user| {
            let refused = permits.enter(user).map_err(|full| Error::from(full).into_status());
            refused.map_err(|status| (status.code().as_u16(), status.message().to_owned()))
        };
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
