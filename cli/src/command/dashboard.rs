//! `dashboard`: serves the dashboard, and opens it in a browser.

mod browser;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use crate::dashboard;
use crate::session::Session;
use crate::trouble::Result;
use crate::{output, span};

/// Open a page with all clusters in your browser.
///
/// Serves a page with all clusters on this machine's loopback address, and opens it when run on a
/// terminal. It uses your rights on the hub, and shows what you may see. Its address gives access
/// to it as you: do not share it. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters dashboard
  kubectl clusters dashboard --context prod-hub --interval 30s
  kubectl clusters dashboard --no-open --port 8001     # over ssh -L 8001:127.0.0.1:8001")]
pub struct Dashboard {
    /// Port on the loopback address; 0 picks a free one
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    port: u16,
    /// Print the address, do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Polling interval while the page is open
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    interval: Duration,
}

// === impl Dashboard ===

impl Dashboard {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let listening = dashboard::listen(session, self.port, self.interval).await?;
        let address = listening.address();
        output::print(&format!("{address}\n"))?;
        output::say(&format!("the clusters of the hub {}, with your rights; Ctrl-C ends it", session.context));
        // The file is deleted when the command ends: until then, a browser may load it again.
        let _page = if !self.no_open && io::stdout().is_terminal() { browser::open(&address) } else { None };
        listening.serve().await;
        Ok(ExitCode::SUCCESS)
    }
}
