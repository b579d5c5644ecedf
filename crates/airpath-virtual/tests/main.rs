//! All tests of the crate, as one program.

mod common;
mod driver;
mod naive;
mod scenarios;
mod world;
