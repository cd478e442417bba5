//! The same requests with a constraint and without, with equally long answers, in turns.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use burn_dfa_serve::Failure;
use serde_json::{Value, json};

use crate::host::Host;
use crate::traffic::client::{Client, Reply};
use crate::traffic::judge::Answer;
use crate::traffic::{CHAT, requests, token_times};

/// The same requests with a constraint and without.
pub struct Arms {
    /// Each with a schema.
    pub structured: Vec<Value>,
    /// Without a schema, with as many tokens.
    pub free: Vec<Value>,
    /// Tokens of all answers of an arm.
    pub tokens: u64,
}

impl Arms {
    /// Sends each of `schemas` structured requests once. This counts the tokens of its answer, and
    /// compiles its schema.
    ///
    /// # Errors
    /// An answer is wrong.
    pub fn new(address: SocketAddr, schemas: u64) -> Result<Self, Failure> {
        let mut arms = Self { structured: Vec::new(), free: Vec::new(), tokens: 0 };
        let mut client = Client::new(address);
        for number in 0..schemas {
            let mut free = json!({"messages": [{"role": "user", "content": format!("Please send {number} brass lamps to Oscar Lund.")}]});
            let mut structured = free.clone();
            structured["guided_json"] = requests::schema(number);
            let reply = client.ask("POST", CHAT, &structured.to_string())?;
            let tokens = Answer::of(&reply)?.tokens;
            arms.tokens += tokens;
            // Both end exactly with their last token: one by its schema, the other by its budget.
            free["max_tokens"] = json!(tokens);
            for arm in [&mut structured, &mut free] {
                arm["min_tokens"] = json!(tokens - 1);
            }
            arms.structured.push(structured);
            arms.free.push(free);
        }
        Ok(arms)
    }

    /// The requests as bodies, `times` over.
    pub fn bodies(requests: &[Value], streams: bool, times: usize) -> Vec<String> {
        let body = |request: &Value| {
            let mut request = request.clone();
            if streams {
                request["stream"] = json!(true);
                request["stream_options"] = json!({"include_usage": true});
            }
            request.to_string()
        };
        (0..times).flat_map(|_| requests.iter().map(body)).collect()
    }
}

/// Sends requests by several clients at once; returns the total time, and the replies.
///
/// # Errors
/// A socket fails.
pub fn drive(
    address: SocketAddr,
    path: &str,
    clients: usize,
    bodies: &[String],
) -> Result<(Duration, Vec<Reply>), Failure> {
    let (next, replies) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let client = || -> std::io::Result<()> {
        let mut client = Client::new(address);
        while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
            let reply = client.ask("POST", path, body)?;
            replies.lock().expect("nobody panics with it").push(reply);
        }
        Ok(())
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("clients do not panic"))
    })?;
    let elapsed = started.elapsed();
    Ok((elapsed, replies.into_inner().expect("nobody panics with it")))
}

/// Tokens of all replies.
///
/// # Errors
/// A reply is wrong.
pub fn tokens(replies: &[Reply]) -> Result<u64, Failure> {
    replies.iter().map(|reply| Ok(Answer::of(reply)?.tokens)).sum()
}

/// Requests per second of one round with the constraints and one without.
///
/// # Errors
/// An answer is wrong.
pub fn throughput(host: &Host, arms: &Arms, clients: usize, is_first: bool) -> Result<[f64; 2], Failure> {
    let rate = |requests: &[Value]| {
        let bodies = Arms::bodies(requests, false, 2);
        let (elapsed, replies) = drive(host.address, CHAT, clients, &bodies)?;
        same(tokens(&replies)?, 2 * arms.tokens)?;
        Ok::<_, Failure>(bodies.len() as f64 / elapsed.as_secs_f64())
    };
    in_turn(is_first, || rate(&arms.structured), || rate(&arms.free))
}

/// Milliseconds between two tokens of one round with the constraints and one without.
///
/// # Errors
/// An answer is wrong.
pub fn between(host: &Host, arms: &Arms, is_first: bool) -> Result<[Vec<f64>; 2], Failure> {
    let gaps = |requests: &[Value]| {
        let bodies = Arms::bodies(requests, true, 2);
        // As many clients as rows, so that none waits.
        let (_, replies) = drive(host.address, CHAT, host.app.config.rows, &bodies)?;
        same(tokens(&replies)?, 2 * arms.tokens)?;
        let of_reply = |reply: &Reply| {
            let times = token_times(reply);
            times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect::<Vec<_>>()
        };
        Ok::<_, Failure>(replies.iter().flat_map(of_reply).collect())
    };
    in_turn(is_first, || gaps(&arms.structured), || gaps(&arms.free))
}

/// Milliseconds to the first token with a new schema, of its compilation, and to the first token
/// without a schema.
///
/// # Errors
/// An answer is wrong.
pub fn first_token(host: &Host, number: u64, is_first: bool) -> Result<[f64; 3], Failure> {
    const COMPILED: &str = "burn_dfa:compile_time_seconds_sum";
    let first = |constraint: Option<Value>| {
        let mut body = json!({"stream": true, "max_tokens": 100, "messages": [{"role": "user", "content": "Please send 12 brass lamps to Oscar Lund."}]});
        if let Some(schema) = constraint {
            body["guided_json"] = schema;
        }
        let reply = Client::new(host.address).ask("POST", CHAT, &body.to_string())?;
        Answer::of(&reply)?;
        let first = token_times(&reply).first().copied().ok_or("an answer has no text")?;
        Ok::<_, Failure>(first.as_secs_f64() * 1e3)
    };
    let before = host.metric(COMPILED);
    // This number is larger than the numbers of all other parts.
    let schema = requests::schema(2_000_000_000 + number);
    let [with, without] = in_turn(is_first, || first(Some(schema.clone())), || first(None))?;
    Ok([with, (host.metric(COMPILED) - before) * 1e3, without])
}

/// Runs both, in either order.
pub fn in_turn<T>(
    is_first: bool,
    one: impl Fn() -> Result<T, Failure>,
    other: impl Fn() -> Result<T, Failure>,
) -> Result<[T; 2], Failure> {
    if is_first {
        let one = one()?;
        return Ok([one, other()?]);
    }
    let other = other()?;
    Ok([one()?, other])
}

/// Answers of different lengths would make the comparison meaningless.
fn same(tokens: u64, wanted: u64) -> Result<(), Failure> {
    if tokens == wanted { Ok(()) } else { Err(format!("{tokens} tokens, and {wanted} were to come").into()) }
}
