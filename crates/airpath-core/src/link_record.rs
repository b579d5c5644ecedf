// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames and state of link entities that have a protocol of their own, for the link log.

use crate::named;
use crate::pdu::{Direction, PduId};
use crate::time::Time;

named! {
    /// Kind of a record of the link log.
    LinkEvent {
        Sent = "sent": "The transmission of a frame began.",
        Repeated = "repeated": "The transmission of a frame began whose information was sent before.",
        Received = "received": "A frame arrived whole.",
        Damaged = "damaged": "A frame arrived with errors, or would have arrived.",
        Connected = "connected": "The connection began.",
        Reset = "reset": "The connection began anew; what was under way is lost.",
        Disconnected = "disconnected": "The connection was given up.",
    }
}

named! {
    /// Frame of a link protocol.
    LinkFrame {
        None = "": "No frame.",
        Sabm = "SABM": "Set asynchronous balanced mode.",
        Ua = "UA": "Unnumbered acknowledgement.",
        Disc = "DISC": "Disconnect.",
        Dm = "DM": "Disconnected mode.",
        Null = "NULL": "Nothing to say.",
        Ui = "UI": "Unnumbered information.",
        Xid = "XID": "Exchange of identification.",
        Test = "TEST": "Test of the link.",
        Remap = "REMAP": "Change of the length of frames.",
        Rr = "RR": "Receive ready.",
        Rnr = "RNR": "Receive not ready.",
        Rej = "REJ": "Reject.",
        Srej = "SREJ": "Selective reject.",
        InformationRr = "I+RR": "Information and receive ready.",
        InformationRnr = "I+RNR": "Information and receive not ready.",
        InformationRej = "I+REJ": "Information and reject.",
        InformationSrej = "I+SREJ": "Information and selective reject.",
        Block = "block": "Radio block or frame of a bearer whose frames are all alike.",
        RlcData = "data": "Radio block with RLC data.",
        AckNack = "ACK/NACK": "Packet Ack/Nack: the blocks that have been received.",
        ResourceRequest = "RESOURCE REQUEST": "Packet Resource Request: the mobile asks for an uplink flow.",
        UplinkAssignment = "UL ASSIGNMENT": "Packet Uplink Assignment.",
        DownlinkAssignment = "DL ASSIGNMENT": "Packet Downlink Assignment.",
        ControlAcknowledgement = "CONTROL ACK": "Packet Control Acknowledgement.",
        Status = "STATUS": "STATUS PDU of RLC: the packets that have been received.",
    }
}

/// Variables of a link protocol, each none where the protocol has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkVariables {
    /// V(S): number of the next new information.
    pub v_s: Option<u16>,
    /// V(A): number of the oldest information that is not acknowledged.
    pub v_a: Option<u16>,
    /// V(R): number of the next information to deliver.
    pub v_r: Option<u16>,
    /// Frames sent and not acknowledged.
    pub outstanding: Option<u16>,
    /// Times that the present command or poll has been sent.
    pub attempts: Option<u16>,
    /// Time at which the acknowledgement timer expires.
    pub timer: Option<Time>,
}

/// One row of the link log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRecord {
    /// Model time.
    pub at: Time,
    /// The first packet in the frame; 0 for none.
    pub pdu: PduId,
    /// The hop's index in the path.
    pub hop: u16,
    /// The direction in which the entity sends: that of its end.
    pub sends: Direction,
    /// Kind of the record.
    pub event: LinkEvent,
    /// Frame.
    pub frame: LinkFrame,
    /// True if the frame is a command, false if it is a response.
    pub command: Option<bool>,
    /// The poll or final bit.
    pub poll_final: Option<bool>,
    /// N(S).
    pub n_s: Option<u16>,
    /// N(R).
    pub n_r: Option<u16>,
    /// Reed-Solomon blocks of the frame.
    pub blocks: Option<u8>,
    /// Parity bytes in each of them.
    pub parity: Option<u8>,
    /// Variables of the entity, behind the event.
    pub variables: LinkVariables,
}

impl LinkRecord {
    /// A record without a frame, whose time and place are still to be given.
    pub fn new(sends: Direction, event: LinkEvent) -> LinkRecord {
        LinkRecord {
            at: Time::ZERO,
            pdu: 0,
            hop: 0,
            sends,
            event,
            frame: LinkFrame::None,
            command: None,
            poll_final: None,
            n_s: None,
            n_r: None,
            blocks: None,
            parity: None,
            variables: LinkVariables::default(),
        }
    }
}
