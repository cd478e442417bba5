//! The program: reads its options, loads the model, and serves until it is asked to end.

use std::process::ExitCode;
use std::time::Duration;

use burn_dfa::cli::{parse, report};
use burn_dfa_serve::{App, Config, Failure, LogForm, Server};
use tracing_subscriber::EnvFilter;

/// How long work on requests may continue after the server has ended.
const PATIENCE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let config: Config = parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log {
        LogForm::Text => log.init(),
        LogForm::Json => log.json().init(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let served = runtime.map_err(Failure::from).and_then(|runtime| {
        let served = runtime.block_on(serve(config));
        // Abandoned work does not delay the exit.
        runtime.shutdown_timeout(PATIENCE);
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        // The exit code tells errors of the library apart.
        Err(failure) => match failure.downcast::<burn_dfa::Error>() {
            Ok(error) => report(&(error as Box<dyn std::error::Error>), false),
            Err(other) => report(&other.to_string().into(), false),
        },
    }
}

async fn serve(config: Config) -> Result<(), Failure> {
    let app = tokio::task::spawn_blocking(|| App::load(config)).await??;
    let server = Server::bind(app).await?;
    let (address, app) = (server.address()?, server.app());
    tracing::info!(model = app.name, slots = app.engine.config().slots, "listening on http://{address}");
    server.run(asked_to_end()).await;
    Ok(())
}

/// Waits for control-C, or for the signal that ends services.
async fn asked_to_end() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
