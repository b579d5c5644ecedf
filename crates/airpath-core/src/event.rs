//! Events of PDUs and frames, declared once: the log, the counters, the command line and the plots all take
//! their words from here.

use crate::pdu::{Direction, Origin, Pdu, PduId};
use crate::time::Time;

/// Declares an enumeration with a stable name and a sentence for each value.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal : $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $doc] $variant,)* }

        impl $name {
            /// Every value, in order of its number.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// Number of values.
            pub const COUNT: usize = $name::ALL.len();

            /// The word used in logs.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// Meaning of the value, in a sentence.
            pub const fn description(self) -> &'static str {
                match self { $($name::$variant => $doc,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

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
    }
}

named! {
    /// Cause of a drop.
    Cause {
        None = "": "Not a drop.",
        QueuePackets = "queue_packets": "The queue held its limit of packets.",
        QueueBytes = "queue_bytes": "The queue held its limit of bytes.",
        QueueAge = "queue_age": "The packet had been queued for longer than the limit.",
        QueueManagement = "queue_management": "Active queue management dropped the packet before the queue was full.",
        Blackout = "blackout": "The link was in a blackout.",
        ChannelError = "channel_error": "A transmission error hit the packet or one of its frames.",
        ReceiveBuffer = "receive_buffer": "The link receive buffer was full.",
        Noise = "noise": "Host chatter, filtered: neighbour discovery, router solicitation and the like.",
        BeforeStart = "before_start": "The packet arrived before the run began.",
        Malformed = "malformed": "Not an IP packet, or its lengths are inconsistent.",
        Outside = "outside": "Lost outside the model: a full TUN queue or socket buffer.",
    }
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
