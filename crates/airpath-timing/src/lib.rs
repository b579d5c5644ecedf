//! How well this machine keeps time: ways of sleeping compared, what disturbs them, and the settings
//! by which the live loop meets a bound at the least cost.
//!
//! Source: Gurtov 1999, "Technical Issues of Real-Time Network Simulation in Linux", and Kojo et al.
//! 2001, section 6.

pub mod calibration;
pub mod report;
