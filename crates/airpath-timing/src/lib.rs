//! How well this machine keeps time: ways of sleeping compared, what disturbs them, and the settings
//! by which the live loop meets a bound at the least cost.
//!
//! Source: Gurtov 1999, "Technical Issues of Real-Time Network Simulation in Linux", and Kojo et al.
//! 2001, section 6.

pub mod calibration;
pub mod clocks;
pub mod conditions;
mod error;
pub mod files;
pub mod host;
pub mod line_rate;
pub mod load;
pub mod measure;
pub mod method;
pub mod pattern;
pub mod recommend;
pub mod render;
pub mod report;
pub mod series;
pub mod statistics;
pub mod technique;

pub use error::{Result, TimingError};
