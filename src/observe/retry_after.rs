//! The `Retry-After` header: seconds, or a date.

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// A moment that was past when this was written, in seconds since 1970: 1 November 2026. There is no clock here; a reply
/// without a `Date` header still tells that it need not be waited for when it names a moment before this one.
const SURELY_PAST: i64 = 1_793_491_200;

/// Seconds to wait by a `Retry-After` of `value`, where a date is taken relative to the reply's own `date`. A date that has
/// passed is 0; `None` when it cannot be known.
pub(super) fn seconds(value: &str, date: Option<&str>) -> Option<u64> {
    let value = value.trim();
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok();
    }
    let until = http_date(value)?;
    match date.and_then(http_date) {
        Some(now) => Some(u64::try_from(until - now).unwrap_or(0)),
        None => (until <= SURELY_PAST).then_some(0),
    }
}

/// Seconds since 1970 of an HTTP date in the form that is sent today (`Sun, 06 Nov 1994 08:49:37 GMT`).
fn http_date(text: &str) -> Option<i64> {
    let zoned = rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    zoned.map(Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (value, date, expected) in [
            ("7", None, Some(7)),
            (" 120 ", date, Some(120)),
            ("0", None, Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", date, Some(0)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None, Some(0)),
            ("Fri, 31 Dec 2100 23:59:59 GMT", None, None),
            ("soon", date, None),
            ("-3", date, None),
            ("", date, None),
            ("99999999999999999999", None, None),
        ] {
            assert_eq!(seconds(value, date), expected, "{value:?} at {date:?}");
        }
    }
}
