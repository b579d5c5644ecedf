//! A hop as a tree of parameters.

use crate::document::{Place, Table};

/// A hop as it was written.
#[derive(Clone, Debug)]
pub struct HopTree {
    pub name: String,
    pub place: Place,
    /// What was written for both directions; the directions below include it.
    pub link: Table,
    pub uplink: Table,
    pub downlink: Table,
}
