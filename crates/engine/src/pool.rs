//! Threads for CPU work, with queues that are fair between clients.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use burn_dfa::generation::Cancel;
use tokio::sync::oneshot;

use crate::PoolError;

/// The origin of a request. Queues serve clients in turn. The default is an unknown client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client([u8; 32]);

impl Client {
    /// A client with an identifier, such as the hash of a key or an address.
    pub fn new(identifier: [u8; 32]) -> Self {
        Self(identifier)
    }
}

/// A bounded number of threads with bounded queues. Clones share the threads.
///
/// Waiting clients are served in turn. If a queue is full, the client with the most work in it
/// loses its last work to a client with less.
///
/// ```
/// use burn_dfa_engine::{Client, Pool};
///
/// let pool = Pool::new(2, 16);
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// assert_eq!(runtime.block_on(pool.run(Client::default(), || 6 * 7)), Ok(42));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// Ends the threads when the last clone of a pool is dropped.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

struct Shared {
    state: Mutex<State>,
    /// There is new work, or the pool is closed.
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct State {
    quick: Queue,
    slow: Queue,
    /// Whether the latest work was slow; then quick work is next.
    was_slow: bool,
    /// Threads that were started, and threads that wait for work.
    threads: usize,
    idle: usize,
    max_threads: usize,
    is_closed: bool,
}

/// Work of one speed: waiting and running.
struct Queue {
    /// The waiting work of each client; the next client comes first.
    turns: VecDeque<(Client, VecDeque<Work>)>,
    running: usize,
    max_running: usize,
    max_waiting: usize,
}

struct Work {
    run: Box<dyn FnOnce() + Send>,
    /// Nobody waits for the result of canceled work.
    cancel: Cancel,
}

impl Queue {
    fn new(max_running: usize, max_waiting: usize) -> Self {
        Self { turns: VecDeque::new(), running: 0, max_running, max_waiting }
    }

    fn len(&self) -> usize {
        self.turns.iter().map(|(_, waiting)| waiting.len()).sum()
    }

    /// Whether there is space for more work. Work for which a thread is free does not count as
    /// waiting.
    fn has_space(&self) -> bool {
        self.len() + self.running < self.max_waiting.saturating_add(self.max_running)
    }

    /// Adds work at the end of its client's queue. Returns the refused work: canceled work, and if
    /// the queue is still full, the last work of the client with the most, or `work` itself.
    fn push(&mut self, client: Client, work: Work) -> Vec<Work> {
        let mut refused = Vec::new();
        if !self.has_space() {
            for (_, waiting) in &mut self.turns {
                let (gone, others): (Vec<Work>, _) =
                    waiting.drain(..).partition(|work| work.cancel.is_canceled());
                refused.extend(gone);
                *waiting = VecDeque::from(others);
            }
            self.turns.retain(|(_, waiting)| !waiting.is_empty());
        }
        if !self.has_space() {
            let of_client = self.turns.iter().find(|(other, _)| *other == client);
            let own = of_client.map_or(0, |(_, waiting)| waiting.len());
            let busiest = self.turns.iter_mut().max_by_key(|(_, waiting)| waiting.len());
            match busiest.filter(|(_, waiting)| waiting.len() > own + 1) {
                Some((_, waiting)) => refused.extend(waiting.pop_back()),
                None => {
                    refused.push(work);
                    return refused;
                }
            }
        }
        match self.turns.iter_mut().find(|(other, _)| *other == client) {
            Some((_, waiting)) => waiting.push_back(work),
            None => self.turns.push_back((client, VecDeque::from([work]))),
        }
        refused
    }

    /// The next work in turn, if it may run.
    fn next(&mut self) -> Option<Work> {
        if self.running == self.max_running {
            return None;
        }
        let (client, mut waiting) = self.turns.pop_front()?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.turns.push_back((client, waiting));
        }
        self.running += usize::from(next.is_some());
        next
    }
}

impl State {
    fn queue(&mut self, is_slow: bool) -> &mut Queue {
        if is_slow { &mut self.slow } else { &mut self.quick }
    }

    /// The next work, and whether it is slow. Slow and quick work take turns.
    fn next(&mut self) -> Option<(Work, bool)> {
        let first = !self.was_slow;
        let (work, is_slow) = [first, !first]
            .into_iter()
            .find_map(|is_slow| self.queue(is_slow).next().map(|work| (work, is_slow)))?;
        self.was_slow = is_slow;
        Some((work, is_slow))
    }
}

impl Pool {
    /// A pool of `threads` threads, at least one, which start when they are needed. At most
    /// `max_waiting` jobs wait in each of its queues.
    pub fn new(threads: usize, max_waiting: usize) -> Self {
        let threads = threads.max(1);
        let state = State {
            quick: Queue::new(threads, max_waiting),
            // If there are several threads, slow work leaves one of them free.
            slow: Queue::new((threads - 1).max(1), max_waiting),
            was_slow: false,
            threads: 0,
            idle: 0,
            max_threads: threads,
            is_closed: false,
        };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
        Self { handle: Arc::new(Handle(Arc::new(shared))) }
    }

