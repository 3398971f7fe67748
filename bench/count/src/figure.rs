//! A count or a time.

/// Instructions or nanoseconds per unit: the median of the rounds and how far they are apart.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub median: f64,
    /// From the smallest to the largest, as a share of the median.
    pub spread: f64,
}

// === impl Figure ===

impl Figure {
    /// The figure of the rounds' counts, at least one.
    pub fn of(mut counts: Vec<f64>) -> Self {
        counts.sort_by(f64::total_cmp);
        let median = counts[counts.len() / 2];
        Self { median, spread: (counts[counts.len() - 1] - counts[0]) / median }
    }
}
