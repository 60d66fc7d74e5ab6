//! What identifies the machine at hand.

use std::fs;

use crate::record::MachineRecord;

/// The machine at hand, as far as it tells. What it does not tell is missing.
pub(super) fn machine() -> MachineRecord {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    MachineRecord {
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu_model: value_of(&read("/proc/cpuinfo"), "model name").map(str::to_owned),
        cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        kernel: Some(read("/proc/sys/kernel/osrelease").trim().to_owned()).filter(|release| !release.is_empty()),
        memory_bytes: value_of(&read("/proc/meminfo"), "MemTotal").and_then(bytes),
    }
}

/// The value of the first line `name : value`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

/// Reads `8150036 kB`.
fn bytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let cpus = "processor\t: 0\nmodel name\t: A CPU @ 2: fast\n\nprocessor\t: 1\nmodel name\t: Another\n";
        assert_eq!(value_of(cpus, "model name"), Some("A CPU @ 2: fast"));
        assert_eq!(value_of("processor\t: 0\nBogoMIPS\t: 50\n", "model name"), None);
        let memory = "MemFree:   1 kB\nMemTotal:        8150036 kB\n";
        assert_eq!(value_of(memory, "MemTotal").and_then(bytes), Some(8_150_036 * 1_024));
        assert_eq!((bytes("12"), bytes("many kB"), bytes("18446744073709551615 kB")), (None, None, None));
    }
}
