// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Evaluation of filter expressions, without allocation.

use super::Node;
use crate::protocols::Packet;

/// The reason for no answer: a byte that decides was cut off, or a division by zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut;

/// The reason for no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The packet has no such header.
    Other,
    /// A byte was cut off, or a division by zero.
    Cut,
}

pub(super) fn node(node: &Node, packet: &Packet<'_>) -> Result<bool, Cut> {
    match node {
        Node::Everything => Ok(true),
        Node::Not(inner) => Ok(!self::node(inner, packet)?),
        Node::And(left, right) => Ok(self::node(left, packet)? && self::node(right, packet)?),
        Node::Or(left, right) => Ok(self::node(left, packet)? || self::node(right, packet)?),
        Node::Primitive(primitive) => primitive.matches(packet),
        Node::Relation(relation) => relation.matches(packet),
    }
}
