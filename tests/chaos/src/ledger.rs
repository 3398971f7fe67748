//! Compares the answers that callers got for each of their objects with the members' content.

use std::collections::HashMap;

use crate::conclusion::Conclusion;

/// One object that a caller tried to create.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Unique in a run; the object carries it as an annotation.
    pub id: u64,
    /// Its name. `None`: the member chose one (`generateName`), so that a repetition makes two.
    pub name: Option<String>,
    /// The caller and its way.
    pub by: String,
    /// What the caller was told, a request each.
    pub told: Vec<Conclusion>,
    /// What went on when it was told that.
    pub weather: Vec<String>,
}

/// An object that a member has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Id of the entry.
    pub id: u64,
    pub name: String,
    pub uid: String,
}

// === impl Entry ===

impl Entry {
    /// Every promise to its caller that is not kept, given `objects` with its id.
    pub fn wrong(&self, objects: &[&Object]) -> Vec<String> {
        let mut wrong = Vec::new();
        if objects.len() > 1 {
            wrong.push(format!("it exists {} times", objects.len()));
        }
        for (number, told) in self.told.iter().enumerate() {
            let may_be_there = self.told[..number].iter().any(|told| !matches!(told, Conclusion::NotDone(_)));
            match told {
                Conclusion::Created(_) if objects.is_empty() => wrong.push("told 201, and it does not exist".into()),
                Conclusion::Created(Some(uid)) if objects.iter().all(|object| object.uid != *uid) => {
                    wrong.push(format!("told 201 with uid {uid}, and what exists is another object"));
                }
                Conclusion::Exists if !may_be_there => {
                    wrong.push("told 409 by the first request that may have been done".into());
                }
                Conclusion::Exists if objects.is_empty() => wrong.push("told 409, and it does not exist".into()),
                Conclusion::Untrue(what) => wrong.push(format!("told {what}")),
                _ => {}
            }
        }
        if self.told.iter().all(|told| matches!(told, Conclusion::NotDone(_))) && !objects.is_empty() {
            wrong.push("told that nothing was done, and it exists".into());
        }
        wrong
    }
}

/// Every promise that was not kept, a text each, given all objects of the members that carry an id.
pub fn settle(entries: &[Entry], objects: &[Object]) -> Vec<String> {
    let mut found: HashMap<u64, Vec<&Object>> = HashMap::new();
    for object in objects {
        found.entry(object.id).or_default().push(object);
    }
    let mut wrong = Vec::new();
    for entry in entries {
        let objects = found.remove(&entry.id).unwrap_or_default();
        for what in entry.wrong(&objects) {
            let name = entry.name.as_deref().unwrap_or("with a name of the member's");
            let told: Vec<String> =
                entry.told.iter().zip(&entry.weather).map(|(t, w)| format!("{t:?} ({w})")).collect();
            wrong.push(format!(
                "object {} {name}, asked for by {}: {what}; told: {}; there: {objects:?}",
                entry.id,
                entry.by,
                told.join(", then "),
            ));
        }
    }
    wrong.extend(found.into_values().flatten().map(|object| format!("nobody asked for {object:?}")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(told: &[Conclusion]) -> Entry {
        let weather = told.iter().map(|_| "calm".to_owned()).collect();
        Entry { id: 1, name: Some("a".into()), by: "writer".into(), told: told.to_vec(), weather }
    }

    fn object(uid: &str) -> Object {
        Object { id: 1, name: "a".into(), uid: uid.into() }
    }

    fn created() -> Conclusion {
        Conclusion::Created(Some("u".into()))
    }

    fn wrong(told: &[Conclusion], objects: &[Object]) -> String {
        settle(&[entry(told)], objects).join("\n")
    }

    #[test]
    fn promises_that_are_kept_are_right() {
        let (not, unknown) = (Conclusion::NotDone("refused".into()), Conclusion::Unknown("cut".into()));
        for (told, objects) in [
            (vec![created()], vec![object("u")]),
            (vec![Conclusion::Created(None)], vec![object("u")]),
            (vec![not.clone()], vec![]),
            (vec![unknown.clone()], vec![]),
            (vec![unknown.clone()], vec![object("u")]),
            (vec![unknown.clone(), Conclusion::Exists], vec![object("u")]),
            (vec![unknown.clone(), not.clone()], vec![object("u")]),
            (vec![unknown, created()], vec![object("u")]),
            (vec![not, created()], vec![object("u")]),
        ] {
            assert_eq!(wrong(&told, &objects), "", "{told:?}");
        }
    }

    #[test]
    fn what_was_told_as_done_and_is_gone_is_found() {
        assert!(wrong(&[created()], &[]).contains("told 201, and it does not exist"));
        assert!(wrong(&[created()], &[object("v")]).contains("another object"));
        assert!(
            wrong(&[Conclusion::Unknown(String::new()), Conclusion::Exists], &[]).contains("told 409, and it does not")
        );
    }

    #[test]
    fn what_was_done_twice_is_found() {
        assert!(wrong(&[created()], &[object("u"), object("v")]).contains("exists 2 times"));
        assert!(wrong(&[Conclusion::Exists], &[object("u")]).contains("told 409 by the first"));
    }

    #[test]
    fn what_was_told_as_not_done_and_is_there_is_found() {
        assert!(wrong(&[Conclusion::NotDone(String::new())], &[object("u")]).contains("nothing was done"));
        assert!(wrong(&[Conclusion::Untrue("404".into())], &[]).contains("told 404"));
    }

    #[test]
    fn what_nobody_asked_for_is_found() {
        assert!(settle(&[], &[object("u")]).join("").contains("nobody asked"));
    }
}
