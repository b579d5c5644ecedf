//! Running a scenario: from a request to a folder, a verdict and an exit status.

mod arguments;
pub mod calibrated;
pub mod conclude;
mod ends;
pub mod files;
mod interfaces;
pub mod interrupt;
pub mod live;
pub mod machine;
pub mod manifest;
pub mod measured;
pub mod recording;
pub mod replay;
pub mod replication;
pub mod replications;
pub mod request;
pub mod sim;
pub mod warp;
mod workload;

pub use request::RunRequest;

/// Exit status of a program that did not do what it was to do, Airpath's own among them.
pub const UNDONE_STATUS: i32 = 1;
/// Exit status of a mistake in what was typed or written.
pub const USAGE_STATUS: i32 = 2;
/// Exit status of a run that cannot be trusted, with `--strict`.
pub const NOT_TRUSTED_STATUS: i32 = 3;
/// Exit status when Airpath itself fails (as `env` and `timeout` do).
pub const FAILED_STATUS: i32 = 125;
