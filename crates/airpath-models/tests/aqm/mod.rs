// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Disciplines with active queue management, compared packet by packet with naïve ports of the
//! pseudocode of their RFCs, which share no code with the models.

mod codel;
mod dualpi2;
mod link;
mod pie;
mod red;
