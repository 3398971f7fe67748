//! The walk of a person from an empty hub to two clusters, through trouble, and back.

use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::Trial;
use node_tests::lab::Lab;
use node_tests::operator::Operator;

use crate::fixture::{Fixture, test};

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "walk::two clusters are joined, lost, found, rotated and detached", walk)]
}

fn walk(lab: &Lab) -> Result<()> {
    let operator = Operator::new(lab, &[("oslo", &lab.member)])?;
    println!("{}", operator.run("kubectl get nodes -o wide; kubectl --context oslo get nodes -o wide; helm version; kubectl clusters --help | head -3")?);
    Ok(())
}
