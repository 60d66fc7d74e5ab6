//! What a listener hears who starts to play at the first sound.

use std::num::NonZeroU64;

use super::duration_ns;

/// Pieces of sound as they arrive, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Playback {
    bytes_per_second: NonZeroU64,
    first_ns: Option<u64>,
    bytes: u64,
    underrun_ns: u64,
}

impl Playback {
    /// Nothing has arrived yet of sound that takes so many bytes for a second.
    pub fn new(bytes_per_second: NonZeroU64) -> Self {
        Self { bytes_per_second, first_ns: None, bytes: 0, underrun_ns: 0 }
    }

    /// `bytes` of sound arrived at `at_ns`.
    pub fn piece(&mut self, at_ns: u64, bytes: u64) {
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        let waited = at_ns.saturating_sub(first_ns).saturating_sub(self.duration_ns());
        self.underrun_ns = self.underrun_ns.max(waited);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// How long the sound lasts that has arrived, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        duration_ns(self.bytes, self.bytes_per_second)
    }

    /// How long the listener ran dry in all, in nanoseconds.
    ///
    /// With tᵢ the arrival of piece i and Dᵢ the duration of all pieces before it, a listener who has stalled for S in all
    /// has played up to t₁ + S + Dᵢ when the sound before piece i is over, so S grows to tᵢ − t₁ − Dᵢ where that is more. The sum
    /// of all stalls is therefore the largest of tᵢ − t₁ − Dᵢ, and at least 0. Cutting a piece in two that arrive together
    /// changes nothing.
    pub fn underrun_ns(&self) -> u64 {
        self.underrun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Pieces as (arrival in ms, ms of sound), at 1000 bytes a second.
    #[track_caller]
    fn check(pieces: &[(u64, u64)], expected_ms: u64) {
        let mut playback = Playback::new(NonZeroU64::new(1_000).unwrap());
        for (at_ms, bytes) in pieces {
            playback.piece(at_ms * MS, *bytes);
        }
        // A player that is simulated piece by piece must have waited for as long.
        let (mut plays_until, mut stalled) = (pieces.first().map_or(0, |first| first.0), 0);
        for (at_ms, lasts_ms) in pieces {
            stalled += at_ms.saturating_sub(plays_until);
            plays_until = plays_until.max(*at_ms) + lasts_ms;
        }
        assert_eq!((playback.underrun_ns(), stalled), (expected_ms * MS, expected_ms), "{pieces:?}");
        assert_eq!(playback.duration_ns(), pieces.iter().map(|piece| piece.1).sum::<u64>() * MS);
    }

    #[test]
    fn a_listener_runs_dry_for_as_long_as_nothing_is_left_to_play() {
        check(&[], 0);
        check(&[(500, 100)], 0);
        check(&[(0, 100), (50, 100), (200, 100)], 0);
        check(&[(0, 100), (150, 100)], 50);
        // Two stalls of 50 and 30 ms add up, and what came early afterwards takes none of it back.
        check(&[(10, 100), (160, 100), (290, 500), (300, 100)], 80);
        check(&[(0, 100), (150, 50), (150, 50), (150, 10)], 50);
    }
}
