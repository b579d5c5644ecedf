// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The automaton for option negotiation of RFC 1661, section 4.1. Its event RXR changes no
//! state, and only LCP knows echoes: `endpoint.rs` answers them.

/// State of a control protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The layer below is down, and nobody wants this one.
    Initial,
    /// The layer below is down, and this one is wanted.
    Starting,
    /// The layer below is up, and nobody wants this one.
    Closed,
    /// Ended by the peer, or given up; a request of the peer starts it again.
    Stopped,
    /// A Terminate-Request is out, and nobody wants this layer.
    Closing,
    /// A Terminate-Request is out or the peer has ended.
    Stopping,
    /// A Configure-Request is out.
    ReqSent,
    /// The peer has acknowledged ours.
    AckRcvd,
    /// The peer's is acknowledged.
    AckSent,
    /// Both are acknowledged.
    Opened,
}

/// Event of the automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Up,
    Down,
    Open,
    Close,
    /// Timeout, with the restart counter above zero.
    TimeoutMore,
    /// Timeout, with the restart counter expired.
    TimeoutLast,
    GoodRequest,
    BadRequest,
    Ack,
    NakOrReject,
    TerminateRequest,
    TerminateAck,
    UnknownCode,
    PermittedReject,
    CatastrophicReject,
}

/// Action that the automaton asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    ThisLayerUp,
    ThisLayerDown,
    ThisLayerStarted,
    ThisLayerFinished,
    InitialiseCounter,
    ZeroCounter,
    SendRequest,
    SendAck,
    SendNakOrReject,
    SendTerminateRequest,
    SendTerminateAck,
    SendCodeReject,
}

/// Actions and next state; `None` for an event that cannot be in that state.
pub(crate) fn step(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use Action::{
        InitialiseCounter as Irc, SendAck as Sca, SendCodeReject as Scj, SendNakOrReject as Scn, SendRequest as Scr,
        SendTerminateAck as Sta, SendTerminateRequest as Str, ThisLayerDown as Tld, ThisLayerFinished as Tlf,
        ThisLayerStarted as Tls, ThisLayerUp as Tlu, ZeroCounter as Zrc,
    };
    use State::*;
    let (actions, next): (&'static [Action], State) = match (event, state) {
        (Event::Up, Initial) => (&[], Closed),
        (Event::Up, Starting) => (&[Irc, Scr], ReqSent),
        (Event::Up, _) => return None,

        (Event::Down, Closed | Closing) => (&[], Initial),
        (Event::Down, Stopped) => (&[Tls], Starting),
        (Event::Down, Stopping | ReqSent | AckRcvd | AckSent) => (&[], Starting),
        (Event::Down, Opened) => (&[Tld], Starting),
        (Event::Down, Initial | Starting) => return None,

        (Event::Open, Initial) => (&[Tls], Starting),
        (Event::Open, Closed) => (&[Irc, Scr], ReqSent),
        (Event::Open, Closing) => (&[], Stopping),
        (Event::Open, _) => (&[], state),

        (Event::Close, Initial) => (&[], Initial),
        (Event::Close, Starting) => (&[Tlf], Initial),
        (Event::Close, Closed | Stopped) => (&[], Closed),
        (Event::Close, Closing | Stopping) => (&[], Closing),
        (Event::Close, ReqSent | AckRcvd | AckSent) => (&[Irc, Str], Closing),
        (Event::Close, Opened) => (&[Tld, Irc, Str], Closing),

        // Nothing else can happen while the layer below is down.
        (_, Initial | Starting) => return None,

        (Event::TimeoutMore, Closing | Stopping) => (&[Str], state),
        (Event::TimeoutMore, ReqSent | AckRcvd) => (&[Scr], ReqSent),
        (Event::TimeoutMore, AckSent) => (&[Scr], AckSent),
        (Event::TimeoutLast, Closing) => (&[Tlf], Closed),
        (Event::TimeoutLast, Stopping | ReqSent | AckRcvd | AckSent) => (&[Tlf], Stopped),
        (Event::TimeoutMore | Event::TimeoutLast, _) => return None,

        (Event::GoodRequest | Event::BadRequest | Event::Ack | Event::NakOrReject, Closed) => (&[Sta], Closed),
        (Event::GoodRequest, Stopped) => (&[Irc, Scr, Sca], AckSent),
        (Event::BadRequest, Stopped) => (&[Irc, Scr, Scn], ReqSent),
        (Event::Ack | Event::NakOrReject, Stopped) => (&[Sta], Stopped),
        (Event::GoodRequest | Event::BadRequest | Event::Ack | Event::NakOrReject, Closing | Stopping) => (&[], state),
        (Event::GoodRequest, ReqSent | AckSent) => (&[Sca], AckSent),
        (Event::GoodRequest, AckRcvd) => (&[Sca, Tlu], Opened),
        (Event::GoodRequest, Opened) => (&[Tld, Scr, Sca], AckSent),
        (Event::BadRequest, ReqSent | AckSent) => (&[Scn], ReqSent),
        (Event::BadRequest, AckRcvd) => (&[Scn], AckRcvd),
        (Event::BadRequest, Opened) => (&[Tld, Scr, Scn], ReqSent),
        (Event::Ack, ReqSent) => (&[Irc], AckRcvd),
        (Event::Ack, AckSent) => (&[Irc, Tlu], Opened),
        (Event::NakOrReject, ReqSent) => (&[Irc, Scr], ReqSent),
        (Event::NakOrReject, AckSent) => (&[Irc, Scr], AckSent),
        (Event::Ack | Event::NakOrReject, AckRcvd) => (&[Scr], ReqSent),
        (Event::Ack | Event::NakOrReject, Opened) => (&[Tld, Scr], ReqSent),

        (Event::TerminateRequest, Closed | Stopped | Closing | Stopping) => (&[Sta], state),
        (Event::TerminateRequest, ReqSent | AckRcvd | AckSent) => (&[Sta], ReqSent),
        (Event::TerminateRequest, Opened) => (&[Tld, Zrc, Sta], Stopping),
        (Event::TerminateAck, Closing) => (&[Tlf], Closed),
        (Event::TerminateAck, Stopping) => (&[Tlf], Stopped),
        (Event::TerminateAck, AckRcvd) => (&[], ReqSent),
        (Event::TerminateAck, Opened) => (&[Tld, Scr], ReqSent),
        (Event::TerminateAck, _) => (&[], state),

        (Event::UnknownCode, _) => (&[Scj], state),
        (Event::PermittedReject, AckRcvd) => (&[], ReqSent),
        (Event::PermittedReject, _) => (&[], state),
        (Event::CatastrophicReject, Closed | Closing) => (&[Tlf], Closed),
        (Event::CatastrophicReject, Opened) => (&[Tld, Irc, Str], Stopping),
        (Event::CatastrophicReject, _) => (&[Tlf], Stopped),
    };
    Some((actions, next))
}

