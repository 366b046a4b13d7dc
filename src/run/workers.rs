//! Objectives for as many threads as there are, made when first needed and used again.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::train::Objective;

/// Threads, and the objectives they work on. Which thread takes which objective never changes a result.
pub struct Workers<'a> {
    threads: rayon::ThreadPool,
    make: Box<dyn Fn() -> Box<dyn Objective> + Sync + 'a>,
    idle: Mutex<Vec<Box<dyn Objective>>>,
}

impl<'a> Workers<'a> {
    /// `threads` threads whose objectives `make` makes.
    ///
    /// # Errors
    /// If the system cannot start them.
    pub fn new(threads: usize, make: impl Fn() -> Box<dyn Objective> + Sync + 'a) -> Result<Self, String> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let threads = threads.map_err(|error| format!("cannot start threads: {error}"))?;
        Ok(Self { threads, make: Box::new(make), idle: Mutex::default() })
    }

    /// Does `work` on every item in parallel; results come in the order of the items.
    pub fn map<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T, &mut dyn Objective) -> R + Sync) -> Vec<R> {
        let one = |item| {
            let idle = self.idle.lock().expect("no thread panics while it holds the lock").pop();
            let mut objective = idle.unwrap_or_else(|| (self.make)());
            let result = work(item, &mut *objective);
            self.idle.lock().expect("no thread panics while it holds the lock").push(objective);
            result
        };
        self.threads.install(|| items.into_par_iter().with_max_len(1).map(one).collect())
    }
}
