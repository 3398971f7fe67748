//! Requests whose callers have left while their members go on with them: load as before, and
//! counted as before.

use std::sync::Arc;

use auth::User;

use super::{EXEMPT, Kind, Limits, Load, Slot};

/// The parts of one request in the budgets of its user and its cluster.
pub type Slots = [Option<Slot>; 2];

// === impl Limits ===

impl Limits {
    /// Permits of a request that had its permits and gives them back now. Beyond the caps if
    /// somebody was faster: it is under way already.
    pub fn lingers(&self, user: &User, cluster: &Arc<Load>) -> Slots {
        let of = |most: u32, load: &dyn Fn() -> Arc<Load>| {
            (most > 0 && !user.is_in(EXEMPT)).then(|| Slot::beyond(load(), Load::count(Kind::Short)))
        };
        [of(self.caps.user.short, &|| self.users.of(&user.name)), of(self.caps.cluster.short, &|| Arc::clone(cluster))]
    }
}
