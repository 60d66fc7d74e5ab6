//! The order in which cases are sent (method, section 3.1).

use crate::schedule::{CASE_STREAM, Words};

/// Endless indices into the cases: pass after pass, each a Fisher–Yates shuffle, so that every case is sent equally often.
#[derive(Debug, Clone)]
pub struct CaseOrder {
    words: Words,
    pass: Vec<usize>,
    next: usize,
}

impl CaseOrder {
    /// The order of `cases` cases under `seed`; with no case there is no order and the iterator is empty.
    pub fn new(cases: usize, seed: u64) -> Self {
        Self { words: Words::new(seed, CASE_STREAM), pass: (0..cases).collect(), next: cases }
    }

    fn shuffle(&mut self) {
        for (index, slot) in self.pass.iter_mut().enumerate() {
            *slot = index;
        }
        for i in (1..self.pass.len()).rev() {
            let j = self.words.next_below(i as u64 + 1) as usize;
            self.pass.swap(i, j);
        }
        self.next = 0;
    }
}

impl Iterator for CaseOrder {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next == self.pass.len() {
            self.shuffle();
        }
        let index = self.pass.get(self.next).copied();
        self.next += 1;
        index
    }
}
