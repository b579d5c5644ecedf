// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several queues in one: schedules computed by hand, classification by every key, changes, and the
//! queues that make a queue of each flow.

mod bench;
mod changes;
mod fair;
mod matching;
mod schedules;
