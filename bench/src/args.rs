//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use hub_tests::scratch;

use crate::given::Programs;
use crate::size::Size;

/// Measures the gateway and its tunnel against other programs, on this machine, in one run.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench")]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub programs: Programs,
    /// Directory for report.md, report.json and the charts [default: <target>/bench]
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
    /// How often to measure each target; targets take turns within a round
    #[arg(long, global = true, default_value_t = 5)]
    pub rounds: usize,
    /// Length of each measurement in seconds, where it is free
    #[arg(long, global = true, default_value_t = 5, value_name = "SECONDS")]
    pub seconds: u64,
    /// Clusters of the scenario delivery
    #[arg(long, global = true, default_value_t = 50, value_name = "NUMBER")]
    pub clusters: usize,
    /// Objects in each of them, a multiple of ten
    #[arg(long, global = true, default_value_t = 10, value_name = "NUMBER")]
    pub objects: usize,
    /// `ManagedClusters` of the scenario joining
    #[arg(long, global = true, default_value_t = 5000, value_name = "NUMBER")]
    pub managed_clusters: usize,
    /// Keep the other scenarios of the existing report, each with the commit it was measured at
    #[arg(long, global = true)]
    pub add: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measures every scenario
    All,
    /// Measures some scenarios, by name
    Run {
        #[arg(required = true, value_name = "SCENARIO")]
        scenarios: Vec<String>,
    },
    /// Runs every scenario for a moment, or some, to show that it runs; the figures mean nothing
    Smoke {
        #[arg(value_name = "SCENARIO")]
        scenarios: Vec<String>,
    },
    /// Lists the scenarios
    List,
    /// Copies the report of the newest run into docs/performance.md
    Publish,
    /// The program behind the upstream that reads uploads
    #[command(hide = true)]
    Sink {
        /// Where to listen
        socket: PathBuf,
    },
    /// What tunnels lead to
    #[command(hide = true, name = crate::tunnel::destination::COMMAND)]
    Destination {
        /// Where to listen
        address: SocketAddr,
    },
    /// The member that has watches
    #[command(hide = true)]
    ServeWatches(crate::stand_in::Options),
    /// Members that are delivered to
    #[command(hide = true)]
    ServeMembers(crate::stand_in::Options),
    /// The upstream of upgrades
    #[command(hide = true)]
    ServeUpgrades(crate::stand_in::Options),
}

// === impl Args ===

impl Args {
    /// The amounts of the scenarios delivery and joining.
    pub fn size(&self) -> Result<Size> {
        ensure!(self.clusters > 2, "--clusters: two are ill at times, and one more has to be there");
        let is_whole = self.objects > 0 && self.objects.is_multiple_of(Size::OBJECTS);
        ensure!(is_whole, "--objects: write a multiple of {}", Size::OBJECTS);
        ensure!(self.managed_clusters > 0, "--managed-clusters: one is needed");
        Ok(Size { clusters: self.clusters, works: self.objects / Size::OBJECTS, managed: self.managed_clusters })
    }

    /// Directory of the report.
    pub fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| scratch::target().join("bench"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;

    fn section() -> String {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
        let page = fs::read_to_string(page).expect("docs/performance.md");
        let found = page.split("\n## ").find(|section| section.starts_with("Running it\n")).expect("the section");
        found.to_owned()
    }

    #[test]
    fn the_documentation_has_every_program_of_others() {
        let (section, command) = (section(), Args::command());
        let of_others = command.get_arguments().filter(|argument| argument.get_env().is_some());
        let flags: Vec<String> =
            of_others.filter_map(|argument| Some(format!("`--{}`", argument.get_long()?))).collect();
        assert!(flags.contains(&"`--ocm-placement`".to_owned()), "{flags:?}");
        for flag in flags {
            assert!(section.contains(&flag), "{flag}");
        }
    }

    #[test]
    fn the_documentation_has_every_subcommand_and_no_other() {
        let section = section();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("-- "));
        let documented: BTreeSet<&str> = rows.filter_map(|(_, rest)| rest.split([' ', '`']).next()).collect();
        let command = Args::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        assert_eq!(documented, visible.map(clap::Command::get_name).collect());
    }
}
