// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages of the kernel beside a packet (`cmsghdr`): the receive stamp, and the outer tag of a VLAN, which it
//! has taken out of the frame.

const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
const PACKET_AUXDATA: libc::c_int = 8;
const TAG_IS_VALID: u32 = 1 << 4;
const TAG_TYPE_IS_VALID: u32 = 1 << 6;
/// EtherType of the tag where the kernel does not tell (IEEE 802.1Q).
const USUAL_TAG: u16 = airpath_packet::ethernet::CUSTOMER_TAG;

/// Room for the control messages of one packet: a timespec and a `tpacket_auxdata`, each behind a header.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; 96]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; 96]);
}

/// The kernel's receive stamp among the control messages, in ns of
/// CLOCK_REALTIME.
pub(super) fn stamp(control: &[u8]) -> Option<u64> {
    const STAMP_BYTES: usize = size_of::<libc::timespec>();
    let bytes = find(control, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS).filter(|bytes| bytes.len() >= STAMP_BYTES)?;
    // SAFETY: the message is long enough to hold a timespec; an unaligned read is asked for.
    let time: libc::timespec = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The tag of the packet, as it was in the frame: EtherType, then priority and number of the VLAN.
pub(super) fn tag(control: &[u8]) -> Option<[u8; 4]> {
    // struct tpacket_auxdata: status, len, snaplen (32 bit); mac, net, vlan_tci, vlan_tpid (16 bit).
    let bytes = find(control, libc::SOL_PACKET, PACKET_AUXDATA).filter(|bytes| bytes.len() >= 20)?;
    let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    let status = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if status & TAG_IS_VALID == 0 {
        return None;
    }
    let kind = if status & TAG_TYPE_IS_VALID != 0 { half(18) } else { USUAL_TAG };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), half(16).to_be_bytes());
    Some([a, b, c, d])
}

/// The content of the first control message of this kind.
fn find(control: &[u8], level: libc::c_int, kind: libc::c_int) -> Option<&[u8]> {
    let mut rest = control;
    while rest.len() >= HEADER_BYTES {
        // SAFETY: at least a header's worth of bytes is there; unaligned reads
        // are asked for.
        let header: libc::cmsghdr = unsafe { std::ptr::read_unaligned(rest.as_ptr().cast()) };
        let length = header.cmsg_len as usize;
        if length < HEADER_BYTES || length > rest.len() {
            return None;
        }
        if header.cmsg_level == level && header.cmsg_type == kind {
            return Some(&rest[HEADER_BYTES..length]);
        }
        rest = rest.get(length.next_multiple_of(size_of::<usize>())..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: libc::c_int, kind: libc::c_int, content: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER_BYTES + content.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    #[test]
    fn garbage_instead_of_a_message_is_none() {
        for garbage in [&[][..], &[0xff; 64], &[0; 64]] {
            assert_eq!((stamp(garbage), tag(garbage)), (None, None));
        }
    }

    #[test]
    fn a_stamp_and_a_tag_are_found_beside_each_other() {
        let time = [7_i64.to_ne_bytes(), 5_i64.to_ne_bytes()].concat();
        let auxiliary = |status: u32, kind: u16| {
            let mut content = status.to_ne_bytes().to_vec();
            content.extend([0; 12]);
            content.extend(0x2064_u16.to_ne_bytes());
            content.extend(kind.to_ne_bytes());
            message(libc::SOL_PACKET, PACKET_AUXDATA, &content)
        };
        let stamped = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let both = [stamped.clone(), auxiliary(TAG_IS_VALID | TAG_TYPE_IS_VALID, 0x88a8)].concat();
        assert!(both.len() <= Control::EMPTY.0.len());
        assert_eq!((stamp(&both), tag(&both)), (Some(7_000_000_005), Some([0x88, 0xa8, 0x20, 0x64])));
        assert_eq!(tag(&auxiliary(TAG_IS_VALID, 0)), Some([0x81, 0, 0x20, 0x64]));
        assert_eq!((tag(&auxiliary(0, 0)), tag(&stamped)), (None, None));
    }
}
