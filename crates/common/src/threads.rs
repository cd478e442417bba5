//! Work shared among the processors of a machine.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The results of `work` for all items, in their order, on at most `threads` threads. Each thread
/// takes the next item after finishing one.
pub fn each<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let taken = AtomicUsize::new(0);
    let share = || -> Vec<(usize, R)> {
        let indices = std::iter::repeat_with(|| taken.fetch_add(1, Ordering::Relaxed));
        indices.map_while(|index| Some((index, work(items.get(index)?)))).collect()
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut done = share();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Calls `work` with runs of whole rows of `width` items and the number of their first row, on at
/// most `threads` threads. Every run except the last has at least `least` rows.
pub fn rows<T: Send>(
    items: &mut [T],
    width: usize,
    threads: usize,
    least: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let count = items.len() / width.max(1);
    let share = count.div_ceil(threads.max(1)).max(least).max(1);
    if share >= count {
        // Even a scope without threads takes some time.
        return work(0, items);
    }
    let mut runs = (0..).step_by(share).zip(items.chunks_mut(share * width.max(1)));
    let Some((first, own)) = runs.next() else { return };
    thread::scope(|scope| {
        for (first, run) in runs {
            let work = &work;
            scope.spawn(move || work(first, run));
        }
        work(first, own);
    });
}

/// The parallelism of the machine, as determined by the first call; 1 if unknown.
pub fn available() -> usize {
    // The system is asked once: on Linux the answer is in files.
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<usize> = (0..count).collect();
            for threads in 0..4 {
                let found = each(&items, threads, |item| item * 3);
                assert_eq!(found, (0..count).map(|item| item * 3).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_row_is_worked_on_once() {
        for (count, width, threads, least) in
            [(0, 3, 2, 1), (1, 3, 2, 1), (10, 3, 4, 4), (1000, 2, 3, 1), (1000, 2, 0, 1), (1000, 1, 2, 2000)]
        {
            let mut items = vec![0; count * width];
            rows(&mut items, width, threads, least, |first, run| {
                for (row, items) in (first..).zip(run.chunks_exact_mut(width)) {
                    items.iter_mut().for_each(|item| *item += row);
                }
            });
            assert!(items.iter().enumerate().all(|(at, &item)| item == at / width));
        }
    }

    #[test]
    #[should_panic = "third"]
    fn a_panic_is_passed_on() {
        each(&[1, 2, 3], 2, |&item| assert!(item < 3, "third"));
    }
}
