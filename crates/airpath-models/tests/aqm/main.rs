//! Disciplines with active queue management, compared packet by packet with naïve ports of the
//! pseudocode of their RFCs, which share no code with the models.

#[path = "../common/mod.rs"]
mod common;

mod codel;
mod dualpi2;
mod link;
mod pie;
mod red;
