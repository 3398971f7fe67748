//! Tests: changes are noticed, and each failure is reported once.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::time::sleep;

use super::*;

#[tokio::test(start_paused = true)]
async fn changes_are_applied_and_mistakes_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "one").unwrap();
    let (file, contents) = File::open(&path, LONGEST).unwrap();
    assert_eq!(contents, b"one");

    let applied = Arc::new(Mutex::new(Vec::new()));
    let failures = Arc::new(AtomicUsize::new(0));
    let (seen, failed) = (Arc::clone(&applied), Arc::clone(&failures));
    let apply = move |contents: &[u8]| {
        seen.lock().push(String::from_utf8_lossy(contents).into_owned());
        if contents == b"bad" { Err("bad".to_owned()) } else { Ok(()) }
    };
    let failed = move || {
        failed.fetch_add(1, Ordering::SeqCst);
    };
    let worker = tokio::spawn(file.follow("file", apply, failed));
    let round = async || sleep(INTERVAL + Duration::from_millis(1)).await;

    round().await;
    assert!(applied.lock().is_empty(), "nothing changed");
    fs::write(&path, "two").unwrap();
    round().await;
    fs::remove_file(&path).unwrap();
    round().await;
    round().await;
    assert_eq!(failures.load(Ordering::SeqCst), 1, "a file that is gone is told of, once");
    fs::write(&path, "bad").unwrap();
    round().await;
    round().await;
    assert_eq!(failures.load(Ordering::SeqCst), 2);
    fs::write(&path, "three").unwrap();
    round().await;
    fs::write(&path, "bad").unwrap();
    round().await;
    assert_eq!(*applied.lock(), ["two", "bad", "three", "bad"]);
    assert_eq!(failures.load(Ordering::SeqCst), 3, "told again after it was good");
    assert!(!worker.is_finished());
}

#[test]
fn a_huge_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::File::create(&path).unwrap().set_len(LONGEST + 1).unwrap();
    let error = File::open(&path, LONGEST).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (std::io::ErrorKind::FileTooLarge, "longer than 8192 KiB"));
}

#[test]
fn a_file_replaced_by_one_of_the_same_age_and_length_looks_different() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("file"), directory.path().join("other"));
    fs::write(&path, "one").unwrap();
    fs::write(&other, "two").unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::File::open(&other).unwrap().set_modified(modified).unwrap();
    let before = Look::at(&path);
    fs::rename(&other, &path).unwrap();
    assert_ne!(Look::at(&path), before);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_loaded_is_tried_again_though_it_looks_the_same() {
    let tries = Arc::new(AtomicUsize::new(0));
    let tried = Arc::clone(&tries);
    let reload = move || match tried.fetch_add(1, Ordering::SeqCst) {
        0..3 => Err("too many open files"),
        _ => Ok(true),
    };
    tokio::spawn(follow("files", vec!["/nowhere".into()], reload, || {}));
    sleep(10 * INTERVAL + Duration::from_millis(1)).await;
    assert_eq!(tries.load(Ordering::SeqCst), 4, "until they can be, and then no more");
}
