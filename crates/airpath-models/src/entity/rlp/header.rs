// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The headers of RLP: unnumbered frames, supervisory frames, and frames with information, which
//! supervise too.
//!
//! Source: 3GPP TS 24.022, clause 5.2.

use airpath_core::LinkFrame;

/// Unnumbered frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unnumbered {
    /// Set asynchronous balanced mode: the connection begins, or begins anew.
    Sabm,
    /// Unnumbered acknowledgement, of SABM and DISC.
    Ua,
    /// Disconnect.
    Disc,
    /// Disconnected mode: the answer of an end that takes no connection.
    Dm,
    /// Nothing to say.
    Null,
    /// Unnumbered information.
    Ui,
    /// Exchange of identification: parameters are negotiated.
    Xid,
    /// Test of the link.
    Test,
    /// The length of frames has changed.
    Remap,
}

impl Unnumbered {
    const CODES: [(Unnumbered, u16); 9] = [
        (Unnumbered::Sabm, 0b00111),
        (Unnumbered::Ua, 0b01100),
        (Unnumbered::Disc, 0b01000),
        (Unnumbered::Dm, 0b00011),
        (Unnumbered::Null, 0b01111),
        (Unnumbered::Ui, 0b00000),
        (Unnumbered::Xid, 0b10111),
        (Unnumbered::Test, 0b11100),
        (Unnumbered::Remap, 0b10001),
    ];

    fn frame(self) -> LinkFrame {
        match self {
            Unnumbered::Sabm => LinkFrame::Sabm,
            Unnumbered::Ua => LinkFrame::Ua,
            Unnumbered::Disc => LinkFrame::Disc,
            Unnumbered::Dm => LinkFrame::Dm,
            Unnumbered::Null => LinkFrame::Null,
            Unnumbered::Ui => LinkFrame::Ui,
            Unnumbered::Xid => LinkFrame::Xid,
            Unnumbered::Test => LinkFrame::Test,
            Unnumbered::Remap => LinkFrame::Remap,
        }
    }

    /// M1 to M5, M1 lowest.
    pub fn code(self) -> u16 {
        Unnumbered::CODES[self as usize].1
    }

    /// The frame of a code; none if no frame has it.
    pub fn of(code: u16) -> Option<Unnumbered> {
        Unnumbered::CODES.iter().find(|(_, other)| *other == code).map(|(kind, _)| *kind)
    }
}

/// Supervision that a numbered frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Supervision {
    /// Receive ready: frames before N(R) have arrived.
    Rr,
    /// Receive not ready: frames before N(R) have arrived, and no more may be sent.
    Rnr,
    /// Reject: frames from N(R) on are sent again.
    Rej,
    /// Selective reject: frame N(R) is sent again.
    Srej,
}

impl Supervision {
    /// S1 and S2, S1 lowest.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The supervision of a code, of which two bits count.
    pub fn of(code: u8) -> Supervision {
        [Supervision::Rr, Supervision::Rnr, Supervision::Rej, Supervision::Srej][usize::from(code & 3)]
    }
}

/// Header of a frame, but for C/R and P/F.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Body {
    /// U frame.
    Unnumbered(Unnumbered),
    /// S frame.
    Supervisory {
        /// Its supervision.
        kind: Supervision,
        /// N(R).
        nr: u16,
    },
    /// I+S frame.
    Information {
        /// Its supervision.
        kind: Supervision,
        /// N(S).
        ns: u16,
        /// N(R).
        nr: u16,
    },
}

/// Header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// C/R: true for a command, false for a response.
    pub command: bool,
    /// P/F: poll in a command, final in a response.
    pub poll_final: bool,
    /// The rest.
    pub body: Body,
}

impl Header {
    /// Its frame, in the words of the link log.
    pub fn frame(&self) -> LinkFrame {
        match self.body {
            Body::Unnumbered(kind) => kind.frame(),
            Body::Supervisory { kind, .. } => match kind {
                Supervision::Rr => LinkFrame::Rr,
                Supervision::Rnr => LinkFrame::Rnr,
                Supervision::Rej => LinkFrame::Rej,
                Supervision::Srej => LinkFrame::Srej,
            },
            Body::Information { kind, .. } => match kind {
                Supervision::Rr => LinkFrame::InformationRr,
                Supervision::Rnr => LinkFrame::InformationRnr,
                Supervision::Rej => LinkFrame::InformationRej,
                Supervision::Srej => LinkFrame::InformationSrej,
            },
        }
    }

    /// N(S), where it has one.
    pub fn n_s(&self) -> Option<u16> {
        match self.body {
            Body::Information { ns, .. } => Some(ns),
            Body::Unnumbered(_) | Body::Supervisory { .. } => None,
        }
    }

    /// N(R), where it has one.
    pub fn n_r(&self) -> Option<u16> {
        match self.body {
            Body::Supervisory { nr, .. } | Body::Information { nr, .. } => Some(nr),
            Body::Unnumbered(_) => None,
        }
    }

    /// A U frame.
    pub fn unnumbered(kind: Unnumbered, command: bool, poll_final: bool) -> Header {
        Header { command, poll_final, body: Body::Unnumbered(kind) }
    }
}
