// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP/IP header compression: octets of the line by hand, flows and losses against a second reading of RFC 1144, and
//! what it does over links.

mod flows;
mod hand;
mod links;

mod reference;
