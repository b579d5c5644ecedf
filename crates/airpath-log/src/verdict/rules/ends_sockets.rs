// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses in the sockets of the ends: the link delivered these packets, and no program ever saw them.

use super::super::share::by_packets;
use super::super::{Code, Grade, Measurements, Reason};
use crate::show;
use crate::verdict::ends::SocketLosses;

/// Both ends by name; others may use the network of the second.
fn ends(measured: &Measurements) -> [(&'static str, &SocketLosses); 2] {
    let server = if measured.ends.server_end_is_shared {
        "the server's end (a network that others use as well)"
    } else {
        "the server's end"
    };
    [("the client's end", &measured.ends.client_sockets), (server, &measured.ends.server_sockets)]
}

pub(super) fn datagrams(measured: &Measurements) -> Vec<Reason> {
    let reason = |(end, losses): (&str, &SocketLosses)| {
        let (lost, all) = (losses.datagrams(), losses.udp_received + losses.udp_sent + losses.datagrams());
        if lost == 0 {
            return None;
        }
        let causes = [
            (losses.udp_receive_buffer, "receive buffer full"),
            (losses.udp_send_buffer, "send errors"),
            (losses.udp_memory, "no memory"),
            (losses.udp_other, "refused"),
        ];
        let causes: Vec<String> = causes
            .iter()
            .filter(|cause| cause.0 > 0)
            .map(|(count, cause)| format!("{cause} {}", show::count(*count)))
            .collect();
        let what = format!(
            "{} of {} ({}) were lost in sockets at {end}: {}",
            show::count(lost),
            show::counted(all, "datagram"),
            show::percent(lost, all),
            causes.join(", ")
        );
        let hint = "make the program read faster, use a larger SO_RCVBUF (limit: net.core.rmem_max), or send smaller \
            bursts";
        Some(Reason::new(by_packets(lost, all), Code::SocketLosses, what, hint))
    };
    ends(measured).into_iter().filter_map(reason).collect()
}

pub(super) fn listeners(measured: &Measurements) -> Vec<Reason> {
    let reason = |(end, losses): (&str, &SocketLosses)| {
        (losses.listen_drops > 0).then(|| {
            let requests = show::counted(losses.listen_drops, "connection request");
            let what = format!("{requests} dropped at {end}: the accept queue of a listening socket was full");
            let hint = "make the program accept faster, or use a larger listen backlog (limit: net.core.somaxconn)";
            Reason::new(Grade::Suspect, Code::ListenDrops, what, hint)
        })
    };
    ends(measured).into_iter().filter_map(reason).collect()
}

/// TCP sends again what was dropped, so that the share says little.
pub(super) fn segments(measured: &Measurements) -> Vec<Reason> {
    let reason = |(end, losses): (&str, &SocketLosses)| {
        (losses.tcp_receive_drops > 0).then(|| {
            let what = format!(
                "TCP discarded {} of {} at full receive buffers of {end}",
                show::count(losses.tcp_receive_drops),
                show::counted(losses.tcp_received, "segment")
            );
            let hint = "make the program read faster, or use larger TCP buffers (net.ipv4.tcp_rmem)";
            Reason::new(Grade::Suspect, Code::TcpReceiveDrops, what, hint)
        })
    };
    ends(measured).into_iter().filter_map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::verdict::ends::EndResults;

    fn at_server(losses: SocketLosses) -> Measurements {
        let ends = EndResults { server_sockets: losses, ..EndResults::default() };
        Measurements { ends, ..Measurements::default() }
    }

    #[test]
    fn datagrams_that_no_program_saw_are_lost_outside_the_model() {
        let losses = SocketLosses { udp_received: 183, udp_receive_buffer: 117, ..SocketLosses::default() };
        let verdict = judge(&at_server(losses));
        assert_eq!((verdict.grade, verdict.reasons[0].code.as_str()), (Grade::Invalid, "socket_losses"));
        let what = &verdict.reasons[0].what;
        let expected = "117 of 300 datagrams (39 %) were lost in sockets at the server's end: receive buffer full 117";
        assert_eq!(what, expected);
        let few = SocketLosses { udp_received: 10_000, udp_memory: 2, ..SocketLosses::default() };
        assert_eq!(judge(&at_server(few)).grade, Grade::Suspect);
    }

    #[test]
    fn full_listening_queues_and_drops_of_tcp_are_suspect_and_prunes_are_only_told() {
        let losses = SocketLosses { listen_drops: 3, tcp_receive_drops: 1, tcp_received: 9, ..SocketLosses::default() };
        let verdict = judge(&at_server(losses));
        let codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!((verdict.grade, codes), (Grade::Suspect, vec!["listen_drops", "tcp_receive_drops"]));
        let told = SocketLosses { tcp_prunes: 5, tcp_zero_window_drops: 2, ..SocketLosses::default() };
        assert_eq!(judge(&at_server(told)).grade, Grade::Trusted);
    }

    #[test]
    fn a_network_that_others_use_is_called_so() {
        let mut measured = at_server(SocketLosses { udp_memory: 1, ..SocketLosses::default() });
        measured.ends.server_end_is_shared = true;
        assert!(judge(&measured).reasons[0].what.contains("(a network that others use as well)"));
    }
}
