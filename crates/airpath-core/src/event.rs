// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Events of PDUs and frames, declared once: the log, the counters, the command line and the plots all take
//! their words from here.

use crate::named;
use crate::pdu::{Direction, Origin, Pdu, PduId};
use crate::time::Time;

named! {
    /// Stage of the path at which an event happens.
    Stage {
        Path = "path": "The path as a whole: its entry, its exit, its states.",
        Queue = "queue": "The input queue of a hop.",
        Entity = "entity": "The sending link entity: send buffer, framing, allocation.",
        Medium = "medium": "The medium: transmission of frames.",
        Channel = "channel": "The channel: transmission errors.",
        Receive = "receive": "The receiving link entity: receive buffer, reassembly, recovery.",
        Port = "port": "The port between the link and the kernel.",
    }
}

named! {
    /// Kind of an event.
    EventKind {
        Offered = "offered": "A PDU entered the path.",
        Enqueued = "enqueued": "A PDU entered a hop's queue.",
        Dequeued = "dequeued": "A PDU left the queue for the send buffer.",
        AllocationStarted = "allocation_started": "A PDU met an empty link; resources are being allocated.",
        FrameStarted = "frame_started": "Transmission of a frame began.",
        FrameSent = "frame_sent": "Transmission of a frame ended.",
        FrameLost = "frame_lost": "The channel lost a frame.",
        FrameDelayed = "frame_delayed": "The channel delayed a frame.",
        Damaged = "damaged": "The channel flipped bits of a PDU; the bits column counts them.",
        Truncated = "truncated": "The channel cut a PDU short; the bits column says how many are left.",
        Marked = "marked": "Queue management set congestion experienced (CE) on a PDU.",
        HeldBack = "held_back": "A PDU was held back so that later PDUs overtake it.",
        Duplicated = "duplicated": "A PDU was duplicated.",
        Passed = "passed": "A PDU left a hop for the next one.",
        Delivered = "delivered": "A PDU left the path.",
        Dropped = "dropped": "A PDU was dropped; the cause column says why.",
        StateChanged = "state_changed": "A state or a command changed parameters.",
        ParameterSet = "parameter_set": "A command set parameters during the run.",
        Generated = "generated": "A background load put a PDU into a hop.",
        Consumed = "consumed": "A PDU of a background load reached its end within the path.",
        Discarded = "discarded": "A packet was filtered before the link: host chatter, or sent before the run began.",
        FrameRepeated = "frame_repeated": "The frame whose transmission began was sent before.",
        LinkReset = "link_reset": "A link entity began its connection anew, or gave it up.",
    }
}

/// A set of kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventKinds(u32);

const _: () = assert!(EventKind::COUNT <= u32::BITS as usize, "a set has a bit for each kind");

impl EventKinds {
    /// No kind.
    pub const NONE: EventKinds = EventKinds(0);
    /// The kinds that tell of single frames, of which a cell of many resources has a hundred thousand a second.
    pub const FRAMES: EventKinds = EventKinds::of(&[
        EventKind::FrameStarted,
        EventKind::FrameSent,
        EventKind::FrameLost,
        EventKind::FrameDelayed,
        EventKind::FrameRepeated,
    ]);

    /// The set of `kinds`.
    pub const fn of(kinds: &[EventKind]) -> EventKinds {
        let (mut set, mut index) = (0, 0);
        while index < kinds.len() {
            set |= 1 << kinds[index] as u32;
            index += 1;
        }
        EventKinds(set)
    }

    /// True if `kind` is in the set.
    #[inline(always)]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }
}

named! {
    /// The group of a cause; reports count drops by it.
    CauseClass {
        None = "": "Not a drop.",
        Congestion = "congestion": "congestion: the queue was full (packets, bytes, age) or its management dropped",
        Error = "error": "transmission errors of the channel",
        Blackout = "blackout": "a blackout",
        ReceiveBuffer = "receive_buffer": "a full receive buffer of the link",
        Outside = "outside": "causes outside the model: a full socket buffer",
        NeverInside = "never_inside": "packets that were filtered before the link, which the link did not drop",
        Link = "link": "the link layer: a reset, no connection, or too late",
    }
}

