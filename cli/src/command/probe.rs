//! `probe`: checks each hop to a cluster in turn, and names the one that fails.

use std::process::ExitCode;

use crate::findings::Mark;
use crate::hops::{self, Hop};
use crate::session::Session;
use crate::trouble::{self, Exit, Result, is_without_gateway};
use crate::walk::{End, Step, walk};
use crate::{output, selection, span, text_table};

/// Check each hop to a cluster, with times, and name the one that fails.
///
/// Asks the hub, the gateway and the member in turn, and names the hop that fails. Each of these
/// times is that of a whole request from here, so it includes the hops before it. The times of
/// tunnel-server and tunnel-agent are their own, as the gateway measured them when it last opened
/// a connection to the member.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kubectl clusters probe berlin")]
pub struct Probe {
    /// The cluster
    name: String,
}

// === impl Probe ===

impl Probe {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let name = selection::name(&self.name)?;
        let mut steps = Vec::new();
        let end = walk(session, &name, &mut steps).await.err();
        show(&steps, end.as_ref());
        let Some(End { hop, failure }) = end else {
            output::print(&format!("cluster {name} answers\n"))?;
            return Ok(ExitCode::SUCCESS);
        };
        output::say(&format!("error: the path to {name} fails at the {}: {}", hop.name(), trouble::cause(&failure)));
        output::say(&format!("remedy: {}", hops::remedy(hop, &failure, name.as_str())));
        let unasked = hop == Hop::Hub || is_without_gateway(&failure);
        Ok(ExitCode::from(if unasked { Exit::Hub } else { Exit::Failed } as u8))
    }
}

fn show(steps: &[Step], end: Option<&End>) {
    let coloured = output::is_coloured();
    let failed = end.map(|end| Step { mark: Mark::Bad, hop: end.hop, took: None, told: "fails here".to_owned() });
    let rows: Vec<_> = steps
        .iter()
        .chain(&failed)
        .map(|step| {
            let took = step.took.map_or_else(|| "-".to_owned(), span::took);
            vec![format!("{} {}", step.mark.sign(coloured), step.hop.name()), took, text_table::tame(&step.told)]
        })
        .collect();
    drop(output::print(&text_table::lay_out(&["HOP", "TIME", "WHAT"], &rows)));
}
