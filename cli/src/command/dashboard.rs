//! `dashboard`: the page.

mod browser;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use crate::dashboard;
use crate::session::Session;
use crate::trouble::Result;
use crate::{output, span};

/// A page with the clusters, in your browser.
///
/// Serves a page with the clusters on this machine's loopback address, and opens it when run on a
/// terminal. It asks the hub as you, and shows what you may see. Whoever has its address may read
/// it as you: do not pass it on. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters dashboard
  kubectl clusters dashboard --context prod-hub --interval 30s
  kubectl clusters dashboard --no-open --port 8001     # over ssh -L 8001:127.0.0.1:8001")]
pub struct Dashboard {
    /// Of the loopback address; 0: any that is free
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    port: u16,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
    /// Between two looks, while somebody has the page open
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    interval: Duration,
}

// === impl Dashboard ===

impl Dashboard {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let listening = dashboard::listen(session, self.port, self.interval).await?;
        let address = listening.address();
        output::print(&format!("{address}\n"))?;
        output::say(&format!("the clusters of the hub {}, as you see them; Ctrl-C ends it", session.context));
        // It goes when the command ends: until then a browser may come back to it.
        let _page = if !self.no_open && io::stdout().is_terminal() { browser::open(&address) } else { None };
        listening.serve().await;
        Ok(ExitCode::SUCCESS)
    }
}
