use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::queue::MOST_EVENTS;
use super::*;
use crate::event::tests::event;
use crate::timestamp::FileStamp;

const DAY: Duration = Duration::from_hours(24);

fn config(path: &Path, max_size: u64) -> FileConfig {
    FileConfig { path: path.to_owned(), max_size, max_backups: 0, max_age: Duration::ZERO }
}

fn open(config: FileConfig) -> (Log, Metrics) {
    let metrics = Metrics::default();
    (Log::start(&Config { target: Target::File(config) }, metrics.clone()).expect("the log opens"), metrics)
}

/// The URIs in a file. Each line is one event.
fn uris(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a text file");
    let read = |line| serde_json::from_str::<serde_json::Value>(line).expect("every line is an event");
    text.lines().map(read).map(|event| event["requestURI"].as_str().unwrap().to_owned()).collect()
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn closing_writes_everything_that_was_queued_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let (log, metrics) = open(config(&path, 1 << 30));
    for number in 0..1000 {
        log.sink().record(event(&format!("/{number}")));
    }
    let late = log.sink();
    drop(log);
    late.record(event("/late"));
    assert_eq!(uris(&path), (0..1000).map(|number| format!("/{number}")).collect::<Vec<_>>());
    assert_eq!((metrics.written.get(), metrics.dropped.get(), metrics.write_errors.get()), (1000, 1, 0));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_existing_log_is_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    for uri in ["/one", "/two"] {
        let (log, _) = open(config(&path, 1 << 30));
        log.sink().record(event(uri));
    }
    assert_eq!(uris(&path), ["/one", "/two"]);
}

#[test]
fn no_file_grows_beyond_its_size_and_no_event_is_lost() {
    const SIZE: u64 = 200_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let (log, metrics) = open(config(&path, SIZE));
    for number in 0..4000 {
        log.sink().record(event(&format!("/{number}")));
    }
    drop(log);
    assert_eq!(metrics.written.get(), 4000);
    let names = files(directory.path());
    assert!(names.len() > 5, "{names:?}");
    let mut all = Vec::new();
    for name in &names {
        let path = directory.path().join(name);
        assert!(fs::metadata(&path).unwrap().len() <= SIZE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let stamp = name.strip_prefix("audit").and_then(|rest| rest.strip_suffix(".log")).expect(name);
        assert!(stamp.is_empty() || FileStamp::is_one(&stamp[1..]), "{name}");
        all.extend(uris(&path));
    }
    // In this order: rotated files by time, then the current one ("-" sorts before ".").
    assert_eq!(all, (0..4000).map(|number| format!("/{number}")).collect::<Vec<_>>());
}

#[test]
fn files_too_many_or_too_old_are_deleted_and_others_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let stamp = |days: u32| FileStamp(SystemTime::now() - DAY * days).to_string();
    let write = |name: String| fs::write(directory.path().join(name), "x").unwrap();
    for days in 1..=6 {
        write(format!("audit-{}.log", stamp(days)));
    }
    write("audit-copy.log".into());
    write(format!("other-{}.log", stamp(100)));
    let path = directory.path().join("audit.log");
    drop(open(FileConfig { max_age: Duration::from_hours(4 * 24 - 1), ..config(&path, 1 << 30) }));
    let kept = |days: &[u32]| {
        let mut names: Vec<_> = days.iter().map(|days| stamp(*days)[..10].to_owned()).collect();
        names.reverse();
        names
    };
    let dates = || {
        let names = files(directory.path()).into_iter().filter(|name| name.starts_with("audit-2"));
        names.map(|name| name["audit-".len()..][..10].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(dates(), kept(&[1, 2, 3]));
    drop(open(FileConfig { max_backups: 2, ..config(&path, 1 << 30) }));
    assert_eq!(dates(), kept(&[1, 2]));
    let names = files(directory.path());
    assert!(names.contains(&"audit-copy.log".to_owned()) && names.iter().any(|name| name.starts_with("other-")));
}

#[test]
fn an_age_beyond_the_calendar_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let old = "audit-1971-01-01T00-00-00.000.log";
    fs::write(directory.path().join(old), "x").unwrap();
    for max_age in [DAY * 30_000, DAY * 5_000_000, Duration::MAX] {
        drop(open(FileConfig { max_age, ..config(&path, 1 << 30) }));
        assert!(files(directory.path()).contains(&old.to_owned()), "{max_age:?}");
    }
}

#[test]
fn a_missing_directory_is_named_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing/audit.log");
    let error = RotatingFile::open(config(&path, 1)).unwrap_err().to_string();
    assert!(error.contains("missing/audit.log does not exist: create it"), "{error}");
    let error = RotatingFile::open(config(directory.path(), 1)).unwrap_err();
    assert!(matches!(error, OpenError::Open { .. }), "{error}");
}

