// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Work on many links at once. What the kernel does for a link (namespaces, interfaces, sockets to be closed) is mostly
//! waiting, for other processors and for threads to be scheduled; several threads wait at the same time.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::namespaces;

/// Maximum number of threads: beyond it the kernel's locks are what is waited for.
const THREADS: usize = 16;

/// Results of `work` on each of `items`, with its number, in their order.
pub fn map<T, R>(items: Vec<T>, work: impl Fn(usize, T) -> R + Sync) -> Vec<R>
where
    T: Send,
    R: Send,
{
    let helpers = items.len().saturating_sub(1).min(THREADS - 1);
    let left = Mutex::new(items.into_iter().enumerate());
    let take = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let some = || {
        let mut done = Vec::new();
        while let Some((number, item)) = take() {
            done.push((number, work(number, item)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let builder = || thread::Builder::new().name("links".into());
        let helper = || {
            namespaces::roam();
            some()
        };
        // What a thread that cannot be had would have done is left to the others.
        let others: Vec<_> = (0..helpers).filter_map(|_| builder().spawn_scoped(scope, helper).ok()).collect();
        let mut done = some();
        done.extend(others.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))));
        done
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let squares = map((0..100_u64).collect(), |number, item| {
            assert_eq!(number as u64, item);
            thread::sleep(std::time::Duration::from_micros(100 - item));
            item * item
        });
        assert_eq!(squares, (0..100).map(|item| item * item).collect::<Vec<_>>());
        assert!(map(Vec::<u8>::new(), |_, item| item).is_empty());
        assert_eq!(map(vec![7], |_, item| item), [7]);
    }

    #[test]
    fn they_wait_at_the_same_time() {
        let together = std::sync::Barrier::new(2);
        // Each of the two waits for the other.
        map(vec![(); 2], |_, ()| together.wait());
    }
}
