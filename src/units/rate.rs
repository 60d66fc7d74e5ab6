//! Arrival rates and offered loads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{UnitError, format_scaled, parse_scaled, split_unit};

/// An arrival rate, an integer number of thousandths of a request per second; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Rate {
    milli: u64,
}

impl Rate {
    /// The highest rate that can be asked for: a million requests per second.
    pub const MAX_MILLI: u64 = 1_000_000_000;

    /// A rate of `milli` thousandths of a request per second; `None` when zero or above [`Rate::MAX_MILLI`].
    pub fn from_milli(milli: u64) -> Option<Self> {
        (1..=Self::MAX_MILLI).contains(&milli).then_some(Self { milli })
    }

    /// Thousandths of a request per second.
    pub fn milli(self) -> u64 {
        self.milli
    }

    /// Requests per second.
    pub fn per_second(self) -> f64 {
        self.milli as f64 / 1e3
    }

    /// Reads `4/s`, `0.5/s` or `30/m`.
    ///
    /// # Errors
    /// When the unit is missing, or the number is none, zero, finer than a thousandth per second or beyond the maximum.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = split_unit(text.trim());
        let milli = match unit {
            "/s" => parse_scaled(digits, 1_000),
            "/m" => parse_scaled(digits, 1_000).filter(|v| v % 60 == 0).map(|v| v / 60),
            _ => None,
        };
        milli.and_then(Self::from_milli).ok_or_else(|| UnitError {
            written: text.to_owned(),
            expected: "a rate; write a number above zero and `/s`, as in `4/s` or `0.5/s` (steps of 0.001/s)",
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", format_scaled(self.milli, 1_000))
    }
}

/// What one step asks of the endpoint: an offered load (open loop) or a number of clients (closed loop).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Open loop: arrivals per second, in thousandths.
    RateMilli(Rate),
    /// Closed loop: clients that each send their next request when the reply to the last one has ended.
    Clients(u32),
}

impl Load {
    /// The arrivals per second that the schedule asks for; a closed loop asks for none.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::RateMilli(rate) => Some(rate),
            Self::Clients(_) => None,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateMilli(rate) => rate.fmt(f),
            Self::Clients(1) => write!(f, "1 client"),
            Self::Clients(clients) => write!(f, "{clients} clients"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_unit_and_are_never_zero() {
        for (text, milli) in [("4/s", 4_000), ("0.5/s", 500), ("30/m", 500), ("2.493/s", 2_493), ("4 /s", 4_000)] {
            assert_eq!(Rate::parse(text).map(Rate::milli), Ok(milli), "{text}");
        }
        for text in ["4", "0/s", "4/h", "0.0001/s", "-1/s", "x/s", "1000001/s", "1/m"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        assert_eq!(Rate::from_milli(2_500).map(|r| r.to_string()).as_deref(), Some("2.5/s"));
    }
}