named! {
    /// The shape that marks drops by one cause in every picture.
    Shape {
        None = "": "No mark.",
        TriangleDown = "triangle_down": "A triangle that points down.",
        TriangleLeft = "triangle_left": "A triangle that points to the left.",
        TriangleUp = "triangle_up": "A triangle that points up.",
        ThinDiamond = "thin_diamond": "A narrow square on its corner.",
        Diamond = "diamond": "A square on its corner.",
        Star = "star": "A star of five points.",
        Cross = "cross": "A thick cross, its bars along the diagonals.",
        Square = "square": "A square.",
        Plus = "plus": "A thick cross, its bars upright and level.",
        Circle = "circle": "A circle.",
        Pentagon = "pentagon": "A pentagon.",
        TriangleRight = "triangle_right": "A triangle that points to the right.",
        Octagon = "octagon": "An octagon.",
        FourStar = "four_star": "A star of four points.",
        ThreeStar = "three_star": "A star of three points.",
        SixStar = "six_star": "A star of six points.",
        EightStar = "eight_star": "A star of eight points.",
    }
}

named! {
    /// The colour of a mark, of those that people with any colour vision tell apart.
    Colour {
        None = "": "No mark.",
        Black = "black": "Black.",
        Orange = "orange": "Orange.",
        Sky = "sky": "Sky blue.",
        Yellow = "yellow": "Yellow.",
        Grey = "grey": "Grey.",
        LightGrey = "light_grey": "Light grey.",
    }
}

/// Declares the causes: name, class, mark and text of each beside its sentence.
macro_rules! causes {
    ($($variant:ident = $name:literal, $class:ident, $shape:ident $colour:ident, $text:literal : $doc:literal,)*) => {
        named! {
            /// Cause of a drop.
            Cause { $($variant = $name : $doc,)* }
        }

        impl Cause {
            /// The group to which it belongs.
            pub const fn class(self) -> CauseClass {
                match self { $(Cause::$variant => CauseClass::$class,)* }
            }

            /// The mark of its drops in pictures; no two causes have the same.
            pub const fn mark(self) -> (Shape, Colour) {
                match self { $(Cause::$variant => (Shape::$shape, Colour::$colour),)* }
            }

            /// A few words for legends and tables.
            pub const fn text(self) -> &'static str {
                match self { $(Cause::$variant => $text,)* }
            }
        }
    };
}

causes! {
    None = "", None, None None, "":
        "Not a drop.",
    QueuePackets = "queue_packets", Congestion, TriangleDown Orange, "queue full":
        "The queue held its limit of packets.",
    QueueBytes = "queue_bytes", Congestion, TriangleLeft Orange, "queue full (bytes)":
        "The queue held its limit of bytes.",
    QueueAge = "queue_age", Congestion, TriangleUp Yellow, "too long in the queue":
        "The packet had been queued for longer than the limit.",
    QueueManagement = "queue_management", Congestion, ThinDiamond Orange, "queue management":
        "Active queue management dropped the packet before the queue was full.",
    Blackout = "blackout", Blackout, Star Black, "blackout":
        "The link was in a blackout.",
    ChannelError = "channel_error", Error, Cross Black, "channel error":
        "A transmission error hit the packet or one of its frames.",
    ReceiveBuffer = "receive_buffer", ReceiveBuffer, Square Sky, "receive buffer full":
        "The link receive buffer was full.",
    Noise = "noise", NeverInside, Circle LightGrey, "noise":
        "Host chatter, filtered: neighbour discovery, router solicitation and the like.",
    BeforeStart = "before_start", NeverInside, Diamond LightGrey, "before start":
        "The packet arrived before the run began.",
    Malformed = "malformed", NeverInside, Pentagon LightGrey, "malformed":
        "Not an IP packet, or its lengths contradict each other.",
    Outside = "outside", Outside, Plus Grey, "outside the model":
        "Lost outside the model: a full TUN queue or socket buffer.",
    Integrity = "integrity", Error, Octagon Black, "damaged frame":
        "The link could not put the packet together, or its check sequence did not fit.",
    LinkReset = "link_reset", Link, TriangleRight Sky, "link reset":
        "The packet was under way when a link entity began its connection anew.",
    Expired = "expired", Link, ThreeStar Sky, "expired":
        "The packet had become too old to be sent, or sent again, by a link entity.",
    LinkDown = "link_down", Link, FourStar Grey, "no connection":
        "A link entity had given its connection up for good.",
    Decompression = "decompression", Error, SixStar Sky, "header not decompressed":
        "The receiving end could not rebuild a compressed header, because of an earlier loss or error.",
    TooLate = "too_late", Link, EightStar Yellow, "too late":
        "The receiving link entity had given up waiting for the packet, or for a part of it.",
}

