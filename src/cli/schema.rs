//! `fedbits schema`

use clap::Args;

use super::{DONE, print};
use crate::{run::slots, scenario::json_schema};

/// Print the JSON schema of scenario files, for completion in editors
#[derive(Args)]
pub struct Arguments {}

pub(super) fn schema() -> u8 {
    let schema = serde_json::to_string_pretty(&json_schema(&slots())).expect("a JSON value is JSON");
    print(&format!("{schema}\n"));
    DONE
}
