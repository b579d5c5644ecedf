//! One file for each command.

pub mod check;
pub mod exec;
pub mod link;
pub mod log;
pub mod profiles;
pub mod schema;
pub mod shell;
pub mod warp;