/// One row of the event log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Model time.
    pub at: Time,
    /// The PDU concerned; 0 for none.
    pub pdu: PduId,
    /// Bits concerned: the PDU's, the frame's, or for damage the number flipped.
    pub bits: u64,
    /// Bytes in the queue after the event.
    pub queue_bytes: u64,
    /// Packets in the queue after the event.
    pub queue_packets: u32,
    /// The PDU's flow.
    pub flow: u32,
    /// The hop's index in the path; `Event::WHOLE_PATH` for the path itself.
    pub hop: u16,
    /// The state in force: an index into the path's states, 0 for the initial one.
    pub state: u16,
    /// The direction; for an event of the whole path that of the PDU.
    pub direction: Direction,
    /// Stage of the path.
    pub stage: Stage,
    /// Kind of the event.
    pub kind: EventKind,
    /// Cause of a drop.
    pub cause: Cause,
    /// Origin of the traffic.
    pub origin: Origin,
}

impl Event {
    /// The name of the state in which a run begins, whose index is 0.
    pub const INITIAL_STATE: &'static str = "initial";
    /// The hop index of events that concern the path as a whole.
    pub const WHOLE_PATH: u16 = u16::MAX;

    /// An event of the whole path about `pdu`.
    #[inline]
    pub fn of_path(at: Time, direction: Direction, kind: EventKind, cause: Cause, pdu: &Pdu, state: u16) -> Event {
        Event {
            at,
            pdu: pdu.id,
            bits: pdu.bits().get(),
            queue_bytes: 0,
            queue_packets: 0,
            flow: pdu.flow,
            hop: Event::WHOLE_PATH,
            state,
            direction,
            stage: Stage::Path,
            kind,
            cause,
            origin: pdu.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_kinds_of_frames_and_no_others() {
        for kind in EventKind::ALL.iter().copied() {
            assert_eq!(EventKinds::FRAMES.contains(kind), kind.name().starts_with("frame_"), "{kind}");
            assert!(!EventKinds::NONE.contains(kind));
        }
    }

    #[test]
    fn every_cause_has_a_class_a_text_and_a_mark_of_its_own() {
        for cause in Cause::ALL.iter().copied().filter(|cause| *cause != Cause::None) {
            assert_ne!(cause.class(), CauseClass::None, "{cause}");
            assert!(!cause.text().is_empty(), "{cause}");
            let (shape, colour) = cause.mark();
            assert!(shape != Shape::None && colour != Colour::None, "{cause}");
            let shapes = Cause::ALL.iter().filter(|other| other.mark().0 == shape).count();
            assert_eq!(shapes, 1, "{cause}: another cause has its shape, and colours alone are not enough");
        }
        for class in CauseClass::ALL {
            assert!(Cause::ALL.iter().any(|cause| cause.class() == *class), "nothing is of the class {class}");
        }
    }
}
