//! Reading and rewriting packets as bytes, without any system call: headers,
//! checksums, cutting super-packets into segments.

mod classify;
mod edit;
mod headers;
mod segment;

pub use classify::{Noise, noise};
pub use edit::{ECN_EDIT_BYTES, complete_checksum, ecn_of, set_ecn, shorten};
pub use headers::{Headers, TransportHeader, flow_number, tcp_flow};
pub use segment::{ChecksumWork, SegmentHeader, Segmenter, UnsupportedSuperPacket};

#[cfg(test)]
pub(crate) use segment::tests::{naive_check, tcp_packet};
