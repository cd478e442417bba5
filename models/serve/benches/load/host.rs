//! The server, in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use burn_dfa_serve::{App, Config, Failure, Server};
use clap::Parser;
use tokio::sync::oneshot;

/// A server of the embedded model, which ends when dropped.
pub struct Host {
    /// The address of the server.
    pub address: SocketAddr,
    /// The state of the server.
    pub app: Arc<App>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts a server with `rows` rows and further options.
    ///
    /// # Errors
    /// The server fails to start.
    pub fn start(rows: usize, options: &[&str]) -> Result<Self, Failure> {
        Self::of(App::load(config(rows, options)?)?)
    }

    /// Starts a server.
    ///
    /// # Errors
    /// The server fails to start.
    pub fn of(app: App) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let server = runtime.block_on(Server::bind(app))?;
        let (address, app) = (server.address()?, server.app().clone());
        let (end, is_ended) = oneshot::channel();
        let thread = std::thread::spawn(move || runtime.block_on(server.run(async { _ = is_ended.await })));
        Ok(Self { address, app, end: Some(end), thread: Some(thread) })
    }

    /// A metric: the sum over its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.app.metrics.render();
        let own =
            text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
        own.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The settings of a server with `rows` rows and further options.
///
/// # Errors
/// An option is unknown.
pub fn config(rows: usize, options: &[&str]) -> Result<Config, Failure> {
    let rows = rows.to_string();
    let all = ["burn-dfa-serve", "--port", "0", "--rows", &rows];
    Ok(Config::try_parse_from(all.iter().chain(options))?)
}

/// Processor seconds of the threads with this name, or of the current thread; `None` if the system
/// does not report them.
pub fn processor(thread: Option<&str>) -> Option<f64> {
    let taken = |folder: &std::path::Path| {
        let told = std::fs::read_to_string(folder.join("schedstat")).ok()?;
        told.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
    };
    let Some(name) = thread else { return taken("/proc/thread-self".as_ref()) };
    let is_named = |folder: &std::path::Path| {
        std::fs::read_to_string(folder.join("comm")).is_ok_and(|own| own.trim_end() == name)
    };
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.filter_map(|task| Some(task.ok()?.path()));
    Some(tasks.filter(|folder| is_named(folder)).filter_map(|folder| taken(&folder)).sum())
}

/// Resident memory of this process in MiB; `None` if the system does not report it.
pub fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}
