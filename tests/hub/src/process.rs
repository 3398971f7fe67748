//! Child processes that end when this process ends, however it ends: returning, panicking, or
//! killed outright.
//!
//! Each child runs under a shell that holds the reading end of a pipe whose writing end is ours
//! alone. When the pipe closes (the system closes it for a dead process) the shell kills its
//! process group: the child and whatever the child started. `PR_SET_PDEATHSIG` was rejected: it
//! needs unsafe code here, is bound to a thread, and exists on Linux only.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::wait;

/// `$@` is the program, `$0` the file for its process ID. SIGKILL, because nothing here has state
/// worth saving and kube-apiserver takes seconds to end gracefully. The shell waits for the program
/// that it killed: otherwise the gate would not know what processor time it took.
const SUPERVISOR: &str = r#"exec 3<&0
trap 'kill -KILL "$program"; wait "$program"; kill -KILL 0' TERM
"$@" </dev/null 3<&- &
program=$!
echo "$program" >"$0"
{ read -r _ <&3; kill -TERM $$; } &
watcher=$!
wait "$program"
code=$?
kill "$watcher"
exit "$code""#;

/// Time for a shell to start a program.
const START_LIMIT: Duration = Duration::from_secs(20);
/// The clock tick of programs' CPU times (`CLK_TCK` of proc(5), the same on all Linux).
const TICK: Duration = Duration::from_millis(10);
/// Bytes quoted from the end of a log when its process has failed.
const LOG_TAIL: usize = 3000;

/// Environment variables that must not reach a child: they would send its requests elsewhere.
pub const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// Settings of a program written in Go, which collects garbage when the heap has doubled.
type GoMemory = [(&'static str, Option<&'static str>); 2];

/// For control planes: cores are scarcer here than memory, so the heap may grow fivefold, or to the
/// limit. The limit must be far above what the hub of a measurement holds (1 GB with 11,000 works),
/// or the program does little but collect.
const LONG_RUNNING: GoMemory = [("GOGC", Some("400")), ("GOMEMLIMIT", Some("3GiB"))];
/// For commands: most end before they have garbage to collect, and collection takes a third of
/// their time.
const SHORT: GoMemory = [("GOGC", Some("off")), ("GOMEMLIMIT", Some("256MiB"))];
/// As the program's authors ship it.
const AS_SHIPPED: GoMemory = [("GOGC", None), ("GOMEMLIMIT", None)];

/// A running program; ended on drop.
#[derive(Debug)]
pub struct Process {
    name: String,
    /// The program and its arguments.
    words: Vec<OsString>,
    go: GoMemory,
    directory: PathBuf,
    shell: Child,
    lifeline: Option<ChildStdin>,
    log: PathBuf,
}

// === impl Process ===

impl Process {
    /// Starts `program`, with its output in `<directory>/<name>.log`.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        args: impl IntoIterator<Item = A>,
        directory: &Path,
    ) -> Result<Self> {
        Self::start_with(LONG_RUNNING, name, program, args, directory)
    }

    /// The same without the settings that tests give to programs written in Go.
    pub fn start_as_shipped<A: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        args: impl IntoIterator<Item = A>,
        directory: &Path,
    ) -> Result<Self> {
        Self::start_with(AS_SHIPPED, name, program, args, directory)
    }

    fn start_with<A: AsRef<OsStr>>(
        go: GoMemory,
        name: &str,
        program: &Path,
        args: impl IntoIterator<Item = A>,
        directory: &Path,
    ) -> Result<Self> {
        let mut words = vec![program.as_os_str().to_owned()];
        words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        let log = directory.join(format!("{name}.log"));
        let mut shell = launch(name, &words, go, directory, &log)?;
        let lifeline = shell.stdin.take();
        Ok(Self { name: name.to_owned(), words, go, directory: directory.to_path_buf(), shell, lifeline, log })
    }

    /// Starts it again with the same arguments, after [`Process::stop`]. Its log starts over.
    pub fn start_again(&mut self) -> Result<()> {
        self.stop()?;
        self.shell = launch(&self.name, &self.words, self.go, &self.directory, &self.log)?;
        self.lifeline = self.shell.stdin.take();
        Ok(())
    }

    /// The supervisor's process ID: the program is its descendant.
    pub fn id(&self) -> u32 {
        self.shell.id()
    }

    /// The program's own process ID. After its end another process may have the number.
    pub fn program_id(&self) -> Result<i32> {
        let path = id_file(&self.log);
        let id = || Ok(std::fs::read_to_string(&path)?.trim().parse()?);
        wait::until("the program to be started", START_LIMIT, id)
    }

    /// Its peak resident memory in bytes (`VmHWM` of proc(5)).
    pub fn most_resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program_id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kib: u64 = line.trim().strip_suffix(" kB").context("not in kB")?.parse()?;
        Ok(1024 * kib)
    }

    /// The CPU time that it used so far (`utime` and `stime` of proc(5)), to the clock tick.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.program_id()?))?;
        // The program's name, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(") ").context("no name")?;
        let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
        Ok(TICK * ticks)
    }

    /// Sends a signal (its name without `SIG`) to the program only, not to its children.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        self.check()?; // or its id could be somebody else's by now
        let id = self.program_id()?;
        let status = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status()?;
        ensure!(status.success(), "cannot send SIG{name} to {}: {status}", self.name);
        Ok(())
    }

    /// The file of its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// An error with the end of its log if the program has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.shell.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} has ended: {status}\n{}", self.name, self.log_tail()),
        }
    }

    /// The end of its output.
    pub fn log_tail(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_TAIL)..]).into_owned()
    }

    /// Signals it to end, without waiting: several can end at the same time.
    pub fn release(&mut self) {
        drop(self.lifeline.take());
    }

    /// Ends it and waits until it is gone.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.release();
        Ok(self.shell.wait()?)
    }
}