#[cfg(test)]
mod tests {
    use super::{Action::*, Event, State::*, step};

    #[test]
    fn rows_of_the_table_are_those_of_the_rfc() {
        assert_eq!(
            step(Stopped, Event::GoodRequest).unwrap(),
            (&[InitialiseCounter, SendRequest, SendAck][..], AckSent)
        );
        assert_eq!(step(Opened, Event::TerminateRequest).unwrap().1, Stopping);
        assert_eq!(step(AckSent, Event::Ack).unwrap(), (&[InitialiseCounter, ThisLayerUp][..], Opened));
        assert_eq!(step(Closing, Event::TimeoutLast).unwrap(), (&[ThisLayerFinished][..], Closed));
        assert_eq!(step(Opened, Event::TimeoutMore), None);
        assert_eq!(step(Starting, Event::Ack), None);
    }

    /// A layer that is left or entered says so, whatever the way.
    #[test]
    fn opened_is_told_of_when_it_begins_and_ends() {
        let states = [Initial, Starting, Closed, Stopped, Closing, Stopping, ReqSent, AckRcvd, AckSent, Opened];
        let events = [
            Event::Up,
            Event::Down,
            Event::Open,
            Event::Close,
            Event::TimeoutMore,
            Event::TimeoutLast,
            Event::GoodRequest,
            Event::BadRequest,
            Event::Ack,
            Event::NakOrReject,
            Event::TerminateRequest,
            Event::TerminateAck,
            Event::UnknownCode,
            Event::PermittedReject,
            Event::CatastrophicReject,
        ];
        for state in states {
            for event in events {
                let Some((actions, next)) = step(state, event) else { continue };
                assert_eq!(actions.contains(&ThisLayerUp), state != Opened && next == Opened, "{state:?} {event:?}");
                assert_eq!(actions.contains(&ThisLayerDown), state == Opened && next != Opened, "{state:?} {event:?}");
            }
        }
    }
}
