//! Counts kernel launches, if the build has a GPU backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Default)]
pub struct Launches(Arc<AtomicUsize>);

impl Launches {
    /// Resets the count and runs `work`.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "cube")]
        let _observation = cubecl::logging::LaunchObservation::new(Arc::new(self.clone()));
        self.restart();
        work()
    }

    /// Resets the count to 0.
    pub fn restart(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "cube")]
impl cubecl::logging::LaunchObserver for Launches {
    fn launched(&self, _kernel: &'static str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
