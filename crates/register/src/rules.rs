//! What an operator allows sources to say.

use crate::endpoints::Endpoints;

/// What an operator allows sources to say.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Programs that `exec` may name, as they are written there.
    pub exec_commands: Vec<String>,
    /// Whether clusters may be registered whose certificate is not verified.
    pub allow_insecure: bool,
    pub endpoints: Endpoints,
}
