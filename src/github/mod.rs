//! The client of GitHub's API, of github.com and of a GitHub Enterprise Server: bounded in requests, in time and in what it reads.
//!
//! A request that may have been carried out although no answer came is repeated only where that changes nothing. The way goes
//! through the proxy that HTTPS_PROXY names, and the certificates are those of the system or of SSL_CERT_FILE.

mod download;
mod event;
mod refusal;
mod session;
mod site;

pub use self::download::Archive;
pub use self::event::read_event;
pub use self::refusal::{Cause, Failure, plain};
pub use self::session::{Allowance, Matter, Session};
pub use self::site::Site;
