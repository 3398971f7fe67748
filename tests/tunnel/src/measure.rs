//! Measures of the test's own process, and of an echo.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::Tunnel;

/// Bytes of this process that are in memory (`VmRSS`).
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has one");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Open file descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// Sockets of this machine that wait for an answer to their SYN to `port`.
pub fn connecting(port: u16) -> usize {
    const SYN_SENT: &str = "02";
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("procfs");
    let to = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(2).is_some_and(|remote| remote.ends_with(&to)) && row.get(3) == Some(&SYN_SENT)).count()
}

/// The value that `hundredths` of a hundred are not above. Sorts.
pub fn percentile(values: &mut [Duration], hundredths: usize) -> Duration {
    values.sort_unstable();
    values[(values.len() * hundredths / 100).min(values.len() - 1)]
}

/// The middle one. Sorts.
pub fn median(values: &mut [Duration]) -> Duration {
    percentile(values, 50)
}

/// The 99th percentile of `times` round trips of 64 bytes.
pub async fn echo_p99(tunnel: &mut Tunnel, times: usize) -> std::io::Result<Duration> {
    let mut round_trips = Vec::with_capacity(times);
    let mut buffer = [0; 64];
    for _ in 0..times {
        let start = Instant::now();
        tunnel.write_all(&[7; 64]).await?;
        tunnel.flush().await?;
        tunnel.read_exact(&mut buffer).await?;
        round_trips.push(start.elapsed());
    }
    Ok(percentile(&mut round_trips, 99))
}
