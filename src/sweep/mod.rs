//! Sweeps: from the axes of a scenario to cells, the cells in parallel, and one tidy table of them all.
//!
//! A cell is a run like any other, named by the hash of its resolved scenario, the digests of its data and the version of the
//! results. Its folder therefore says whether it is done: nothing else is remembered of a sweep.

mod axis;
mod cells;
mod estimate;
mod merge;
mod queue;
mod range;
mod slurm;
mod table;

pub use axis::{SECTION, is_axis};
pub use cells::{Cell, Cells, Sweep};
pub use estimate::{Estimate, estimate};
pub use merge::{MergeError, Merged, merge};
pub use queue::{Outcome, Queue, Share, Watcher, ended};
pub use slurm::{quoted, script};
pub use table::{TABLE, gather};
