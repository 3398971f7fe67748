//! The file of a Unix socket, which exists only while a process listens on it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use net::words;
use socket2::{Domain, SockAddr, Socket, Type};

/// The file's owner and group may connect.
const MODE: u32 = 0o660;
/// Most connections that wait in the kernel until the server accepts them.
const BACKLOG: i32 = 4096;

/// Removes the file when dropped, unless another process has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
}

/// Why the socket could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum SocketFileError {
    #[error("another process listens on it: stop that one, or give another path")]
    InUse,
    #[error("another file exists at that path: give another path")]
    NoSocket,
    #[error("cannot examine the existing file: {}", words::io(.0))]
    Look(#[source] io::Error),
    #[error("cannot remove the socket of an earlier process: {}", words::io(.0))]
    Remove(#[source] io::Error),
    #[error("cannot bind: {}", words::io(.0))]
    Bind(#[source] io::Error),
}

// === impl SocketFile ===

impl SocketFile {
    /// Listens at `path`. Removes the file of a process that has ended first.
    pub fn bind(path: &Path) -> Result<(UnixListener, Self), SocketFileError> {
        make_way(path)?;
        listen(path).map_err(SocketFileError::Bind)
    }
}

fn make_way(path: &Path) -> Result<(), SocketFileError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SocketFileError::Look(error)),
    };
    if !found.file_type().is_socket() {
        return Err(SocketFileError::NoSocket);
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(SocketFileError::Remove)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // No permission to connect, or a full queue: in both cases a process listens there.
        Ok(_) | Err(_) => Err(SocketFileError::InUse),
    }
}

/// Sets the mode before clients can connect: a socket that does not listen yet refuses every
/// client.
fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let metadata = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) };
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    Ok((socket.into(), file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = |found: fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(ours)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), error = words::io(&error), "the Unix socket's file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_there_while_somebody_listens() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("frontend.sock");
        let (listener, file) = SocketFile::bind(&path).expect("bound");
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, MODE);
        UnixStream::connect(&path).expect("it listens");
        assert!(matches!(SocketFile::bind(&path), Err(SocketFileError::InUse)));
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("frontend.sock");
        drop(UnixListener::bind(&path).expect("bound"));
        assert!(path.exists(), "a listener that dies leaves its file");
        let (_listener, file) = SocketFile::bind(&path).expect("replaced");

        // A successor's file is not removed.
        fs::remove_file(&path).expect("removed");
        let _successor = UnixListener::bind(&path).expect("bound");
        drop(file);
        assert!(path.exists());

        let other = directory.path().join("precious");
        fs::write(&other, "data").expect("written");
        assert!(matches!(SocketFile::bind(&other), Err(SocketFileError::NoSocket)));
        assert!(other.exists());
    }
}
