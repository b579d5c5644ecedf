//! `airpath timing`: how well this machine keeps time.

use crate::cli::timing::{TimingAction, TimingArgs};
use crate::error::{Failure, Result};

/// Measures, or carries out what stands in its place.
///
/// # Errors
/// When something cannot be measured as it was asked for.
pub fn run(args: &TimingArgs) -> Result<i32> {
    match &args.action {
        None => Err(Failure::new("this version has no ways of sleeping to measure")),
        Some(TimingAction::Methods(_)) => Err(Failure::new("this version has no ways of sleeping to list")),
    }
}
