//! Real processes: their output is bounded, and none outlives its run.

use std::path::Path;

use kit::wait::{WAIT, eventually, within};

use super::*;

/// Longer than any of these tests.
const FOREVER: Duration = Duration::from_mins(10);

async fn sh(script: &str, timeout: Duration) -> Result<Finished, RunError> {
    let args = ["-c".to_owned(), script.to_owned()];
    run(Invocation { program: Path::new("/bin/sh"), name: "sh", args: &args, env: Vec::new(), timeout }).await
}

/// Whether the process exists and is not a zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("X", |(_, rest)| &rest[..1]);
    !matches!(state, "Z" | "X")
}

/// Numbers of processes that a script wrote, one a line.
async fn written(file: &Path, lines: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    eventually(WAIT, || read().matches('\n').count() >= lines).await;
    read().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn output_status_and_environment() {
    let value = SecretString::from("there");
    let args = ["-c".to_owned(), "echo $0 $WORD; cat; echo oh >&2; exit 3".to_owned()];
    let program = Path::new("/bin/sh");
    let env = vec![("WORD", &value)];
    let finished = run(Invocation { program, name: "plugin", args: &args, env, timeout: FOREVER }).await.unwrap();
    assert_eq!(finished.status.code(), Some(3));
    assert_eq!((&*finished.stdout, &*finished.stderr), (&b"plugin there\n"[..], &b"oh\n"[..]));
}

#[tokio::test]
async fn too_much_output_is_refused_and_much_complaint_is_cut() {
    let outcome = sh("yes aaaaaaaaaaaaaaa", FOREVER).await;
    assert!(matches!(outcome, Err(RunError::TooMuchOutput)));
    let finished = sh(&format!("head -c {MOST_STDOUT} /dev/zero"), FOREVER).await.unwrap();
    assert_eq!(finished.stdout.len(), MOST_STDOUT);
    let finished = sh("head -c 1000000 /dev/zero >&2; echo end >&2", FOREVER).await.unwrap();
    assert_eq!(finished.stderr.len(), MOST_STDERR);
    assert!(finished.stderr.ends_with(b"end\n"));
}

#[tokio::test]
async fn on_timeout_the_whole_group_ends() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("sleep 600 & echo $! >> {0}; echo $$ >> {0}; echo waiting >&2; wait", file.display());
    let outcome = sh(&script, Duration::from_secs(2)).await;
    let Err(RunError::Timeout { stderr }) = outcome else { panic!("it does not end by itself") };
    assert_eq!(stderr, b"waiting\n");
    let pids = written(&file, 2).await;
    eventually(WAIT, || !pids.iter().any(|pid| lives(pid))).await;
}

#[tokio::test]
async fn a_run_that_is_given_up_takes_its_group_along() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("trap '' TERM; sleep 600 & echo $! >> {0}; echo $$ >> {0}; wait", file.display());
    let task = tokio::spawn(async move { sh(&script, FOREVER).await.map(drop) });
    let pids = written(&file, 2).await;
    assert!(pids.iter().all(|pid| lives(pid)));
    task.abort();
    eventually(WAIT, || !pids.iter().any(|pid| lives(pid))).await;
}

#[tokio::test]
async fn output_held_open_by_others_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("echo done; sleep 600 & echo $! > {}", file.display());
    let finished = within(WAIT, "the program's end", sh(&script, FOREVER)).await.unwrap();
    assert_eq!((finished.status.success(), &*finished.stdout), (true, &b"done\n"[..]));
    let pids = written(&file, 1).await;
    eventually(WAIT, || !lives(&pids[0])).await;
}

#[tokio::test]
async fn a_signal_is_no_exit_code() {
    use std::os::unix::process::ExitStatusExt as _;
    let finished = sh("kill -9 $$", FOREVER).await.unwrap();
    assert_eq!((finished.status.code(), finished.status.signal()), (None, Some(9)));
}

#[test]
fn the_end_of_any_row_of_pieces_is_kept() {
    let all: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for piece in [1, 3, 64, 1000] {
        let mut tail = Tail::new(100);
        for bytes in all.chunks(piece) {
            tail.push(bytes);
            assert!(tail.bytes.len() <= 200 + piece);
        }
        assert_eq!(tail.into_bytes(), all[900..]);
    }
}
