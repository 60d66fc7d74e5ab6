//! `goodput simulate`: a profile file to a server that runs until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::profile::{Profile, ProfileError, parse_profile};
use super::server::{ExitRequested, Server};

/// Why the simulated endpoint could not serve, or ended.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The profile's file cannot be read.
    #[error("cannot read the profile {}; check the path", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The profile is wrong.
    #[error("{}: {fault}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        fault: ProfileError,
    },
    /// The address is taken or not ours, or the log cannot be created.
    #[error("cannot start at {listen}; is the port taken, or the log's folder missing?")]
    Start {
        /// The address.
        listen: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The fault script asks for an exit.
    #[error(transparent)]
    Exit(ExitRequested),
    /// Serving failed, or the log could not be completed.
    #[error("the simulated endpoint failed")]
    Serve(#[source] io::Error),
}

/// Serves the profile (the default one, which answers at once, if there is none) until `shutdown`. `listening` is told the
/// base URL as soon as connections are accepted.
///
/// # Errors
/// When the profile cannot be used, the address cannot be had, or the fault script asks for an exit.
pub async fn run_command(
    profile: Option<PathBuf>,
    listen: SocketAddr,
    log: Option<PathBuf>,
    shutdown: CancellationToken,
    listening: impl FnOnce(&str),
) -> Result<(), SimulateError> {
    let profile = profile.map_or_else(|| Ok(Profile::default()), read_profile)?;
    let server = Server::bind(profile, listen, log).await.map_err(|source| SimulateError::Start { listen, source })?;
    listening(&format!("http://{}", server.local_addr()));
    server.run(shutdown).await.map_err(|error| {
        let exit = error.get_ref().and_then(|inner| inner.downcast_ref::<ExitRequested>()).copied();
        exit.map_or(SimulateError::Serve(error), SimulateError::Exit)
    })
}

/// Reads a profile's file.
///
/// # Errors
/// When it cannot be read or used.
pub fn read_profile(path: PathBuf) -> Result<Profile, SimulateError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => parse_profile(&text).map_err(|fault| SimulateError::Profile { path, fault }),
        Err(source) => Err(SimulateError::Read { path, source }),
    }
}
