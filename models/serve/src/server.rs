//! Listens, accepts connections, and shuts down gracefully.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::app::{App, Failure};
use crate::client;
use crate::routes::router;
use crate::write_timeout::WriteTimeoutStream;

/// The pause after a connection could not be accepted, for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
}

impl Server {
    /// Listens on the address of the configuration.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(app: App) -> Result<Self, Failure> {
        let address = SocketAddr::new(app.config.host, app.config.port);
        let listener = TcpListener::bind(address).await;
        let listener = listener
            .map_err(|error| format!("cannot listen on {address}: {error}: give another --host or --port"))?;
        Ok(Self { app: Arc::new(app), listener })
    }

    /// The address.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The state of the server.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Serves until `end`. After that, refuses new requests, and lets running ones continue for the
    /// grace period.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let Self { app, listener } = self;
        let router = router(app.clone());
        let connections = Arc::new(Semaphore::new(app.config.max_connections));
        let graceful = GracefulShutdown::new();
        let upkeep = tokio::spawn(app.metrics.clone().keep_up());
        let mut end = pin!(end);
        loop {
            let free = async {
                let permit = connections.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                taken = free => taken,
                () = &mut end => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let connection =
                graceful.watch(connection(stream, peer, router.clone(), app.config.client_timeout));
            tokio::spawn(async move {
                let _permit = permit;
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection broke");
                }
            });
        }
        drop(listener);
        app.end();
        tracing::info!("the server ends; answers that have begun go on");
        let grace = app.config.grace;
        let own = app.clone();
        let engine = tokio::task::spawn_blocking(move || own.engine.shut_down(grace));
        if tokio::time::timeout(grace + Duration::from_secs(1), graceful.shutdown()).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
        let _ = engine.await;
        upkeep.abort();
    }
}

/// One connection, with sequential requests.
fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    patience: Duration,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    // Sends each token immediately.
    let _ = stream.set_nodelay(true);
    let client = client::of_address(peer.ip());
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client);
        router.clone().oneshot(request.map(Body::new))
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(WriteTimeoutStream::new(stream, patience)), service)
}
