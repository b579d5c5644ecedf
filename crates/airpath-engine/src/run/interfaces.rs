// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of a live link's interfaces by others.

use std::io;

use airpath_core::End;
use airpath_live::link_watch::{LinkChanges, LinkWatch};
use airpath_live::ports::{InterfaceChanges, Port};
use airpath_log::EndResults;

use super::lines::Lines;

/// Changes of the interfaces, the client's first; an error for each where nobody could watch.
pub fn news(watch: io::Result<LinkWatch>, ends: &[String]) -> Vec<io::Result<LinkChanges>> {
    match watch {
        Ok(watch) => watch.finish(),
        Err(error) => ends.iter().map(|_| Err(io::Error::new(error.kind(), error.to_string()))).collect(),
    }
}

/// `news` of the interfaces there are, with nothing at the places of serial lines: as many as there are ports.
pub fn of_ports(news: Vec<io::Result<LinkChanges>>, lines: &Lines) -> Vec<io::Result<LinkChanges>> {
    let mut news = news.into_iter();
    match lines {
        Lines::None => news.collect(),
        Lines::Ppp(options) => [End::Client, End::Server]
            .into_iter()
            .map(|end| if end == options.end { None } else { news.next() })
            .map(|news| news.unwrap_or_else(|| Ok(LinkChanges::default())))
            .collect(),
        Lines::Relay { .. } => vec![Ok(LinkChanges::default()), Ok(LinkChanges::default())],
    }
}

/// `ends` with what was done to the interfaces behind `ports`, which have one each, in the same order: what their `news` tell, and
/// what is left of it at the end.
pub fn with_changes(
    mut results: EndResults,
    ends: &[String],
    news: Vec<io::Result<LinkChanges>>,
    ports: &mut [Port],
) -> EndResults {
    let own = ports.iter_mut().filter(|port| port.joined().is_none());
    for ((port, news), end) in own.zip(news).zip(ends) {
        if port.is_line() {
            let downs = port.interface_changes().map_or(0, |changes| changes.downs);
            if downs > 0 {
                results.interface_changes.push(format!("the serial line of the {end} went down {}", often(downs)));
            }
            continue;
        }
        let news = news.unwrap_or_else(|error| {
            results.unreadable.push(format!("some changes of the interface at the {end} ({error})"));
            LinkChanges::default()
        });
        match port.interface_changes() {
            Ok(changes) => results.interface_changes.extend(describe(end, &news, &changes)),
            Err(error) => {
                results.interface_changes.extend(describe(end, &news, &InterfaceChanges::default()));
                results.unreadable.push(format!("changes of the interface at the {end} ({error})"));
            }
        }
    }
    results
}

/// Reason for a vanished port, as far as the news tell; empty where they do not.
pub fn why_gone(ends: &[String], news: &[io::Result<LinkChanges>]) -> String {
    let told = || news.iter().zip(ends).filter_map(|(news, end)| Some((news.as_ref().ok()?, end)));
    // The engine's own interfaces go with its loop: what was moved is the cause.
    let has_moved = told().any(|(news, _)| news.moved);
    told()
        .filter(|(news, _)| news.moved || !has_moved)
        .flat_map(|(news, end)| describe(end, news, &InterfaceChanges::default()))
        .collect::<Vec<_>>()
        .join("; ")
}

fn often(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    }
}

fn describe(end: &str, news: &LinkChanges, changes: &InterfaceChanges) -> Vec<String> {
    let interface = format!("the interface of the {end}");
    let gone = [(news.moved, "moved to another network namespace"), (news.deleted, "deleted")];
    let gone = gone.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| format!("{interface} was {what}"));
    let mut told: Vec<String> = gone.collect();
    // The port knows of a loss of its carrier only, which all of these bring about.
    if news.downs > 0 {
        told.push(format!("{interface} was taken down {}", often(news.downs)));
    } else if changes.downs > 0 && told.is_empty() {
        told.push(format!("{interface} was taken down or moved {}", often(changes.downs)));
    }
    if !news.addresses_removed.is_empty() {
        let addresses = if news.addresses_removed.len() == 1 { "address" } else { "addresses" };
        told.push(format!("{interface} lost its {addresses} {}", news.addresses_removed.join(" and ")));
    }
    let removed = news.queues_set.iter().filter(|kind| changes.queues.iter().all(|queue| queue.kind != **kind));
    told.extend(
        removed.map(|kind| format!("a kernel queue ({kind}) was attached to {interface} and removed before the end")),
    );
    let queues = changes.queues.iter().map(|queue| {
        let losses = match queue.drops {
            0 => String::new(),
            1 => " and lost 1 packet".to_owned(),
            drops => format!(" and lost {drops} packets"),
        };
        format!("a kernel queue ({}) was attached to {interface}{losses}", queue.kind)
    });
    told.extend(queues);
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_live::netlink::QueueDiscipline;

    #[test]
    fn what_was_done_is_told_and_nothing_else() {
        assert_eq!(
            describe("client's end", &LinkChanges::default(), &InterfaceChanges::default()),
            Vec::<String>::new()
        );
        let queues = vec![QueueDiscipline { kind: "tbf".into(), is_set: true, drops: 84 }];
        let left = InterfaceChanges { downs: 1, queues };
        let told = describe("client's end", &LinkChanges::default(), &left);
        assert_eq!(told[0], "the interface of the client's end was taken down or moved once");
        let queue = "a kernel queue (tbf) was attached to the interface of the client's end and lost 84 packets";
        assert_eq!(told[1], queue);
        // What stands at the end is told once.
        let news = LinkChanges { queues_set: vec!["tbf".into()], downs: 2, ..LinkChanges::default() };
        let told = describe("client's end", &news, &left);
        assert_eq!(told, ["the interface of the client's end was taken down 2 times", queue]);
    }

    #[test]
    fn what_was_undone_before_the_end_is_told_by_name() {
        let addresses_removed = vec!["10.77.0.1".into(), "fd00::1".into()];
        let news = LinkChanges { addresses_removed, queues_set: vec!["netem".into()], ..LinkChanges::default() };
        let told = describe("server's end", &news, &InterfaceChanges::default());
        assert_eq!(told[0], "the interface of the server's end lost its addresses 10.77.0.1 and fd00::1");
        let queue = "a kernel queue (netem) was attached to the interface of the server's end and removed before the \
            end";
        assert_eq!(told[1], queue);
        let moved = LinkChanges { moved: true, ..LinkChanges::default() };
        let left = InterfaceChanges { downs: 1, ..InterfaceChanges::default() };
        let text = "the interface of the client's end was moved to another network namespace";
        assert_eq!(describe("client's end", &moved, &left), [text]);
        let ends = ["client's end".to_owned(), "server's end".to_owned()];
        assert_eq!(why_gone(&ends, &[Ok(moved), Ok(LinkChanges::default())]), text);
        assert_eq!(why_gone(&ends, &[Err(io::Error::other("x")), Ok(LinkChanges::default())]), "");
    }
}
