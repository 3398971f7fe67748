//! kubectl (or a client with a similar command line) as a child process: run to its end within a
//! time limit, or started and read line by line.

mod direct;
mod running;

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

pub use self::running::Running;
use crate::process::prepare_short;

/// Enough for any command of these tests on a busy machine.
const DEFAULT_LIMIT: Duration = Duration::from_mins(1);

/// kubectl with one kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub binary: PathBuf,
    /// The kubeconfig: its server and its user.
    pub kubeconfig: PathBuf,
    /// The directory for its discovery cache.
    pub cache: PathBuf,
}

/// One command line, not yet run.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    line: String,
    stdin: Option<Vec<u8>>,
    limit: Duration,
}

/// How a command ended and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Exit code; -1 if a signal ended it.
    pub status: i32,
    /// Everything it wrote to standard output.
    pub stdout: String,
    /// Everything it wrote to standard error.
    pub stderr: String,
}

// === impl Kubectl ===

impl Kubectl {
    /// A command line.
    pub fn args<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> Invocation {
        Invocation::new("kubectl", &self.binary, &self.kubeconfig, &self.cache, args)
    }

    /// Runs a command line whose words are separated by spaces, and returns its standard output; a
    /// failure is an error.
    pub fn ok(&self, line: &str) -> Result<String> {
        self.args(line.split_whitespace()).run()?.success()
    }

    /// Commands of a page, as run by a person with kubectl.
    pub fn shell(&self, commands: &str) -> Result<Invocation> {
        let programs = self.binary.parent().context("kubectl is nowhere")?.display();
        let path = format!("{programs}:{}", std::env::var("PATH")?);
        let words = ["-ec", commands];
        Ok(Invocation::new("sh", Path::new("sh"), &self.kubeconfig, &self.cache, words).env("PATH", &path))
    }

    /// Applies `manifest`.
    pub fn apply(&self, manifest: &str) -> Result<String> {
        self.args(["apply", "-f", "-"]).stdin(manifest).run()?.success()
    }
}

// === impl Invocation ===

impl Invocation {
    /// A command line of `program`, with `name` as its name in errors; it reads `kubeconfig` and
    /// keeps its files in `home`.
    pub(crate) fn new<A: AsRef<str>>(
        name: &str,
        program: &Path,
        kubeconfig: &Path,
        home: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", kubeconfig).env("HOME", home).env("KUBECACHEDIR", home);
        prepare_short(&mut command);
        let mut line = name.to_owned();
        for arg in args {
            line.push(' ');
            line.push_str(arg.as_ref());
            command.arg(arg.as_ref());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, line, stdin: None, limit: DEFAULT_LIMIT }
    }

    /// What it reads from standard input (nothing unless set).
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.command.stdin(Stdio::piped());
        self.stdin = Some(text.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the directory it runs in.
    #[must_use]
    pub fn directory(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Sets the time after which it is killed and reported as an error.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Result<Output> {
        let mut child = self.spawn()?;
        let (sender, receiver) = mpsc::channel();
        collect(child.stdout.take(), sender.clone(), |text| (Some(text), None));
        collect(child.stderr.take(), sender, |text| (None, Some(text)));
        let mut output = Output { status: -1, stdout: String::new(), stderr: String::new() };
        for _ in 0..2 {
            let Ok((stdout, stderr)) = receiver.recv_timeout(self.limit) else {
                child.kill()?;
                child.wait()?;
                bail!("`{}` was not done after {:?}", self.line, self.limit);
            };
            output.stdout.extend(stdout);
            output.stderr.extend(stderr);
        }
        output.status = child.wait()?.code().unwrap_or(-1);
        Ok(output)
    }

    /// Starts it and returns it while it runs.
    pub fn start(mut self) -> Result<Running> {
        let child = self.spawn()?;
        Running::new(child, self.line)
    }

    fn spawn(&mut self) -> Result<Child> {
        let mut child = self.command.spawn().with_context(|| format!("cannot start `{}`", self.line))?;
        if let (Some(text), Some(mut pipe)) = (self.stdin.take(), child.stdin.take()) {
            // In a thread: kubectl may write before it has read everything. It may also stop
            // reading; its output says why.
            std::thread::spawn(move || drop(pipe.write_all(&text)));
        }
        Ok(child)
    }
}

/// Reads `pipe` to its end in a thread, then sends `wrap` of the text. Once both pipes are at their
/// end, kubectl has ended.
fn collect<T: Send + 'static>(
    pipe: Option<impl Read + Send + 'static>,
    sender: mpsc::Sender<T>,
    wrap: impl FnOnce(String) -> T + Send + 'static,
) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            drop(pipe.read_to_end(&mut bytes));
        }
        drop(sender.send(wrap(String::from_utf8_lossy(&bytes).into_owned())));
    });
}

// === impl Output ===

impl Output {
    /// Standard output, or an error with everything that was printed.
    pub fn success(self) -> Result<String> {
        if self.status != 0 {
            bail!("exit code {}: {}{}", self.status, self.stderr, self.stdout);
        }
        Ok(self.stdout)
    }
}
