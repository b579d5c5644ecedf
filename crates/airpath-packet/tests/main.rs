//! The tests of this crate, as one program.

mod build;
mod captures;
mod edits;
mod headers;
