//! The command as a user sees it: runs, mistakes, and the other commands.

mod commands;
mod export;
mod measure;
mod mistakes;
mod plot;
mod report;
mod resume;
mod run;
mod support;
mod sweep;
