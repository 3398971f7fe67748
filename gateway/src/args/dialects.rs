//! Flags of the spellings in which members can be asked for, beside our own.

use clap::Args as Group;

#[derive(Debug, Group)]
#[group(id = "dialects-group")]
pub struct Dialects {
    /// Serve members under kcp's paths too: `/clusters/<name>/…`, where `a:b:c` is the cluster
    /// `a.b.c`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub kcp_dialect: bool,
}

// === impl Dialects ===

impl Dialects {
    /// Those of the gateway's own port.
    pub(super) fn served(&self) -> api::route::Dialects {
        api::route::Dialects { kcp: self.kcp_dialect }
    }
}
