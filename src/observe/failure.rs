//! What a server says went wrong, as one bounded text. It is data from elsewhere: kept as it is, and escaped by whoever
//! shows it.

use serde_json::Value;

use super::limits;

/// Characters quoted of a body that is not what was asked for.
const EXCERPT: usize = 200;

/// The text without blanks around, cut to [`limits::ERROR_TEXT`] characters.
pub(super) fn bounded(text: &str) -> String {
    cut(text, limits::ERROR_TEXT)
}

/// The beginning of a body that is not what was asked for.
pub(super) fn excerpt(body: &[u8]) -> String {
    let beginning = &body[..body.len().min(4 * EXCERPT)];
    cut(&String::from_utf8_lossy(beginning), EXCERPT)
}

fn cut(text: &str, characters: usize) -> String {
    let text = text.trim();
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

/// Whether the value of an `error` field reports an error: `null`, `false`, an empty text and an empty object do not.
pub(super) fn is_error(raw: &str) -> bool {
    let bare: String = raw.chars().filter(|c| !c.is_ascii_whitespace()).take(6).collect();
    !matches!(bare.as_str(), "" | "null" | "false" | "\"\"" | "{}")
}

/// The message of an error in JSON, whatever its usual shapes: a text, `message`, `error.message`, `error`, `detail`. The
/// JSON itself where none of them is found.
pub(super) fn message(json: &str) -> String {
    let value = if json.len() > limits::ERROR_JSON { None } else { serde_json::from_str::<Value>(json).ok() };
    bounded(&value.as_ref().and_then(find).unwrap_or_else(|| json.to_owned()))
}

/// The message of an error in a body of any kind: JSON, an event stream with an error event, or the text itself.
pub(super) fn body_message(body: &[u8]) -> Option<String> {
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    if body.starts_with(['{', '[']) {
        return Some(message(body));
    }
    let data = body.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
    let text = data.filter(|data| data.starts_with('{')).map_or_else(|| bounded(body), message);
    (!text.is_empty()).then_some(text)
}

/// Whether a whole JSON body reports an error: `error` at its top (some servers wrap it in a list), or the older flat form.
pub(super) fn in_body(body: &str) -> Option<String> {
    let value: Value = if body.len() > limits::ERROR_JSON { return None } else { serde_json::from_str(body).ok()? };
    let top = value.get(0).unwrap_or(&value);
    let flat = top.get("object").is_some_and(|object| object == "error");
    let inner = top.get("error").is_some_and(|error| is_error(&error.to_string()));
    (flat || inner).then(|| bounded(&find(top).unwrap_or_else(|| top.to_string())))
}

fn find(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => items.first().and_then(find),
        Value::Object(map) => ["error", "message", "detail", "msg", "error_description", "title"]
            .into_iter()
            .find_map(|key| map.get(key).and_then(find)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_in_their_usual_shapes() {
        for (body, expected) in [
            (r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#, "slow down"),
            (r#"{"error":"too long","error_type":"validation"}"#, "too long"),
            (r#"{"object":"error","message":"exceeds","code":400}"#, "exceeds"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required"),
            (r#"[{"error":{"code":503,"message":"overloaded"}}]"#, "overloaded"),
            (r#"{"code":7}"#, r#"{"code":7}"#),
            ("event: error\ndata: {\"error\":{\"message\":\"engine died\"}}\n\n", "engine died"),
            ("  upstream connect error\n", "upstream connect error"),
            ("{\"error\": cut", "{\"error\": cut"),
        ] {
            assert_eq!(body_message(body.as_bytes()).as_deref(), Some(expected), "{body}");
        }
        assert_eq!(body_message(b" \r\n"), None);
    }

    #[test]
    fn empty_errors_report_none() {
        for (raw, expected) in [
            ("null", false),
            ("false", false),
            ("\"\"", false),
            ("{ }", false),
            ("\"x\"", true),
            ("{\"code\":1}", true),
            ("true", true),
        ] {
            assert_eq!(is_error(raw), expected, "{raw}");
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "é".repeat(3 * limits::ERROR_TEXT);
        assert_eq!(bounded(&long).chars().count(), limits::ERROR_TEXT);
        assert_eq!(excerpt(long.as_bytes()).chars().count(), EXCERPT);
    }
}
