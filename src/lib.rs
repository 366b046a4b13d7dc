#![doc = include_str!("ARCHITECTURE.md")]

pub mod digest;
pub mod rng;
pub mod vector;

pub mod layout;
pub mod units;

pub mod catalogue;
pub mod scenario;

pub mod data;
pub mod partition;

pub mod model;
pub mod train;

pub mod payload;

pub mod compress;
pub mod wire;

pub mod link;
pub mod network;

pub mod method;
pub mod run;

pub mod sink;
pub mod sweep;

pub mod lab;
pub mod plot;

pub mod export;

pub mod cli;
