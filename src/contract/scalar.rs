//! Plain YAML scalars to JSON values, by the core schema of YAML 1.2.

use serde_json::{Number, Value};

/// Resolves a plain scalar. What looks like a number but cannot be one in JSON is a fault, told as a fragment.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is not a finite number; write one, or put the text in quotes"));
    }
    if is_digits(unsigned) {
        return integer(text);
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) =
            text.strip_prefix(prefix).filter(|d| d.chars().all(|c| c.is_digit(radix)) && !d.is_empty())
        {
            return u64::from_str_radix(digits, radix).map(Value::from).map_err(|_| too_large());
        }
    }
    if is_decimal(unsigned) {
        return text
            .parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| "the number is too large to be kept; write one below 1e308".to_owned());
    }
    Ok(Value::String(text.to_owned()))
}

fn integer(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('+').unwrap_or(text);
    text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<i64>().map(Value::from)).map_err(|_| too_large())
}

fn too_large() -> String {
    "the number does not fit into 64 bits; write a smaller one, or put it in quotes if it is a text".to_owned()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `1.5`, `.5`, `1.`, `1e3`, without sign.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_is_number = match (whole, fraction) {
        ("", fraction) => is_digits(fraction),
        (whole, "") => is_digits(whole),
        (whole, fraction) => is_digits(whole) && is_digits(fraction),
    };
    mantissa_is_number && exponent.is_none_or(is_digits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_resolve_as_the_core_schema_says() {
        // YAML 1.2.2, section 10.3.2, and the texts that contracts are full of.
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("True", json!(true)),
            ("FALSE", json!(false)),
            ("0", json!(0)),
            ("-19", json!(-19)),
            ("+12", json!(12)),
            ("0o7", json!(7)),
            ("0x3A", json!(58)),
            ("0.", json!(0.0)),
            ("-0.5", json!(-0.5)),
            (".5", json!(0.5)),
            ("12e03", json!(12000.0)),
            ("-2E+05", json!(-200_000.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("yes", json!("yes")),
            ("75ms", json!("75ms")),
            ("4/s", json!("4/s")),
            ("99%", json!("99%")),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("-", json!("-")),
            ("1.2.3", json!("1.2.3")),
            ("0x", json!("0x")),
            ("inf", json!("inf")),
        ] {
            assert_eq!(resolve(text), Ok(value), "{text}");
        }
        for text in [
            ".nan",
            ".NaN",
            ".inf",
            "-.INF",
            "18446744073709551616",
            "-9223372036854775809",
            "1e999",
            "0xFFFFFFFFFFFFFFFFF",
        ] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }
}
