//! Shares of a whole, in parts per million.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{UnitError, format_scaled, parse_scaled, split_unit};

/// A share of a whole between 0 and 1, kept as parts per million so that a count times a share rounds alike everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Share {
    ppm: u32,
}

impl Share {
    /// The whole.
    pub const ONE: Self = Self { ppm: 1_000_000 };

    /// A share of `ppm` parts per million; `None` above one million.
    pub fn from_ppm(ppm: u32) -> Option<Self> {
        (ppm <= 1_000_000).then_some(Self { ppm })
    }

    /// `part / whole`, rounded down to a part per million so that 100 % is shown for the whole alone; `None` when the
    /// whole is zero or smaller than the part.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        if whole == 0 || part > whole {
            return None;
        }
        let ppm = u128::from(part) * 1_000_000 / u128::from(whole);
        u32::try_from(ppm).ok().and_then(Self::from_ppm)
    }

    /// Parts per million.
    pub fn ppm(self) -> u32 {
        self.ppm
    }

    /// The share as a fraction of one.
    pub fn fraction(self) -> f64 {
        f64::from(self.ppm) / 1e6
    }

    /// What is left of the whole: the error budget of an objective with this quantile or floor.
    pub fn rest(self) -> Self {
        Self { ppm: 1_000_000 - self.ppm }
    }

    /// `⌊share · n⌋`, exactly.
    pub fn floor_of(self, n: u64) -> u64 {
        (u128::from(n) * u128::from(self.ppm) / 1_000_000) as u64
    }

    /// The nearest rank `⌈share · n⌉` of a quantile in `n` sorted values, at least 1.
    pub fn nearest_rank(self, n: u64) -> u64 {
        ((u128::from(n) * u128::from(self.ppm)).div_ceil(1_000_000) as u64).max(1)
    }

    /// Reads `99%` or `99.95%`.
    ///
    /// # Errors
    /// When the sign is missing, the number is none, finer than a part per million, or above 100 %.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = split_unit(text.trim());
        (unit == "%")
            .then(|| parse_scaled(digits, 10_000))
            .flatten()
            .and_then(|ppm| u32::try_from(ppm).ok())
            .and_then(Self::from_ppm)
            .ok_or_else(|| UnitError {
                written: text.to_owned(),
                expected: "a share; write a number from 0 to 100 and `%`, as in `99.9%`",
            })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", format_scaled(u64::from(self.ppm), 10_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        let b = Share::parse("99.9%").map(Share::rest);
        assert_eq!(b.clone().map(Share::ppm), Ok(1_000));
        assert_eq!(b.map(|b| b.floor_of(2_999)), Ok(2));
        assert_eq!(Share::parse("99%").map(|q| q.nearest_rank(100)), Ok(99));
        assert_eq!(Share::parse("99%").map(|q| q.nearest_rank(101)), Ok(100));
        assert_eq!(Share::of(999_999_999, 1_000_000_000).map(Share::ppm), Some(999_999));
        for text in ["99", "101%", "-1%", "99.99999%", "%", "nan%"] {
            assert!(Share::parse(text).is_err(), "{text}");
        }
    }
}
