//! Finds the processes that a contract names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::Context;
use super::table::{Entry, Table};
use super::{pid_file, sockets};
use crate::contract::ProcessOf;

/// Finds the processes that a contract names, in a `/proc`.
#[derive(Debug)]
pub(in crate::probe) struct Finder {
    of: ProcessOf,
    /// The first process of the endpoint that this run launched; its group has the same number.
    endpoint: Option<u32>,
    /// The TCP port of the endpoint's URL.
    port: u16,
    proc: PathBuf,
    /// The processes that held the port last: asking all of the machine takes long.
    holders: BTreeSet<u32>,
}

impl Finder {
    pub(in crate::probe) fn new(of: &ProcessOf, context: &Context) -> Self {
        Self {
            of: of.clone(),
            endpoint: context.endpoint,
            port: context.port,
            proc: PathBuf::from("/proc"),
            holders: BTreeSet::new(),
        }
    }

    /// The same in another `/proc`.
    #[cfg(test)]
    pub(in crate::probe) fn within(self, proc: &Path) -> Self {
        Self { proc: proc.to_owned(), ..self }
    }

    /// The `/proc` that is read.
    pub(in crate::probe) fn proc(&self) -> &Path {
        &self.proc
    }

    /// The processes at this moment.
    pub(in crate::probe) fn table(&self) -> Result<Table, String> {
        Table::read(&self.proc)
    }

    /// The processes that are named: what listens on the port, or what the pid file tells.
    pub(super) fn asked(&self, table: &Table) -> Result<BTreeSet<u32>, String> {
        match &self.of {
            ProcessOf::Endpoint => self.endpoint_listeners(table),
            ProcessOf::PidFile(file) => pid_file::process(file, &self.proc, table).map(|pid| BTreeSet::from([pid])),
            ProcessOf::Port(port) => self.listeners(*port, table),
        }
    }

    /// They with all that they started; of the launched endpoint, all that was started with it.
    pub(in crate::probe) fn family(&mut self, table: &Table) -> Result<BTreeSet<u32>, String> {
        let asked = match self.of {
            ProcessOf::Endpoint => return self.launched(table),
            ProcessOf::PidFile(_) => self.asked(table)?,
            ProcessOf::Port(port) => {
                // Whoever else came to hold the port was most likely started by these.
                let sockets = sockets::listening(&self.proc, port)?;
                let again = sockets::holders(&self.proc, &sockets, self.holders.iter().copied());
                let is_all = !sockets.is_empty() && again.held.len() == sockets.len();
                self.holders = if is_all { again.processes } else { self.listeners(port, table)? };
                self.holders.clone()
            }
        };
        Ok(table.with_descendants(asked))
    }

    /// The process that started the endpoint, where that one does nothing else: then what lost its parent is its child.
    pub(super) fn supervisor<'a>(&self, table: &'a Table) -> Option<&'a Entry> {
        let first = table.get(self.endpoint.filter(|_| self.of == ProcessOf::Endpoint)?)?;
        let ours = std::process::id();
        table.get(first.parent).filter(|supervisor| supervisor.pid != ours && supervisor.parent == ours)
    }

    /// The group of the launched endpoint, with what left it.
    fn launched(&self, table: &Table) -> Result<BTreeSet<u32>, String> {
        let first = self.endpoint.ok_or("this run launched no endpoint; name the process by `pid_file` or `port`")?;
        let supervisor = self.supervisor(table).map(|supervisor| supervisor.pid);
        let members = table.iter().filter(|process| process.group == first || Some(process.parent) == supervisor);
        let launched = table.with_descendants(members.map(|process| process.pid));
        let is_running = |pid: &u32| table.get(*pid).is_some_and(|process| !process.has_ended);
        if launched.iter().any(is_running) { Ok(launched) } else { Err("the launched endpoint has ended".to_owned()) }
    }

    fn endpoint_listeners(&self, table: &Table) -> Result<BTreeSet<u32>, String> {
        let launched = self.launched(table)?;
        let sockets = sockets::listening(&self.proc, self.port)?;
        let holders = sockets::holders(&self.proc, &sockets, launched);
        if !holders.processes.is_empty() {
            return Ok(holders.processes);
        }
        let why = if holders.refused {
            "this user may not see the sockets of all that it started"
        } else {
            "a server in a container is asked by `docker`, `podman` or `kubernetes`"
        };
        Err(format!("nothing that this run started listens on port {} here; {why}", self.port))
    }

    fn listeners(&self, port: u16, table: &Table) -> Result<BTreeSet<u32>, String> {
        let sockets = sockets::listening(&self.proc, port)?;
        if sockets.is_empty() {
            return Err(format!(
                "nothing listens on port {port} of this machine; `ss -ltnp` lists what does, and a server in a container is \
                 asked by `docker`, `podman` or `kubernetes`"
            ));
        }
        let holders = sockets::holders(&self.proc, &sockets, table.iter().map(|process| process.pid));
        // One that is not seen could begin anew unseen.
        match sockets.iter().find(|(inode, _)| !holders.held.contains(inode)) {
            None => Ok(holders.processes),
            Some((_, user)) if holders.refused => Err(format!(
                "this user may not see which process of user {user} listens on port {port}; run as that user or as root"
            )),
            Some((_, user)) => Err(format!(
                "no process that is seen here holds the socket of user {user} that listens on port {port}; it may be outside \
                 of this container, or on a `/proc` that hides it: run on the host, or as root"
            )),
        }
    }
}
