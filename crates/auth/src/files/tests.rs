//! A changed file is applied, an unchanged or unreadable one is not.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::sleep;

use super::*;

#[tokio::test(start_paused = true)]
async fn changes_are_applied_and_mistakes_are_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    std::fs::write(&path, "one").expect("written");
    let (file, contents) = Watched::open(&path).expect("readable");
    assert_eq!(contents, b"one");

    let applied = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&applied);
    let worker = tokio::spawn(file.follow(move |contents| {
        seen.lock().push(String::from_utf8_lossy(contents).into_owned());
        if contents == b"bad" { Err("bad".to_owned()) } else { Ok(()) }
    }));
    let round = async || sleep(INTERVAL + Duration::from_millis(1)).await;

    round().await;
    assert!(applied.lock().is_empty(), "nothing changed");
    std::fs::write(&path, "two").expect("written");
    round().await;
    std::fs::remove_file(&path).expect("removed");
    round().await;
    std::fs::write(&path, "bad").expect("written");
    round().await;
    round().await;
    std::fs::write(&path, "three").expect("written");
    round().await;
    assert_eq!(*applied.lock(), ["two", "bad", "three"]);
    assert!(!worker.is_finished());
}

#[test]
fn a_huge_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    std::fs::File::create(&path).expect("created").set_len(MAX_BYTES + 1).expect("a sparse file");
    assert_eq!(Watched::open(&path).expect_err("refused").kind(), io::ErrorKind::FileTooLarge);
}
