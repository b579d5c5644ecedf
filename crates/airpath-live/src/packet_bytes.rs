//! Reading and rewriting packets as bytes, without any system call: headers,
//! checksums, cutting super-packets into segments.

mod classify;
mod edit;
mod headers;
mod segment;

pub use classify::{Noise, noise};
pub use edit::{complete_checksum, set_ecn, shorten};
pub use headers::{Headers, TransportHeader};
pub use segment::{ChecksumWork, SegmentHeader, Segmenter, UnsupportedSuperPacket};
