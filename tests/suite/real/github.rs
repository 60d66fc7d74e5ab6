//! Publishing to GitHub, against a server that keeps state behind Prism, which holds every request and every answer against
//! GitHub's own description (`tests/real/github.sh`).

mod comments;
mod elsewhere;
mod faults;
mod world;
