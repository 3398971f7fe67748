//! What happens in a sample member while one looks: a small report job comes, runs, ends and goes, for ever.
//!
//! A pure step function over the model. One pod at a time exists, so the model never grows.

use time::OffsetDateTime;

use super::{
    kind::Kind,
    model::{Change, Model},
    object::Key,
    sample::{Container, Pod, Profile, Stage, uid},
};

/// The namespace of the report pods: where `kubectl get pods -w` looks without any flag.
const NAMESPACE: &str = "default";
const APP: &str = "report";
const CONTAINERS: &[Container] = &[Container { name: "report", image: "example/report:1.2" }];
/// The pod's slot in the cluster's address range, above the ones of the sample workloads.
const ADDRESS: u8 = 200;

/// The next step in the life of a member.
#[derive(Debug)]
pub(crate) struct Life {
    profile: &'static Profile,
    run: u32,
    created: OffsetDateTime,
    next: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Start,
    Finish,
    Delete,
}

// === impl Life ===

impl Life {
    /// A life that begins at `now`.
    pub(crate) fn new(profile: &'static Profile, now: OffsetDateTime) -> Self {
        Self { profile, run: 1, created: now, next: Step::Create }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, model: &mut Model, now: OffsetDateTime) -> Option<Change> {
        match self.next {
            Step::Create => {
                self.next = Step::Start;
                self.created = now;
                model.put(Kind::Pod, self.pod(Stage::Creating).body())
            }
            Step::Start => {
                self.next = Step::Finish;
                model.put(Kind::Pod, self.pod(Stage::Running).body())
            }
            Step::Finish => {
                self.next = Step::Delete;
                model.put(Kind::Pod, self.pod(Stage::Finished(now)).body())
            }
            Step::Delete => {
                let key = Key::new(Kind::Pod, NAMESPACE, self.name());
                self.next = Step::Create;
                self.run = self.run.wrapping_add(1);
                model.remove(&key)
            }
        }
    }

    fn name(&self) -> String {
        format!("{APP}-{:04}", self.run)
    }

    fn pod(&self, stage: Stage) -> Pod<'static> {
        let name = self.name();
        let node = self.profile.worker(0);
        Pod {
            uid: uid(&[self.profile.name, NAMESPACE, &name]),
            namespace: NAMESPACE,
            name,
            app: APP,
            containers: CONTAINERS,
            node,
            node_address: self.profile.node_address(node),
            address: self.profile.pod_address(ADDRESS),
            created: self.created,
            stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sample::BERLIN, *};

    #[test]
    fn a_report_comes_runs_ends_and_goes() {
        let now = OffsetDateTime::UNIX_EPOCH;
        let mut model = Model::new(0);
        let mut life = Life::new(&BERLIN, now);
        let mut seen = Vec::new();
        for _ in 0..5 {
            let change = life.step(&mut model, now).unwrap();
            seen.push(change.after.map(|pod| (pod.key.name.clone(), pod.field("status.phase").to_owned())));
        }
        let pod = |name: &str, phase: &str| Some((name.to_owned(), phase.to_owned()));
        assert_eq!(
            seen,
            [
                pod("report-0001", "Pending"),
                pod("report-0001", "Running"),
                pod("report-0001", "Succeeded"),
                None,
                pod("report-0002", "Pending"),
            ]
        );
    }
}
