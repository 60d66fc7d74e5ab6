//! The `kernel_log` probe: how many lines of the kernel's log hold a text.

mod device;
mod printed;

use std::path::PathBuf;
use std::time::Duration;

use device::Device;
use printed::Printed;

use super::run_command::Capture;
use super::{Answer, Context, command, nameless};
use crate::contract::KernelLogSource;

/// The most output of a command that is looked at, in bytes: as much as the largest buffers that kernels are built with.
const OUTPUT_LIMIT: usize = 16 * 1024 * 1024;

/// Lines of the kernel's log that hold a text: those in its buffer at first, and those that came since.
#[derive(Debug)]
pub(super) struct KernelLog {
    contains: String,
    log: Log,
}

#[derive(Debug)]
enum Log {
    Device(Device),
    Command { command: Vec<String>, folder: PathBuf, printed: Printed },
}

impl KernelLog {
    pub(super) fn new(source: &KernelLogSource, context: &Context) -> Self {
        let log = match &source.command {
            None => Log::Device(Device::new(PathBuf::from("/dev/kmsg"))),
            Some(command) => {
                Log::Command { command: command.clone(), folder: context.folder.clone(), printed: Printed::default() }
            }
        };
        Self { contains: source.contains.clone(), log }
    }

    pub(super) async fn read(&mut self) -> Answer {
        let count = match &mut self.log {
            Log::Device(device) => device.count(&self.contains).await?,
            Log::Command { command, folder, printed } => {
                let mut stdout = Capture::first(OUTPUT_LIMIT);
                // The prober gives up in time, which kills the command.
                let status = command::status(command, folder, Duration::MAX, &mut stdout).await?;
                if let Some(failure) = status.failure() {
                    return Err(failure);
                }
                if stdout.is_cut() {
                    return Err(format!(
                        "printed more than {OUTPUT_LIMIT} bytes; let it print the kernel's log since the boot"
                    ));
                }
                printed.count(&stdout.lossy(), &self.contains)?
            }
        };
        Ok(nameless(count as f64))
    }
}
