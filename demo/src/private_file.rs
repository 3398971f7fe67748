//! Files that hold credentials: readable and writable by their owner only, from the moment they
//! exist.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Opens `path` for writing, empty, with mode 0600 if it is new.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
