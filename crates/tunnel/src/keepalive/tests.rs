use super::*;

const MEGABYTE: u32 = 1 << 20;

/// The window after up to a hundred samples, on a path with this round trip and this rate in bytes
/// per second.
fn settled(rtt: Duration, rate: f64) -> u32 {
    let mut window = Window { now: MEGABYTE, most: 8 * MEGABYTE, shortest: Duration::MAX, sampled: 0 };
    window.sample(rtt, 0, 0);
    let mut bytes = 0;
    for _ in 0..100 {
        // A stream has at most its window in flight; anything more waits somewhere and takes
        // longer.
        let product = rate * rtt.as_secs_f64();
        let received = product.min(f64::from(window.now));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
        let received = received as u64;
        bytes += received.max(u64::from(window.now));
        if window.wants_sample(bytes) {
            window.sample(rtt, received, bytes);
        }
    }
    window.now
}

#[test]
fn a_window_grows_on_a_long_fast_path_only() {
    assert_eq!(settled(Duration::from_millis(100), 80e6), 8 * MEGABYTE);
    assert_eq!(settled(Duration::from_millis(100), 20e6), 4 * MEGABYTE, "twice what is under way");
    assert_eq!(settled(Duration::from_millis(100), 1e5), MEGABYTE, "a slow path");
    assert_eq!(settled(Duration::from_micros(100), 1e9), MEGABYTE, "a short path");
    assert_eq!(settled(Duration::from_millis(20), 40e6), 2 * MEGABYTE);
}

#[test]
fn a_queue_on_the_path_does_not_make_the_window_grow() {
    let mut window = Window { now: MEGABYTE, most: 8 * MEGABYTE, shortest: Duration::MAX, sampled: 0 };
    assert_eq!(window.sample(Duration::from_millis(10), 0, 0), None);
    // A slow path whose queue takes two seconds: much is received meanwhile, and a larger window
    // would not help.
    assert_eq!(window.sample(Duration::from_secs(2), 4_000_000, 4_000_000), None);
}
