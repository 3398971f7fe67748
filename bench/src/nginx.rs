//! nginx in the foreground, with its files where the run's are.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hub_tests::process::Process;

use crate::tool;

/// Directories that nginx would otherwise have below `/var/lib/nginx`.
const TEMPORARY: [&str; 5] = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

pub struct Nginx {
    program: PathBuf,
}

// === impl Nginx ===

impl Nginx {
    /// The distribution's.
    pub fn find() -> Result<Self> {
        Ok(Self { program: tool::find("nginx", "nginx-light")? })
    }

    /// Starts it as `name` in `directory` with `configuration`, in which `@TEMPORARY@` stands for
    /// the place of data that does not fit into memory.
    pub fn start(&self, name: &str, configuration: &str, directory: &Path) -> Result<Process> {
        let at = directory.display();
        let temporary = TEMPORARY.map(|kind| format!("{kind}_temp_path {at}/{name}-{kind};")).join(" ");
        // Started as root, it would serve as the user `nobody`, which may not enter the run's
        // directory.
        let user = if fs::metadata(directory)?.uid() == 0 { "user root;" } else { "" };
        let whole = format!(
            "daemon off; {user} pid {at}/{name}.pid; error_log stderr warn;\n{}",
            configuration.replace("@TEMPORARY@", &temporary)
        );
        let path = directory.join(format!("{name}.conf"));
        fs::write(&path, whole)?;
        let args =
            ["-e".as_ref(), "stderr".as_ref(), "-p".as_ref(), directory.as_os_str(), "-c".as_ref(), path.as_os_str()];
        Process::start(name, &self.program, args, directory)
    }
}