/// An output under a test's control.
struct ScriptedOutput {
    /// Allows one write per message.
    go: mpsc::Receiver<io::Result<usize>>,
    written: Arc<Mutex<Vec<u8>>>,
    /// Dropped when the log has written everything.
    _open: Option<mpsc::Sender<()>>,
}

impl Output for ScriptedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.go.recv().unwrap_or(Ok(usize::MAX))?;
        let taken = &bytes[..bytes.len().min(most)];
        self.written.lock().extend_from_slice(taken);
        Ok(taken.len())
    }
}

#[test]
fn an_output_that_hangs_costs_events_and_never_the_caller() {
    let (go, held) = mpsc::channel();
    let written = Arc::default();
    let metrics = Metrics::default();
    let (open, closed) = mpsc::channel();
    let output = ScriptedOutput { go: held, written: Arc::clone(&written), _open: Some(open) };
    let log = Log::on(output, metrics.clone()).unwrap();
    // The writer may have taken one batch before the rest is counted.
    let total = 3 * MOST_EVENTS;
    for number in 0..total {
        log.sink().record(event(&format!("/{number}")));
    }
    let dropped = usize::try_from(metrics.dropped.get()).unwrap();
    assert!((total - 2 * MOST_EVENTS..=total - MOST_EVENTS).contains(&dropped), "{dropped}");
    drop(go);
    drop(log);
    // On a busy machine, it takes longer than a log waits when it is closed.
    assert_eq!(closed.recv_timeout(Duration::from_mins(1)), Err(mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(usize::try_from(metrics.written.get()).unwrap(), total - dropped);
    let lines = written.lock().split_inclusive(|byte| *byte == b'\n').count();
    assert_eq!(lines, total - dropped);
}

#[test]
fn users_with_much_to_say_do_not_fill_the_memory() {
    let metrics = Metrics::default();
    let queue = Queue::new(metrics.clone());
    let groups = vec!["g".repeat(1000); 1000];
    let user = Arc::new(auth::User { groups, ..auth::User::default() });
    for _ in 0..100 {
        let mut event = event("/x");
        event.user = Some(Arc::clone(&user));
        queue.push(event);
    }
    assert!((30..=40).contains(&metrics.dropped.get()), "{}", metrics.dropped.get());
}

#[test]
fn half_a_line_spoils_no_other() {
    let (go, held) = mpsc::channel();
    let written = Arc::default();
    let metrics = Metrics::default();
    let mut writer =
        Writer::new(ScriptedOutput { go: held, written: Arc::clone(&written), _open: None }, metrics.clone());
    let mut write = |uri: &str, answers: Vec<io::Result<usize>>| {
        for answer in answers {
            go.send(answer).unwrap();
        }
        writer.write(&mut vec![event(uri)]);
    };
    let full = || Err(io::ErrorKind::StorageFull.into());
    write("/1", vec![Ok(usize::MAX)]);
    write("/2", vec![full()]);
    write("/3", vec![Ok(30), full()]);
    write("/4", vec![full()]);
    write("/5", vec![Ok(usize::MAX)]);
    write("/6", vec![Ok(10), Ok(usize::MAX)]);
    assert_eq!((metrics.written.get(), metrics.write_errors.get()), (3, 3));
    let text = String::from_utf8(written.lock().clone()).unwrap();
    let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    assert_eq!((whole.count(), text.lines().count()), (3, 4), "{text}");
}
