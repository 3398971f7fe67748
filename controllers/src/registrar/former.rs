//! Former names: after another name template, an object claims another name, and the Secret of the
//! former one stays, which nothing follows any more.
//!
//! Such a Secret is never removed while its object lives. A changed template gives all names of a
//! source up at once, and clients that still use them would lose every cluster. A person deletes
//! it; until then it is reported.

use register::claims::Object;

use super::Registrar;
use super::state::Registrations;
use crate::events::Reason;

impl Registrar {
    /// Finds out whether a name is a former one of its object, and reports what is new.
    pub(super) fn note_former(&self, state: &mut Registrations, name: &str) {
        let Some((object, current)) = state.renamed(name) else {
            if let Some(object) = state.former.remove(name) {
                self.reports.former(&object, name, false);
            }
            return;
        };
        // Again after the object was forgotten.
        self.reports.former(&object, name, true);
        if state.former.insert(name.to_owned(), object.clone()).as_ref() == Some(&object) {
            return;
        }
        let note = format!(
            "this object claims the name {current} now. Its former name {name} stays registered, but no source \
             updates it: delete Secret {name} once {current} is registered and {name} is no longer used"
        );
        tracing::warn!(source = object.source, object = object.reference, "{note}");
        self.publish(state, &object, Reason::FormerNameKept, &note);
    }
}

impl Registrations {
    /// The object that registered a name and claims another one now, and that one.
    fn renamed(&self, name: &str) -> Option<(Object, String)> {
        let object = &self.held.get(name)?.origin.as_ref()?.object;
        let current = &self.claims.get(object)?.name;
        (current != name).then(|| (object.clone(), current.clone()))
    }
}
