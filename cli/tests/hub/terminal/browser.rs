//! The browser that the page opens in.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::wait;
use kit::process::lines;

use crate::dashboard::Address;
use crate::fixture::{clusters, script};

const LIMIT: Duration = Duration::from_secs(30);
/// Records its arguments, and the file that it was to open.
const BROWSER: &str = "#!/bin/sh\n\
    cp \"$1\" \"$OPENED.new\" && echo \"<!-- $* -->\" >> \"$OPENED.new\" && mv \"$OPENED.new\" \"$OPENED\"\n";

/// The program at a terminal, at which the test presses keys.
struct Dashboard {
    script: Child,
    /// As the program printed it.
    address: String,
    lines: std::sync::mpsc::Receiver<String>,
}

// === impl Dashboard ===

impl Dashboard {
    /// Runs the shell command `command` with the directory `browser` in `PATH`. The browser there
    /// leaves what it opened at `file`.
    fn start(program: &Kubectl, command: &str, browser: &Path, file: &Path) -> Result<Self> {
        let path = format!("{}:{}", browser.display(), std::env::var("PATH")?);
        let mut script = Command::new("script")
            .args(["-qec", command, "/dev/null"])
            .envs([("PATH", path.as_ref()), ("OPENED", file.as_os_str()), ("KUBECONFIG", program.kubeconfig.as_ref())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = lines(script.stdout.take().context("a pipe")?);
        let mut dashboard = Self { script, address: String::new(), lines };
        // Results through a pipe may come after messages.
        while !dashboard.address.starts_with("http") {
            dashboard.address = dashboard.lines.recv_timeout(LIMIT).with_context(|| command.to_owned())?;
        }
        Ok(dashboard)
    }

    /// Presses Ctrl-C once the page is there. Returns the output until the end.
    fn ended(mut self) -> Result<String> {
        let address = Address::parse(&self.address)?;
        // The first pages may come before the hub has answered.
        wait::until("the page", LIMIT, || {
            let page = address.get("", &[])?.body;
            ensure!(page.contains(CLUSTER), "{page}");
            Ok(())
        })?;
        self.script.stdin.take().context("a pipe")?.write_all(b"\x03")?;
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("Ctrl-C does not end it: {said:?}"),
            }
        }
        let said = said.join("\n");
        ensure!(self.script.wait()?.code() == Some(130), "the code of shells for Ctrl-C: {said}");
        Ok(said)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        drop(self.script.kill());
        drop(self.script.wait());
    }
}

pub fn opened(testbed: &Testbed) -> Result<()> {
    let (program, directory) = (clusters(testbed), testbed.directory("cli-browser")?);
    // It has the name of the browser that the program asks for.
    let (browser, file) = (directory.join("xdg-open"), directory.join("opened.html"));
    script(&browser, BROWSER)?;
    let command = format!("exec {} dashboard", program.binary.display());
    let running = Dashboard::start(&program, &command, &directory, &file)?;
    let page = wait::until("a browser", LIMIT, || Ok(std::fs::read_to_string(&file)?))?;
    ensure!(page.contains(&format!("url={}\"", running.address.trim())), "{page}");
    // Other users of the machine see command lines.
    let words = page.rsplit("<!-- ").next().unwrap_or_default();
    let leading = Path::new(words.split(' ').next().unwrap_or_default());
    ensure!(leading.is_file() && !words.contains("http"), "{words}");
    running.ended()?;
    ensure!(!leading.exists(), "{words} stays");
    // Without a browser, the address is all there is. With `--no-open`, and in a pipe, no browser
    // is missed.
    let nowhere = format!("export PATH=/nowhere; {command}");
    for (command, is_missed) in [
        (nowhere.clone(), true),
        (format!("{nowhere} --no-open"), false),
        (format!("({nowhere}) | while read -r line; do echo \"$line\"; done"), false),
    ] {
        let said = Dashboard::start(&program, &command, &directory, &file)?.ended()?;
        ensure!(said.contains("cannot open a browser") == is_missed, "{command}: {said}");
    }
    Ok(())
}
