//! Opens the person's browser.
//!
//! The browser gets a file that leads to the page, not the page's address: other users of the
//! machine see command lines, and could read the page with that address. Only its owner can read
//! the file.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::NamedTempFile;

use crate::output;

/// Opens `address`. The caller keeps the file for as long as a browser may load it.
pub fn open(address: &str) -> Option<NamedTempFile> {
    let opened = leading_to(address).and_then(|file| start(file.path()).map(|()| file));
    match opened {
        Ok(file) => Some(file),
        Err(error) => {
            output::say(&format!("cannot open a browser ({error}): open the address above"));
            None
        }
    }
}

/// A page that leads to `address`. Only its owner can read it.
fn leading_to(address: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("kubectl-clusters-").suffix(".html").tempfile()?;
    // The address needs no escaping: it consists of digits, dots and base64url.
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><title>Clusters</title>\
         <a href=\"{address}\">kubectl clusters dashboard</a>"
    )?;
    file.flush()?;
    Ok(file)
}

fn start(file: &Path) -> std::io::Result<()> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let quiet = Stdio::null;
    let mut opener = Command::new(program).arg(file).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn()?;
    thread::spawn(move || {
        if opener.wait().is_ok_and(|status| !status.success()) {
            output::say(&format!("{program} failed to open a browser: open the address above"));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_alone_and_leads_on() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = leading_to("http://127.0.0.1:4000/secret/").unwrap();
        let mode = file.as_file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("url=http://127.0.0.1:4000/secret/\""), "{text}");
    }
}
