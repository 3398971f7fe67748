//! Runtimes that live on threads of their own, seen from another thread.

use std::sync::mpsc;

use tokio::runtime::Handle;

/// The task gave no result: it panicked, or its runtime has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the task ended early")]
pub struct EndedEarly;

/// Runs `future` on the runtime of `handle` and waits for it, from any thread but that runtime's own.
pub fn block_on<F>(handle: &Handle, future: F) -> Result<F::Output, EndedEarly>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (report, result) = mpsc::sync_channel(1);
    handle.spawn(async move {
        let _ = report.send(future.await); // whoever asked waits below
    });
    result.recv().map_err(|_| EndedEarly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_over_and_an_early_end_is_told() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        assert_eq!(block_on(runtime.handle(), async { 7 }), Ok(7));
        let handle = runtime.handle().clone();
        drop(runtime);
        assert_eq!(block_on(&handle, async { 7 }), Err(EndedEarly));
    }
}
