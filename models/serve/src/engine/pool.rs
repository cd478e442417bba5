//! Threads for CPU work, with a queue that is fair between clients.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::error::{ApiError, Result};

/// The origin of the work: the queue serves clients in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Client {
    /// An unknown client.
    #[default]
    Unknown,
    /// The holder of a key, by its hash.
    Key([u8; 32]),
    /// An address, if no key is required. For IPv6 the network, since a host has all its addresses.
    Address(IpAddr),
}

impl Client {
    /// The client at an address.
    pub fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            address => address,
        })
    }
}

/// A bounded number of threads with a bounded queue. Waiting clients are served in turn.
#[derive(Clone, Debug)]
pub struct Pool {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug)]
struct Queue {
    /// Threads without work.
    free: usize,
    max_waiting: usize,
    /// The queue of each client; the next client comes first.
    turns: VecDeque<(Client, VecDeque<oneshot::Sender<Thread>>)>,
}

/// The right to a thread of a pool. Dropping it passes the thread on.
#[derive(Debug)]
pub struct Thread {
    /// `None` if the thread was passed on.
    pool: Option<Pool>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.pass_on();
        }
    }
}

impl Queue {
    fn waiting(&self) -> usize {
        self.turns.iter().map(|(_, waiting)| waiting.len()).sum()
    }

    /// Removes requests whose client is gone.
    fn forget_gone(&mut self) {
        for (_, waiting) in &mut self.turns {
            waiting.retain(|sender| !sender.is_closed());
        }
        self.turns.retain(|(_, waiting)| !waiting.is_empty());
    }

    /// Makes space for `client`: if the queue is full, the client with the most requests loses its
    /// last one.
    fn make_place(&mut self, client: Client) -> bool {
        if self.waiting() < self.max_waiting {
            return true;
        }
        self.forget_gone();
        if self.waiting() < self.max_waiting {
            return true;
        }
        let own =
            self.turns.iter().find(|(other, _)| *other == client).map_or(0, |(_, waiting)| waiting.len());
        let most = self.turns.iter_mut().max_by_key(|(_, waiting)| waiting.len());
        // Dropping its sender notifies the waiting request.
        most.is_some_and(|(_, waiting)| waiting.len() > own + 1 && waiting.pop_back().is_some())
    }

    /// The next request in turn.
    fn next(&mut self) -> Option<oneshot::Sender<Thread>> {
        let (client, mut waiting) = self.turns.pop_front()?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.turns.push_back((client, waiting));
        }
        next
    }
}

impl Pool {
    /// A pool of `threads` threads, with at most `max_waiting` waiting requests.
    pub fn new(threads: usize, max_waiting: usize) -> Self {
        let queue = Queue { free: threads, max_waiting, turns: VecDeque::new() };
        Self { queue: Arc::new(Mutex::new(queue)) }
    }

    /// Waits for a thread.
    ///
    /// # Errors
    /// 503 if the queue is full.
    pub async fn thread(&self, client: Client) -> Result<Thread> {
        let overloaded = || ApiError::overloaded("too many requests are being prepared: try again later");
        let receiver = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Ok(Thread { pool: Some(self.clone()) });
            }
            if !queue.make_place(client) {
                return Err(overloaded());
            }
            let (sender, receiver) = oneshot::channel();
            match queue.turns.iter_mut().find(|(other, _)| *other == client) {
                Some((_, waiting)) => waiting.push_back(sender),
                None => queue.turns.push_back((client, VecDeque::from([sender]))),
            }
            receiver
        };
        receiver.await.map_err(|_| overloaded())
    }

    /// Does some work as soon as a thread is free.
    ///
    /// # Errors
    /// 503 if the queue is full, 500 if the work panics.
    pub async fn run<T: Send + 'static>(
        &self,
        client: Client,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let thread = self.thread(client).await?;
        let work = tokio::task::spawn_blocking(move || {
            // Holds the thread until the work ends, even if no request waits for the result.
            let _thread = thread;
            work()
        });
        work.await.map_err(|_| ApiError::internal("the work on this request panicked"))
    }

    /// Passes a thread to the next waiting request.
    fn pass_on(&self) {
        loop {
            let next = {
                let mut queue = self.queue();
                let next = queue.next();
                if next.is_none() {
                    queue.free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(Thread { pool: Some(self.clone()) }) {
                Ok(()) => return,
                // The request no longer waits.
                Err(mut thread) => _ = thread.pool.take(),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn client(number: u8) -> Client {
        Client::at(IpAddr::from([10, 0, 0, number]))
    }

    /// Lets all ready tasks run.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// Clients ask for the only thread in this order while it is taken. Returns the order of
    /// service, and the number of refusals.
    async fn order(asked: &[u8], max_waiting: usize) -> (Vec<u8>, usize) {
        let pool = Pool::new(1, max_waiting);
        let held = pool.thread(Client::Unknown).await.expect("it is free");
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for &number in asked {
            let (pool, served) = (pool.clone(), served.clone());
            tasks.push(tokio::spawn(async move {
                let _thread = pool.thread(client(number)).await?;
                served.lock().expect("nothing panics").push(number);
                Ok::<_, ApiError>(())
            }));
            settle().await;
        }
        drop(held);
        let mut refused = 0;
        for task in tasks {
            refused += usize::from(task.await.expect("nothing panics").is_err());
        }
        assert_eq!(pool.queue().free, 1);
        let served = served.lock().expect("nothing panics").clone();
        (served, refused)
    }

    #[tokio::test]
    async fn clients_are_served_in_turn() {
        assert_eq!(order(&[1, 1, 1, 1, 2, 3, 2], 100).await, (vec![1, 2, 3, 1, 2, 1, 1], 0));
    }

    #[tokio::test]
    async fn who_has_most_gives_way_where_the_queue_is_full() {
        // The fourth request of the first client is refused, and its third loses its space to the
        // second client.
        assert_eq!(order(&[1, 1, 1, 1, 2], 3).await, (vec![1, 2, 1], 2));
        assert_eq!(order(&[1, 2, 3, 4], 3).await, (vec![1, 2, 3], 1));
    }

    #[tokio::test]
    async fn who_is_gone_is_passed_over() {
        let pool = Pool::new(1, 1);
        let held = pool.thread(client(1)).await.expect("it is free");
        let gone = tokio::time::timeout(Duration::from_millis(1), pool.thread(client(1))).await;
        assert!(gone.is_err());
        // The space of the canceled request is free.
        let own = pool.clone();
        let waits = tokio::spawn(async move { own.run(client(2), || 7).await });
        settle().await;
        assert!(pool.thread(client(3)).await.is_err());
        drop(held);
        assert_eq!(waits.await.expect("it does not panic"), Ok(7));
        assert_eq!(pool.queue().free, 1);
        assert!(pool.run(client(1), || panic!("as it was told")).await.is_err());
        assert_eq!(pool.run(client(1), || 8).await, Ok(8));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let of = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
