//! Which prioritizers count, and how much.

use crate::objects::{PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate};

/// A prioritizer with its weight, which is not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    pub prioritizer: Prioritizer,
    pub weight: i32,
    /// `Balance`, or `AddOn/<resource>/<score>`.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prioritizer {
    Balance,
    Steady,
    ResourceAllocatableCpu,
    ResourceAllocatableMemory,
    AddOn { resource: String, score: String },
}

/// Most configurations of a policy. Each keeps a score of every candidate.
const MOST: usize = 64;

/// The prioritizers of a policy.
///
/// Equal coordinates replace each other, except those of add-ons: upstream compares their addresses
/// in memory, so that a coordinate that is named twice counts twice.
///
/// # Errors
///
/// Fails if a mode or a coordinate is unknown or missing, or if there are more than 64
/// configurations.
pub fn prioritizers(policy: &PrioritizerPolicy) -> Result<Vec<Weighted>, String> {
    let built_in = |name: &str| (ScoreCoordinate { kind: "BuiltIn".into(), built_in: name.into(), add_on: None }, 1);
    let mut weights = match policy.mode.as_str() {
        "" | "Additive" => vec![built_in("Balance"), built_in("Steady")],
        "Exact" => Vec::new(),
        mode => return Err(format!("incorrect prioritizer policy mode: {mode}")),
    };
    if policy.configurations.len() > MOST {
        return Err(format!("there are more than {MOST} configurations"));
    }
    for PrioritizerConfig { score_coordinate, weight } in &policy.configurations {
        let coordinate = score_coordinate.as_ref().ok_or("scoreCoordinate field is required")?;
        let known = weights.iter_mut().find(|(known, _)| known == coordinate && coordinate.add_on.is_none());
        match known {
            Some((_, known)) => *known = *weight,
            None => weights.push((coordinate.clone(), *weight)),
        }
    }
    weights.retain(|(_, weight)| *weight != 0);
    weights.into_iter().map(|(coordinate, weight)| weighted(coordinate, weight)).collect()
}

fn weighted(coordinate: ScoreCoordinate, weight: i32) -> Result<Weighted, String> {
    if coordinate.kind != "BuiltIn" {
        let add_on = coordinate.add_on.ok_or("addOn should not be empty")?;
        let name = format!("AddOn/{}/{}", add_on.resource_name, add_on.score_name);
        let prioritizer = Prioritizer::AddOn { resource: add_on.resource_name, score: add_on.score_name };
        return Ok(Weighted { prioritizer, weight, name });
    }
    let prioritizer = match coordinate.built_in.as_str() {
        "Balance" => Prioritizer::Balance,
        "Steady" => Prioritizer::Steady,
        "ResourceAllocatableCPU" => Prioritizer::ResourceAllocatableCpu,
        "ResourceAllocatableMemory" => Prioritizer::ResourceAllocatableMemory,
        other => return Err(format!("incorrect builtin prioritizer: {other}")),
    };
    Ok(Weighted { prioritizer, weight, name: coordinate.built_in })
}
