//! The processes of a cluster: Ballista's scheduler and executors, with the functions of this
//! crate.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::error::{BallistaError, Result};
use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tonic::transport::Endpoint;

use crate::function::Functions;

/// How long a scheduler may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// The address to listen on; port 0 takes any free port.
    pub address: SocketAddr,
    /// How long an executor may be silent before its tasks go to other executors.
    pub executor_timeout: Duration,
    /// The number of connected executors for which `/readyz` answers 200.
    pub executors: usize,
}

impl Scheduler {
    /// Serves until the process ends; `listening` gets the address.
    ///
    /// # Errors
    /// The address is in use.
    pub async fn serve(self, functions: Functions, listening: impl FnOnce(SocketAddr)) -> Result<()> {
        let listener = tokio::net::TcpListener::bind(self.address).await?;
        let address = listener.local_addr()?;
        let seconds = self.executor_timeout.as_secs().max(1);
        let build = move |settings: SessionConfig| {
            let mut state = default_session_builder(settings)?;
            for function in functions.all() {
                datafusion::execution::FunctionRegistry::register_udf(&mut state, function)?;
            }
            Ok(state)
        };
        let config = Arc::new(SchedulerConfig {
            bind_host: address.ip().to_string(),
            bind_port: address.port(),
            external_host: address.ip().to_string(),
            executor_timeout_seconds: seconds,
            expire_dead_executor_interval_seconds: seconds.div_ceil(4),
            no_executors_grace_period_seconds: seconds,
            min_ready_executors: self.executors,
            // Each executor has a separate model.
            task_distribution: TaskDistributionPolicy::RoundRobin,
            override_session_builder: Some(Arc::new(build)),
            override_config_producer: Some(Arc::new(SessionConfig::new_with_ballista)),
            ..SchedulerConfig::default()
        });
        config.validate()?;
        let cluster = BallistaCluster::new_from_config(&config).await?;
        let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await?;
        listening(address);
        start_grpc_service_with_listener(listener, scheduler).await
    }
}

/// An executor.
#[derive(Clone, Debug)]
pub struct Executor {
    /// The scheduler's host and port.
    pub scheduler: (String, u16),
    /// The address to listen on, for clients that fetch results and for the scheduler; both connect
    /// to it.
    pub host: IpAddr,
    /// The two ports to listen on; 0 takes any free port.
    pub ports: [u16; 2],
    /// Number of simultaneous tasks. They share the engine: two of them keep it busy while one
    /// reads or writes.
    pub tasks: usize,
    /// Interval of the heartbeats to the scheduler.
    pub heartbeat: Duration,
    /// The folder of results until they are fetched.
    pub folder: PathBuf,
}

impl Executor {
    /// Runs tasks until the process is asked to end.
    ///
    /// # Errors
    /// No scheduler answers, or the ports are in use.
    pub async fn serve(self, functions: Functions) -> Result<()> {
        let mut registry = BallistaFunctionRegistry::default();
        for function in functions.all() {
            registry.scalar_functions.insert(function.name().to_owned(), function);
        }
        // Binds both at the same time, so that they differ.
        let listeners = self.ports.map(|port| TcpListener::bind((self.host, port)));
        let [port, grpc_port] =
            listeners.map(|listener| listener?.local_addr().map(|address| address.port()));
        let config = ExecutorProcessConfig {
            bind_host: self.host.to_string(),
            external_host: Some(self.host.to_string()),
            port: port?,
            grpc_port: grpc_port?,
            scheduler_host: self.scheduler.0,
            scheduler_port: self.scheduler.1,
            scheduler_connect_timeout_seconds: 30,
            vcores: self.tasks,
            work_dir: Some(self.folder.to_string_lossy().into_owned()),
            executor_heartbeat_interval_seconds: self.heartbeat.as_secs().max(1),
            override_function_registry: Some(Arc::new(registry)),
            override_config_producer: Some(Arc::new(SessionConfig::new_with_ballista)),
            ..ExecutorProcessConfig::default()
        };
        start_executor_process(Arc::new(config)).await
    }
}

/// Whether a scheduler answers, at an address such as `http://127.0.0.1:50050`.
///
/// # Errors
/// None does; the error contains its address.
pub async fn reach(scheduler: &str) -> Result<()> {
    let told = |error: tonic::transport::Error| {
        BallistaError::General(format!("no scheduler answers at {scheduler}: {error}"))
    };
    let endpoint = Endpoint::from_shared(scheduler.to_owned()).map_err(told)?.connect_timeout(ANSWER);
    endpoint.connect().await.map(drop).map_err(told)
}
