//! How much accuracy does a transmitted bit buy?

#![warn(missing_docs)]

pub mod catalogue;
pub mod cli;

pub mod compress;
pub mod data;
pub mod layout;
pub mod link;
pub mod method;
pub mod model;
pub mod network;
pub mod partition;
pub mod payload;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod sink;

pub mod train;
pub mod units;
pub mod vector;
pub mod wire;
