//! The kernel's buffers of a connection whose reader does not read.

/// Bytes that the buffers of one loopback connection hold at most, both ends together, as this
/// machine is set up. They differ by far from one machine to another, and grow with the time that a
/// busy one takes to read.
pub fn socket_buffers() -> usize {
    let most = |name: &str| -> usize {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        text.split_whitespace().last().and_then(|most| most.parse().ok()).expect("least, default and most")
    };
    most("tcp_rmem") + most("tcp_wmem")
}