    /// Runs some work as soon as a thread is free. If the future is dropped before, the work does
    /// not run.
    ///
    /// # Errors
    /// The queue is full, or the work panics.
    pub async fn run<T: Send + 'static>(
        &self,
        client: Client,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let cancel = CancelOnDrop::default();
        let (sender, made) = oneshot::channel();
        self.spawn(client, &cancel.0, move || {
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        });
        match made.await {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(_)) => Err(PoolError::Panic),
            // The work was dropped.
            Err(_) => Err(PoolError::Overloaded),
        }
    }

    /// Queues some work. If the queue is full or the work is canceled, it is dropped without
    /// running.
    pub(crate) fn spawn(&self, client: Client, cancel: &Cancel, work: impl FnOnce() + Send + 'static) {
        self.push(client, cancel, false, Box::new(work));
    }

    /// As [`spawn`](Self::spawn), for work that takes long.
    pub(crate) fn spawn_slow(&self, client: Client, cancel: &Cancel, work: impl FnOnce() + Send + 'static) {
        self.push(client, cancel, true, Box::new(work));
    }

    fn push(&self, client: Client, cancel: &Cancel, is_slow: bool, run: Box<dyn FnOnce() + Send>) {
        let shared = &self.handle.0;
        let mut state = shared.state();
        let refused = state.queue(is_slow).push(client, Work { run, cancel: cancel.clone() });
        let waiting = state.quick.len() + state.slow.len();
        let starts = state.idle < waiting && state.threads < state.max_threads;
        state.threads += usize::from(starts);
        drop(state);
        // Dropped after the lock is released, since the drop of work may queue other work.
        drop(refused);
        if starts {
            let shared = shared.clone();
            let thread = thread::Builder::new().name("pool".into()).spawn(move || serve(&shared));
            thread.expect("a thread can be started while a program runs");
        } else {
            shared.changed.notify_one();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.handle.0.state();
        let (threads, waiting) = (state.max_threads, state.quick.len() + state.slow.len());
        f.debug_struct("Pool").field("threads", &threads).field("waiting", &waiting).finish()
    }
}

/// Runs work until the pool is closed.
fn serve(shared: &Shared) {
    let mut state = shared.state();
    loop {
        if let Some((work, is_slow)) = state.next() {
            drop(state);
            let Work { run, cancel } = work;
            // Dropped without running if nobody waits for the result. Work reports its own panics.
            let _ = catch_unwind(AssertUnwindSafe(|| match cancel.is_canceled() {
                true => drop(run),
                false => run(),
            }));
            state = shared.state();
            state.queue(is_slow).running -= 1;
        } else if state.is_closed {
            return;
        } else {
            state.idle += 1;
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Cancels work when dropped.
#[derive(Default)]
pub(crate) struct CancelOnDrop(pub(crate) Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;

    fn client(number: u8) -> Client {
        Client::new([number; 32])
    }

    /// Occupies a thread until the sender is dropped.
    fn hold(pool: &Pool) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel::<()>();
        let (started, is_started) = mpsc::channel();
        pool.spawn(Client::default(), &Cancel::default(), move || {
            started.send(()).expect("the test waits");
            let _ = receiver.recv();
        });
        is_started.recv().expect("a thread is free");
        sender
    }

    /// Clients ask for the only thread in this order while it is occupied. Returns the order of
    /// service, and the number of refusals.
    fn order(asked: &[u8], max_waiting: usize) -> (Vec<u8>, usize) {
        let pool = Pool::new(1, max_waiting);
        let held = hold(&pool);
        let (sender, served) = mpsc::channel();
        for &number in asked {
            let sender = sender.clone();
            let work = move || sender.send(number).expect("the test waits");
            pool.spawn(client(number), &Cancel::default(), work);
        }
        drop((held, sender));
        let served: Vec<u8> = served.iter().collect();
        let refused = asked.len() - served.len();
        (served, refused)
    }

    #[test]
    fn clients_are_served_in_turn() {
        assert_eq!(order(&[1, 1, 1, 1, 2, 3, 2], 100), (vec![1, 2, 3, 1, 2, 1, 1], 0));
    }

    #[test]
    fn the_client_with_the_most_work_gives_way_in_a_full_queue() {
        // The fourth work of the first client is refused, and its third loses its space to the
        // second client.
        assert_eq!(order(&[1, 1, 1, 1, 2], 3), (vec![1, 2, 1], 2));
        assert_eq!(order(&[1, 2, 3, 4], 3), (vec![1, 2, 3], 1));
    }

    #[tokio::test]
    async fn canceled_work_does_not_run_and_frees_its_space() {
        let pool = Pool::new(1, 1);
        let held = hold(&pool);
        let gone = pool.run(client(1), || panic!("it does not run"));
        assert!(tokio::time::timeout(Duration::from_millis(1), gone).await.is_err());
        let own = pool.clone();
        let waits = tokio::spawn(async move { own.run(client(2), || 7).await });
        // Lets the task run.
        tokio::task::yield_now().await;
        assert_eq!(pool.run(client(3), || 0).await, Err(PoolError::Overloaded));
        drop(held);
        assert_eq!(waits.await.expect("it does not panic"), Ok(7));
        let panics = pool.run(client(1), || panic!("as the test expects")).await;
        assert_eq!(panics, Err::<(), _>(PoolError::Panic));
        assert_eq!(pool.run(client(1), || 8).await, Ok(8));
    }

    #[test]
    fn slow_work_leaves_a_thread_free() {
        let pool = Pool::new(2, 100);
        let (held, receiver) = mpsc::channel::<()>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..4 {
            let receiver = receiver.clone();
            pool.spawn_slow(client(1), &Cancel::default(), move || {
                let _ = receiver.lock().map(|receiver| receiver.recv());
            });
        }
        let (sender, served) = mpsc::channel();
        pool.spawn(client(1), &Cancel::default(), move || sender.send(()).expect("the test waits"));
        assert_eq!(served.recv_timeout(Duration::from_secs(60)), Ok(()));
        assert_eq!(pool.handle.0.state().slow.len(), 3);
        drop(held);
        let started = Instant::now();
        while pool.handle.0.state().slow.len() > 0 {
            assert!(started.elapsed() < Duration::from_secs(60), "slow work ends");
            thread::yield_now();
        }
    }
}
