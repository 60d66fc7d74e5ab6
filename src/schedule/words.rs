//! The one source of chance: ChaCha8 words by seed and stream (method, section 3.1).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The stream that arrival instants are drawn from.
pub const ARRIVAL_STREAM: u64 = 0;
/// The stream that the order of cases is drawn from.
pub const CASE_STREAM: u64 = 1;

/// Random 64-bit words: ChaCha with 8 rounds, key = seed (little endian) followed by zeros, 64-bit stream id.
#[derive(Debug, Clone)]
pub struct Words {
    generator: ChaCha8Rng,
}

impl Words {
    /// The words of `seed` in `stream`, from the first.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self { generator }
    }

    /// The next word.
    pub fn next_word(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// The next word scaled to `0..below`: `⌊word · below / 2⁶⁴⌋`.
    pub fn next_below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next_word()) * u128::from(below)) >> 64) as u64
    }
}
