//! Intervals, tests and quantiles.
