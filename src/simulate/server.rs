//! The TCP server: HTTP/1.1 with keep-alive, and HTTP/2 by prior knowledge.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::{Driver, SteadyClock};
use super::engine::Engine;
use super::faults::{FaultScript, ServerFault};
use super::profile::Profile;
use super::service::Endpoint;
use super::wire::{RequestLog, StampedStream, Wire};

/// Connections that may wait to be accepted: an open loop opens many at once.
const BACKLOG: u32 = 4_096;

/// The fault script ended the process; the exit code is what the script asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ended by the fault script with exit code {code}")]
pub struct ExitRequested {
    /// The exit code.
    pub code: u8,
}

/// A simulated endpoint that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    endpoint: Arc<Endpoint>,
    timed: Vec<(u64, ServerFault)>,
}

impl Server {
    /// Listens at `listen` (port 0 takes a free one) and, with `log`, records every request there as a line of JSON. The
    /// clock of profile and log begins here.
    ///
    /// # Errors
    /// When the address cannot be had or the log cannot be created.
    pub async fn bind(profile: Profile, listen: SocketAddr, log: Option<PathBuf>) -> io::Result<Self> {
        let log = log.as_deref().map(RequestLog::create).transpose()?;
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(listen)?;
        let listener = socket.listen(BACKLOG)?;
        let clock = SteadyClock::start();
        let script = FaultScript::new(&profile);
        let (stalls, timed): (Vec<_>, Vec<_>) =
            script.timed().into_iter().partition(|(_, fault)| matches!(fault, ServerFault::Stall(_)));
        let stalls = stalls.into_iter().filter_map(|(at_ns, fault)| match fault {
            ServerFault::Stall(length_ns) => Some((at_ns, length_ns)),
            _ => None,
        });
        let driver = Arc::new(Driver::new(Engine::new(&profile), clock, stalls.collect()));
        let endpoint = Arc::new(Endpoint::new(profile, clock, driver, script, log));
        Ok(Self { address: listener.local_addr()?, listener, endpoint, timed })
    }

    /// The address it listens at.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then drops all connections and completes the log.
    ///
    /// # Errors
    /// An [`ExitRequested`] when the fault script ends the server; otherwise what prevents it from serving or from
    /// writing its log.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        let driver = Arc::clone(&self.endpoint.driver);
        let timekeeper = std::thread::Builder::new().name("simulated-engine".to_owned()).spawn({
            let driver = Arc::clone(&driver);
            move || driver.keep_time()
        })?;
        let endpoint = Arc::clone(&self.endpoint);
        let tasks = TaskTracker::new();
        for (at_ns, fault) in self.timed.clone() {
            tasks.spawn(strike_at(Arc::clone(&endpoint), at_ns, fault));
        }
        tokio::select! {
            () = self.accept(&tasks) => {}
            () = shutdown.cancelled() => {}
            () = endpoint.stop.cancelled() => {}
        }
        endpoint.stop.cancel();
        tasks.close();
        tasks.wait().await;
        driver.stop();
        let ended = timekeeper.join().map_err(|_| io::Error::other("the simulated engine broke"));
        if let Some(log) = &endpoint.log {
            log.flush()?;
        }
        match endpoint.exit_code.get() {
            Some(code) => Err(io::Error::other(ExitRequested { code: *code })),
            None => ended,
        }
    }

    async fn accept(&self, tasks: &TaskTracker) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    tasks.spawn(serve(Arc::clone(&self.endpoint), stream));
                }
                // Out of file descriptors, most likely: others will be freed.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

async fn strike_at(endpoint: Arc<Endpoint>, at_ns: u64, fault: ServerFault) {
    let rest = Duration::from_nanos(at_ns.saturating_sub(endpoint.clock.now_ns()));
    tokio::select! {
        () = tokio::time::sleep(rest) => endpoint.strike(fault),
        () = endpoint.stop.cancelled() => {}
    }
}

/// Serves one connection to its end.
async fn serve(endpoint: Arc<Endpoint>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let life = endpoint.life();
    let wire = Arc::new(Wire::default());
    let stamped = StampedStream { stream, wire: Arc::clone(&wire), clock: endpoint.clock };
    let service = service_fn(move |request| Arc::clone(&endpoint).answer(Arc::clone(&wire), request));
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // How a connection ends is the client's business or the fault script's.
        _ = builder.serve_connection(TokioIo::new(stamped), service) => {}
        () = life.cancelled() => {}
    }
}
