//! Listening sockets, one per core, all on the same port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel holds while a core is busy.
const BACKLOG: i32 = 4096;

/// Whether other processes may listen on the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// A port in use is an error.
    Refused,
    /// Connections are spread over all processes that share the port.
    Permitted,
}

/// Binds `count` sockets to `address` with `SO_REUSEPORT`, so that the kernel spreads connections
/// over them. Port 0 chooses one free port for all. The sockets are non-blocking; the caller passes
/// each to its own runtime.
///
/// `0.0.0.0` means every address of the machine, including IPv6, as for Go's servers
/// (`favoriteAddrFamily` in `net/ipsock_posix.go`), and `[::]` means the same. If the kernel has no
/// IPv6, both mean IPv4 only.
///
/// `SO_REUSEPORT` would let a second process of the same user listen too, and silently get half of
/// the connections. So unless that is permitted, the port is tried without the option first. Two
/// processes that start at the same moment can still pass.
pub fn reuse_port(address: SocketAddr, count: usize, sharing: Sharing) -> io::Result<Vec<std::net::TcpListener>> {
    let address = of_all_families(address, bind_ipv6);
    if sharing == Sharing::Refused {
        drop(socket(address, false)?);
    }
    let first = bind(address)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address)?);
    }
    Ok(listeners)
}

/// Returns `address`, or, if it means every address, the one for the machine's families. `try_ipv6`
/// shows whether there is IPv6.
fn of_all_families(address: SocketAddr, try_ipv6: impl FnOnce() -> io::Result<()>) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let every: IpAddr = match try_ipv6() {
        Ok(()) => Ipv6Addr::UNSPECIFIED.into(),
        Err(error) if is_without_ipv6(&error) => Ipv4Addr::UNSPECIFIED.into(),
        // For example out of descriptors, which the later bind reports.
        Err(_) => address.ip(),
    };
    SocketAddr::new(every, address.port())
}

/// `EAFNOSUPPORT` is the error of a kernel without IPv6 (`ipv6.disable=1`) and of a filter of
/// system calls; `EADDRNOTAVAIL` that of a family without an address.
fn is_without_ipv6(error: &io::Error) -> bool {
    let errors = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL];
    errors.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// On any port, because this only checks IPv6, and not whether a port is free.
fn bind_ipv6() -> io::Result<()> {
    socket((Ipv6Addr::UNSPECIFIED, 0).into(), false).map(drop)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = socket(address, true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart on the same port must not wait for old connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Independent of `net.ipv6.bindv6only`.
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn port_zero_is_one_port_for_all() {
        let listeners = reuse_port("127.0.0.1:0".parse().unwrap(), 3, Sharing::Refused).unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]), "{ports:?}");
    }

    /// Checks that a listener at `every` is reached at each of `addresses`.
    async fn reached(every: &str, addresses: &[&str]) {
        let mut listeners = reuse_port(every.parse().unwrap(), 1, Sharing::Refused).unwrap();
        let listener = tokio::net::TcpListener::from_std(listeners.remove(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in addresses {
            let ip = ip.parse().unwrap();
            let client = tokio::net::TcpStream::connect(SocketAddr::new(ip, port)).await.unwrap();
            let (_, address) = crate::accept::tcp(&listener).await.unwrap();
            assert_eq!(address, client.local_addr().unwrap(), "IPv4 addresses as such");
        }
    }

    #[tokio::test]
    async fn every_address_is_one_of_either_family() {
        if let Err(error) = socket("[::1]:0".parse().unwrap(), false) {
            return untested("addresses of both families", &error.to_string());
        }
        for every in ["0.0.0.0:0", "[::]:0"] {
            reached(every, &["127.0.0.1", "::1"]).await;
        }
    }

    #[test]
    fn every_address_is_one_of_ipv4_where_the_kernel_has_no_ipv6() {
        let every =
            |address: &str, errno: Errno| of_all_families(address.parse().unwrap(), || Err(errno.into())).to_string();
        for errno in [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL] {
            assert_eq!(every("0.0.0.0:8443", errno), "0.0.0.0:8443");
            assert_eq!(every("[::]:8443", errno), "0.0.0.0:8443");
            assert_eq!(every("[::1]:8443", errno), "[::1]:8443", "nobody asked for another one");
        }
        assert_eq!(every("[::]:8443", Errno::MFILE), "[::]:8443", "that says nothing of IPv6");
    }

    const WITHOUT_IPV6: &str = "listen::tests::every_address_is_one_of_ipv4_where_ipv6_is_turned_off";

    /// Reports a test that passes without being run, past the harness, which hides the output of
    /// passing tests.
    fn untested(what: &str, why: &str) {
        drop(io::stderr().write_all(format!("\nnot tested: {what}: {}\n", why.trim()).as_bytes()));
    }

    /// In its own network namespace, if that is allowed.
    #[tokio::test]
    async fn every_address_is_one_of_ipv4_where_ipv6_is_turned_off() {
        const INSIDE: &str = "NET_TESTS_WITHOUT_IPV6";
        const SCRIPT: &str = "ip link set lo up && sysctl -qw net.ipv6.conf.all.disable_ipv6=1 && echo off
            exec \"$0\" --exact \"$1\"";
        if std::env::var_os(INSIDE).is_some() {
            assert!(socket("[::1]:0".parse().unwrap(), false).is_err(), "IPv6 is not off");
            for every in ["0.0.0.0:0", "[::]:0"] {
                reached(every, &["127.0.0.1"]).await;
            }
            return;
        }
        let this = std::env::current_exe().unwrap();
        let words = ["--map-root-user", "--net", "sh", "-c", SCRIPT];
        let inside = Command::new("unshare").args(words).arg(this).arg(WITHOUT_IPV6).env(INSIDE, "1").output();
        match inside {
            Ok(inside) if inside.stdout.starts_with(b"off") => {
                assert!(inside.status.success(), "{}", String::from_utf8_lossy(&inside.stdout));
            }
            Ok(inside) => untested("IPv6 turned off", &String::from_utf8_lossy(&inside.stderr)),
            Err(error) => untested("IPv6 turned off", &format!("unshare: {error}")),
        }
    }

    #[test]
    fn where_ipv6_cannot_be_turned_off_that_is_said() {
        let mut this = Command::new(std::env::current_exe().unwrap());
        let told = this.args(["--exact", WITHOUT_IPV6]).env("PATH", "/nowhere").output().unwrap();
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success() && said.contains("not tested: IPv6 turned off: unshare: No such file"), "{said}");
    }

    #[test]
    fn a_port_in_use_is_refused_unless_sharing_is_permitted() {
        let taken = reuse_port("127.0.0.1:0".parse().unwrap(), 1, Sharing::Refused).unwrap();
        let address = taken[0].local_addr().unwrap();
        let error = reuse_port(address, 2, Sharing::Refused).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(reuse_port(address, 2, Sharing::Permitted).unwrap().len(), 2);
        drop(taken);
    }
}
