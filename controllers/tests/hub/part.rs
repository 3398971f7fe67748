//! A part of the controllers, as the chart installs it on the hub of the testbed.

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use serde_json::{Value, json};

use crate::fixture::{Running, SOON, apply, event, namespace, wait_end};
use crate::rights::{rendered, started};

/// Until it is dropped, no other test runs controllers that work on the same objects.
pub type Alone = Vec<turns::Alone>;

/// Controllers with the values and the rights of the chart, in a namespace of their own.
pub struct Part<'t> {
    pub testbed: &'t Testbed,
    /// The namespace.
    pub name: &'static str,
    pub running: Running,
    _alone: Alone,
}

// === impl Part ===

impl<'t> Part<'t> {
    /// Installs the part; `values` are the chart's, separated by commas.
    pub fn install(testbed: &'t Testbed, name: &'static str, values: &str, alone: Alone) -> Result<Self> {
        apply(testbed, &[namespace(name)])?;
        let running = started(testbed, name, &rendered(testbed, name, values)?)?;
        Ok(Self { testbed, name, running, _alone: alone })
    }

    /// Whether `controller` stands by because upstream's runs.
    pub fn stands_by(&self, controller: &str, expected: bool) -> Result<bool> {
        let name = "cluster_gateway_controllers_standing_by";
        let series = format!("{name}{{controller={controller:?}}} {}", u8::from(expected));
        Ok(self.running.metrics()?.lines().any(|line| line == series))
    }

    pub fn wait_to_work(&self, controller: &str) -> Result<()> {
        wait::until_true(&format!("that {controller} works"), SOON, || self.stands_by(controller, false))
    }

    pub fn delete(&self, line: &str) -> Result<()> {
        self.testbed.hub.server.delete(line)
    }

    pub fn annotate(&self, line: &str) -> Result<()> {
        self.testbed.hub.server.annotate(line)
    }

    pub fn wait_end(&self, line: &str) -> Result<()> {
        wait_end(&self.testbed.hub.server, line)
    }

    /// What the hub returns for the line; an error if there is none.
    pub fn json(&self, line: &str) -> Result<Value> {
        let found = self.testbed.hub.server.read(line)?;
        ensure!(!found.is_null(), "{line}: there is none");
        Ok(found)
    }

    /// A merge patch of an object of this namespace, unless `what` names another.
    pub fn patch(&self, what: &str, patch: &Value) -> Result<()> {
        let (kind, rest) = what.split_once(' ').context("a kind and a name")?;
        self.testbed.hub.server.patch(&format!("{kind} -n {} {rest}", self.name), patch).map(drop)
    }

    pub fn status(&self, what: &str, status: &Value) -> Result<()> {
        self.patch(&format!("{what} --subresource=status"), &json!({"status": status}))
    }

    /// Returns the note of an Event on an object of this namespace.
    pub fn wait_event(&self, name: &str, reason: &str) -> Result<String> {
        wait::until(&format!("an Event {reason} on {name}"), SOON, || event(self.testbed, self.name, name, reason))
    }

    pub fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        self.running.metric(name, labels)
    }
}

/// Gives a fixture that has a part all methods of the part.
macro_rules! has_part {
    ($of:ident) => {
        impl<'t> std::ops::Deref for $of<'t> {
            type Target = $crate::part::Part<'t>;

            fn deref(&self) -> &Self::Target {
                &self.part
            }
        }

        impl std::ops::DerefMut for $of<'_> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.part
            }
        }
    };
}

pub(crate) use has_part;
