//! `airpath timing`: how well hosts keep time.

use super::clocks;
use crate::cli::timing::{TimingAction, TimingArgs};
use crate::error::Result;

/// Does it.
///
/// # Errors
/// Those of what is done.
pub fn run(args: &TimingArgs) -> Result<i32> {
    match &args.action {
        TimingAction::Sync(args) => clocks::sync::run(args),
        TimingAction::Correct(args) => clocks::correct::run(args),
    }
}
