//! Objects that a work no longer wants, and which of them are not gone yet.

use delivery::identity::Tracked;
use delivery::ownership::Owner;

use super::begun::{Begun, Removed};
use super::ending::words;
use super::failure::Failure;
use super::pass::Pass;
use super::removal::{Leaving, MOST_AT_ONCE, Staying};

// === impl Pass ===

impl Pass<'_> {
    /// Removes as many of these as one pass may.
    pub(super) async fn take_away(
        &self,
        mut gone: Vec<Tracked>,
        owner: &Owner,
        begun: &mut Begun,
    ) -> Result<Staying, Failure> {
        let (option, metrics) = (self.spec.delete_option.as_ref(), &self.part.metrics.delivery);
        let (executor, is_executor_required) = (self.executor, self.part.is_executor_required);
        let leaving = Leaving { work: self.work.name(), owner, option, executor, is_executor_required, metrics };
        // The member determines how many there are.
        let later = gone.split_off(gone.len().min(MOST_AT_ONCE));
        let mut staying = Staying { later, ..Staying::default() };
        for (one, removed) in self.target.take_away(self.slot, &gone, leaving, begun).await? {
            match removed {
                Removed::Gone => {}
                Removed::Waits(version) => staying.objects.push((one, version)),
                Removed::Refused(why) => {
                    staying.why.get_or_insert_with(|| format!("{} is not deleted: {why}", words(&one.identity)));
                    staying.objects.push((one, None));
                }
            }
        }
        if !staying.later.is_empty() {
            let (name, count) = (&self.name, staying.later.len());
            staying.why.get_or_insert_with(|| {
                format!("AppliedManifestWork {name} lists {count} more objects to delete: the next passes delete them")
            });
        }
        Ok(staying)
    }
}
