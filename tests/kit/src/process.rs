//! A program as a child process, with its log for the test.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// How long a process may take to log or do what is awaited.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of a pipe that are kept for a test that does not read them yet.
const MAX_LINES: usize = 10_000;

/// A process that is killed when dropped. Its standard error, one JSON object a line, is the log.
#[derive(Debug)]
pub struct LoggedProcess {
    child: Child,
    lines: mpsc::Receiver<String>,
}

// === impl LoggedProcess ===

impl LoggedProcess {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let lines = lines(child.stderr.take().expect("it is piped"));
        Self { child, lines }
    }

    /// The next line, as it is. `awaited` is for the message when there is none.
    pub fn next_line(&self, awaited: &str) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no log line {awaited:?}"))
    }

    /// The unread lines: for the message of a test that failed.
    pub fn unread_lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// The first line with `message`.
    pub fn line(&self, message: &str) -> Value {
        loop {
            let line = parsed(&self.next_line(message));
            if line["message"] == message {
                return line;
            }
        }
    }

    /// The first line that contains `part`.
    pub fn line_with(&self, part: &str) -> Value {
        parsed(&self.text_with(part))
    }

    /// As [`LoggedProcess::line_with`], of a line that need not be JSON: text printed before there
    /// is a log.
    pub fn text_with(&self, part: &str) -> String {
        loop {
            let line = self.next_line(part);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Sends a signal, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("there is a kill").success());
    }

    /// Bytes of memory that it has had resident at most (`VmHWM` of proc(5)).
    pub fn most_resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let kib: Option<u64> =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        1024 * kib.expect("there is a VmHWM")
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
    }

    /// Waits for the end: the process closes its log by ending.
    pub fn ended(&mut self) -> ExitStatus {
        let deadline = SystemTime::now() + PATIENCE;
        loop {
            assert!(SystemTime::now() < deadline, "it goes on and on");
            match self.lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.child.wait().expect("a child"),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
    }
}

/// The lines of `pipe` as they come, until it ends or holds something else than text.
pub fn lines(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(MAX_LINES);
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe).lines().map_while(Result::ok);
        pipe.try_for_each(|line| sender.send(line).ok())
    });
    lines
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
