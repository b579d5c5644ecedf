// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Language of the engines of a run on several hosts: whatever is understood says the same when it is said
//! again.

use airpath_core::{Credit, Direction};
use airpath_engine::inside::{Counts, Frame, Tally, Word, parse_frame, read_frame, skip_to_greeting};
use airpath_live::ports::credit::JoinedCredit;
use airpath_live::ports::joined::{JoinedPacket, note_receipt};

/// Number of frames of an input.
const FRAMES: usize = 256;

/// The seeds: one of each kind of frame, behind what a login shell prints.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let framed = |frame: &[u8]| [&(frame.len() as u32).to_le_bytes(), frame].concat();
    let words = [
        Word::Hello { protocol: 1, airpath_version: "1.0".into(), clock_identity: "7".into() },
        Word::Told { number: 1, receive_ns: 2, transmit_ns: 3, ahead_ns: -4 },
        Word::Setup {
            host: "a".into(),
            number: 1,
            scenario: "b".into(),
            arguments: vec!["c".into()],
            records: true,
            files: 1,
            before: Default::default(),
            behind: None,
        },
        Word::File { name: "x".into(), bytes: 3 },
        Word::Ask { number: 1, at_ns: None, checks: false, request: Default::default() },
        Word::Stop {},
    ];
    let mut talk = b"Last login\n\nairpath-remote-hop\n".to_vec();
    words.iter().for_each(|word| talk.extend(framed(&word.to_frame())));
    talk.extend(framed(b"\x02bytes of a file"));
    talk.extend(framed(b"\xff255"));
    let mut packet = JoinedPacket::header(&Default::default(), Direction::Uplink, 5).unwrap_or_default();
    packet.extend_from_slice(&[0x45; 28]);
    talk.extend(framed(&packet));
    let credit = JoinedCredit { direction: Direction::Downlink, received_realtime_ns: 0, credit: Credit::UNLIMITED };
    talk.extend(framed(&credit.to_bytes()));
    let counts = Counts { direction: Direction::Uplink, packets: 7, bytes: 700 };
    talk.extend(framed(&Tally::Sent(counts).to_bytes()));
    talk.extend(framed(&Tally::Lost(counts).to_bytes()));
    vec![("talk".into(), talk.clone()), ("frames".into(), talk[31..].to_vec())]
}

pub fn run(input: &[u8]) {
    let mut reader = input;
    if !matches!(skip_to_greeting(&mut reader), Ok(None)) {
        reader = input;
    }
    for _ in 0..FRAMES {
        let Ok(Some(mut bytes)) = read_frame(&mut reader) else { break };
        match parse_frame(&bytes) {
            Ok(Frame::Word(word)) => {
                // Numbers with a fraction may differ in their last digit.
                assert!(matches!(parse_frame(&word.to_frame()), Ok(Frame::Word(_))), "{word:?}");
            }
            Ok(Frame::Packet(packet)) => {
                let again = JoinedPacket::header(&packet.journey, packet.direction, packet.sent_realtime_ns);
                let mut again = again.expect("it was told");
                again.extend_from_slice(packet.bytes);
                note_receipt(&mut again, packet.received_realtime_ns);
                assert_eq!(JoinedPacket::read(&again), Some(packet));
            }
            Ok(Frame::Credit(credit)) => assert_eq!(JoinedCredit::read(&credit.to_bytes()), Some(credit)),
            Ok(Frame::Tally(tally)) => assert_eq!(Tally::read(&tally.to_bytes()), Some(tally)),
            Ok(Frame::Chunk(_) | Frame::Status(_)) => {}
            Err(what) => assert!(!what.is_empty()),
        }
        note_receipt(&mut bytes, 7);
    }
}
