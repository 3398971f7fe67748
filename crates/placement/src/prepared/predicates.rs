//! Predicates: labels, claims and expressions of each, all of which must match.

use crate::cel::{Program, Type, Variable};
use crate::objects::ClusterPredicate;
use crate::selector::Selector;

/// The variables of expressions.
pub const VARIABLES: [Variable; 1] = [("managedCluster", Type::Map)];

#[derive(Debug)]
pub struct Predicate {
    pub labels: Selector,
    pub claims: Selector,
    pub expressions: Vec<Program>,
}

/// Most bytes of all expressions of a Placement: parsing them takes time, too.
const EXPRESSIONS: usize = 64 * 1024;

/// All predicates, unless one cannot be used.
///
/// # Errors
///
/// Fails like [`Predicate::compile`], or if the expressions are too long altogether.
pub fn predicates(predicates: &[ClusterPredicate]) -> Result<Vec<Predicate>, String> {
    let of = |predicate: &ClusterPredicate| -> usize {
        predicate.required_cluster_selector.cel_selector.cel_expressions.iter().map(String::len).sum()
    };
    if predicates.iter().map(of).sum::<usize>() > EXPRESSIONS {
        return Err(format!("compilation failed: the expressions have more than {EXPRESSIONS} bytes in all"));
    }
    predicates.iter().map(Predicate::compile).collect()
}

// === impl Predicate ===

impl Predicate {
    /// # Errors
    ///
    /// Fails if a selector or an expression cannot be used; the text is upstream's, except for
    /// syntax errors of expressions.
    pub fn compile(predicate: &ClusterPredicate) -> Result<Self, String> {
        let selector = &predicate.required_cluster_selector;
        let wrong = |error: crate::selector::InvalidSelector| error.to_string();
        let program = |text: &String| {
            let compiled = Program::compile(text, &VARIABLES);
            compiled.map_err(|fault| format!("compilation failed: {}", fault.within(text)))
        };
        Ok(Self {
            labels: Selector::compile(&selector.label_selector).map_err(wrong)?,
            claims: Selector::of_expressions(&selector.claim_selector.match_expressions).map_err(wrong)?,
            expressions: selector.cel_selector.cel_expressions.iter().map(program).collect::<Result<_, _>>()?,
        })
    }
    /// Steps of checking one cluster, without those of expressions.
    pub fn steps(&self) -> u64 {
        u64::try_from(1 + self.labels.rules() + self.claims.rules()).unwrap_or(u64::MAX)
    }
}
