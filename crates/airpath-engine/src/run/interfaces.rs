//! What somebody did to the interfaces of a live link.

use airpath_live::ports::{InterfaceChanges, Port};
use airpath_log::EndResults;

/// `ends` with what was done to the interfaces behind `ports`, the client's first.
pub fn with_changes(mut ends: EndResults, ports: &mut [Port; 2]) -> EndResults {
    for (port, end) in ports.iter_mut().zip(["client", "server"]) {
        match port.interface_changes() {
            Ok(changes) => ends.interface_changes.extend(describe(end, &changes)),
            Err(error) => {
                ends.unreadable.push(format!("whether the interface of the {end}'s end was changed ({error})"));
            }
        }
    }
    ends
}

fn describe(end: &str, changes: &InterfaceChanges) -> Vec<String> {
    let times = match changes.downs {
        0 => None,
        1 => Some("once".to_owned()),
        times => Some(format!("{times} times")),
    };
    let down = times.map(|times| format!("the interface of the {end}'s end was taken down or moved {times}"));
    let queues = changes.queues.iter().map(|queue| {
        let losses = match queue.drops {
            0 => String::new(),
            1 => " and lost 1 packet".to_owned(),
            drops => format!(" and lost {drops} packets"),
        };
        format!("a queue of the kernel ({}) stood before the interface of the {end}'s end{losses}", queue.kind)
    });
    down.into_iter().chain(queues).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_live::netlink::QueueDiscipline;

    #[test]
    fn what_was_done_is_told_and_nothing_else() {
        assert_eq!(describe("client", &InterfaceChanges::default()), Vec::<String>::new());
        let queues = vec![QueueDiscipline { kind: "tbf".into(), is_set: true, drops: 84 }];
        let told = describe("client", &InterfaceChanges { downs: 1, queues });
        assert_eq!(told[0], "the interface of the client's end was taken down or moved once");
        let queue = "a queue of the kernel (tbf) stood before the interface of the client's end and lost 84 packets";
        assert_eq!(told[1], queue);
    }
}
