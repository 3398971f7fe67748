//! What `/proc` says of this process.

use std::fs;

/// The fields of `/proc/self/stat` (`proc_pid_stat(5)`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// Time in user and kernel mode, in clock ticks.
    pub(super) cpu: u64,
    /// In clock ticks since the machine started.
    pub(super) started: u64,
    pub(super) virtual_bytes: u64,
    pub(super) resident_pages: u64,
}

/// Number of open descriptors. Linux 6.2 and later report it as the directory's size (`stat`). On
/// older versions, list them.
pub(super) fn open_files() -> Option<u64> {
    const DESCRIPTORS: &str = "/proc/self/fd";
    let told = fs::metadata(DESCRIPTORS).ok()?.len();
    if told > 0 {
        return Some(told);
    }
    // Without the descriptor of this listing.
    Some((fs::read_dir(DESCRIPTORS).ok()?.count() as u64).saturating_sub(1))
}

/// Exact up to 2⁵³, which none of these numbers reaches.
#[expect(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]
pub(super) fn lossy(number: u64) -> f64 {
    number as f64
}

// === impl Stat ===

impl Stat {
    /// The program's name is the second field, in parentheses, and may contain any text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        // The first of these is field number 3.
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu: field(14)? + field(15)?,
            started: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}
