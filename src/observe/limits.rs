//! What one reply may take of memory. A reply beyond a limit ends as a protocol error or is counted without being kept;
//! it never stops the run.

/// Longest line of an event stream, in bytes. Real events reach some hundred kilobytes (whole tool calls, log
/// probabilities); far above that it is not an event.
pub(super) const LINE: usize = 8 << 20;
/// Longest data of one event, all its lines together, in bytes.
pub(super) const EVENT: usize = 16 << 20;
/// Longest body that is read as one JSON document, in bytes.
pub(super) const JSON_BODY: usize = 64 << 20;
/// How much is read of a body that is kept only to say what went wrong, in bytes.
pub(super) const ERROR_BODY: usize = 16 << 10;
/// Longest JSON that is taken apart for the error in it, in bytes; a longer one is quoted from its beginning.
pub(super) const ERROR_JSON: usize = 1 << 20;
/// Kept text of one reply, all texts and choices together, in bytes.
pub(super) const TEXT: usize = 1 << 20;
/// Length of an error text, in characters.
pub(super) const ERROR_TEXT: usize = 500;
/// Recorded gaps between output chunks; later ones are still counted.
pub(super) const GAPS: usize = 65_536;
/// Choices, and tool calls of a choice, that are told apart.
pub(super) const INDICES: usize = 128;
