// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The words of `tcp.arrow`.

use airpath_core::End;

/// A value that is written as one of a few words.
pub(crate) trait Word: Copy + 'static {
    /// All values, in the order of the dictionary.
    const ALL: &'static [Self];
    /// The word of this one.
    fn name(self) -> &'static str;
}

macro_rules! words {
    ($(#[$doc:meta])+ $type:ident { $($(#[$variant_doc:meta])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
        pub enum $type {
            $($(#[$variant_doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$variant),+];

            /// The word for it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }
        }

        impl Word for $type {
            const ALL: &'static [$type] = $type::ALL;
            fn name(self) -> &'static str {
                $type::name(self)
            }
        }
    };
}

words! {
    /// Source of the information about a socket in the kernel.
    Source {
        /// It was asked.
        Sample = "sample",
        /// The socket was closed, and these are its last values.
        Closed = "closed",
        /// A packet of the peer was taken in (tracepoint `tcp_probe`).
        Acknowledgement = "ack",
    }
}

words! {
    /// The state of a TCP socket (RFC 9293), in the kernel's order.
    SocketState {
        /// Connected.
        Established = "established",
        /// SYN sent.
        SynSent = "syn_sent",
        /// SYN received.
        SynReceived = "syn_received",
        /// Closed here, FIN not acknowledged.
        FinWait1 = "fin_wait_1",
        /// Closed here, waiting for the peer's FIN.
        FinWait2 = "fin_wait_2",
        /// Both closed, waiting for late segments.
        TimeWait = "time_wait",
        /// No connection any more.
        Closed = "closed",
        /// Closed by the peer.
        CloseWait = "close_wait",
        /// Both closed, FIN not acknowledged.
        LastAck = "last_ack",
        /// Waiting for connections.
        Listen = "listen",
        /// Both closed at once.
        Closing = "closing",
    }
}

words! {
    /// The state of a sender's congestion control, in the kernel's order.
    CongestionState {
        /// Nothing unusual.
        Open = "open",
        /// Duplicate or selective acknowledgements, nothing taken for lost yet.
        Disorder = "disorder",
        /// Reducing the window on congestion that was signalled.
        Cwr = "cwr",
        /// Fast recovery.
        Recovery = "recovery",
        /// The retransmission timeout has expired.
        Loss = "loss",
    }
}

impl SocketState {
    /// The state by the kernel's number (`TCP_ESTABLISHED` is 1).
    pub fn from_kernel(number: u8) -> Option<SocketState> {
        SocketState::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

impl CongestionState {
    /// The state by the kernel's number (`TCP_CA_Open` is 0).
    pub fn from_kernel(number: u8) -> Option<CongestionState> {
        CongestionState::ALL.get(usize::from(number)).copied()
    }
}

impl Word for End {
    const ALL: &'static [End] = &End::ALL;
    fn name(self) -> &'static str {
        End::name(self)
    }
}