fn launch(name: &str, words: &[OsString], go: GoMemory, directory: &Path, log: &Path) -> Result<Child> {
    let id = id_file(log);
    drop(std::fs::remove_file(&id)); // of the one before
    let output = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut command = Command::new("sh");
    command.args(["-c", SUPERVISOR]).arg(id).args(words);
    isolate(&mut command, go);
    command
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0) // so that killing the group reaches the child's children and nobody else
        .spawn()
        .with_context(|| format!("cannot start {name}"))
}

/// Prepares the environment of a command that ends by itself.
pub(crate) fn prepare_short(command: &mut Command) {
    isolate(command, SHORT);
}

fn isolate(command: &mut Command, go: GoMemory) {
    for variable in PROXY_VARIABLES {
        command.env_remove(variable);
    }
    for (variable, value) in go {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
}

fn id_file(log: &Path) -> PathBuf {
    log.with_extension("pid")
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(directory: &TempDir, script: &str) -> Process {
        Process::start("shell", Path::new("/bin/sh"), ["-c", script], directory.path()).unwrap()
    }

    fn is_running(process_id: &str) -> bool {
        Command::new("kill").args(["-0", process_id]).stderr(Stdio::null()).status().unwrap().success()
    }

    #[test]
    fn a_program_that_ends_is_reported_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "echo goodbye; exit 3");
        let ended = wait::until("its end", LIMIT, || match process.check() {
            Ok(()) => bail!("it runs"),
            Err(error) => Ok(error.to_string()),
        });
        let ended = ended.unwrap();
        assert!(ended.contains("exit status: 3") && ended.contains("goodbye"), "{ended}");
    }

    #[test]
    fn stopping_ends_the_program_and_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "sleep 1000 & echo $!; wait");
        let grandchild = wait::until("the grandchild", LIMIT, || {
            let text = process.log_tail();
            text.strip_suffix('\n').map(str::to_owned).context("no line yet")
        });
        let grandchild = grandchild.unwrap();
        assert!(is_running(&grandchild));
        process.stop().unwrap();
        wait::until_true("the grandchild's end", LIMIT, || Ok(!is_running(&grandchild))).unwrap();
    }

    #[test]
    fn a_stopped_program_can_be_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "echo $$; exec sleep 1000");
        let printed = |process: &Process| {
            let text = process.log_tail();
            text.strip_suffix('\n').map(str::to_owned).context("no line yet")
        };
        let first = wait::until("the first one", LIMIT, || printed(&process)).unwrap();
        process.start_again().unwrap();
        let second = wait::until("the second one", LIMIT, || printed(&process)).unwrap();
        assert_ne!(first, second);
        assert!(is_running(&second));
        // It was killed with its process group, and its parent shell is gone: the process that
        // adopts it may take a moment to reap it.
        wait::until_true("the first one's end", LIMIT, || Ok(!is_running(&first))).unwrap();
    }

    #[test]
    fn a_signal_reaches_the_program_and_not_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "trap 'exit 4' TERM; sleep 1000 & echo $!; wait");
        let printed = || process.log_tail().strip_suffix('\n').map(str::to_owned).context("no line yet");
        let child = wait::until("the child", LIMIT, printed).unwrap();
        process.signal("TERM").unwrap();
        wait::until_true("its end", LIMIT, || Ok(process.check().is_err())).unwrap();
        assert!(is_running(&child));
        assert!(process.signal("TERM").is_err());
        Command::new("kill").arg(child).status().unwrap();
    }

    /// This test runs itself as another process, which then cannot clean up.
    #[test]
    fn a_killed_owner_takes_its_programs_along() {
        const OWNER: &str = "HUB_TESTS_OWNER";
        if let Some(directory) = std::env::var_os(OWNER) {
            let script = ["-c", "echo $$ > program.new && mv program.new program; exec sleep 1000"];
            let _process = Process::start("owned", Path::new("/bin/sh"), script, Path::new(&directory)).unwrap();
            loop {
                std::thread::park();
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::tests::a_killed_owner_takes_its_programs_along"])
            .env(OWNER, directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let program = wait::until("the owner's program", LIMIT, || {
            Ok(std::fs::read_to_string(directory.path().join("program"))?)
        });
        owner.kill().unwrap();
        owner.wait().unwrap();
        let program = program.unwrap();
        wait::until_true("the program's end", LIMIT, || Ok(!is_running(program.trim()))).unwrap();
    }
}
