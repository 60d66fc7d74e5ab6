//! What was observed, in versioned form: [`model`], [`grade`] and [`summary`] are pure, `store` puts records on disk.

mod audit;
mod baseline;
mod capacity;
mod comparable;
mod comparison;
mod fingerprint;
pub mod grade;
pub mod model;
mod probes;
mod schema;
mod store;
pub mod summary;
mod told;

pub use audit::{AUDIT_SCHEMA, AuditRecord, AuditTrial, MachineRecord};
pub use baseline::*;
pub use capacity::{Binding, CapacityRecord, SearchEnd, SearchRecord};
pub use comparable::contract_part;
pub use comparison::{Calibration, CalibrationRow, Change, Comparison, Difference, Weakening};
pub use fingerprint::{Fingerprint, Origin};
pub use grade::grade;
pub use model::*;
pub use probes::ReadAt;
pub use schema::{audit_schema, baseline_schema, request_schema, result_schema};
pub use store::{
    RecordSink, RequestLog, RunFolder, StoreError, read_audit, read_kept, read_requests, read_result, write_whole,
};
pub use summary::{
    Hopeless, TrialAccumulator, TrialFacts, quantiles, resource_records, settle, summarise_step, summarise_trial,
};
