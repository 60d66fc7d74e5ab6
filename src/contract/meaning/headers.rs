//! Extra request headers. Values that are secrets come from environment variables and from nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderName, HeaderValue};

use super::Meaning;
use crate::contract::document::join;
use crate::contract::model::{Header, HeaderSource};
use crate::contract::{raw, secrets};

/// Headers that the connection and the protocol set themselves.
const OWNED: [&str; 17] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-version",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Meaning<'_> {
    pub(super) fn headers(
        &mut self,
        written: BTreeMap<String, Option<raw::HeaderValue>>,
        at: &str,
    ) -> Option<Vec<Header>> {
        let mut headers = Some(Vec::with_capacity(written.len()));
        let mut seen = BTreeSet::new();
        for (name, value) in written {
            let pointer = join(at, &name);
            let name = self.header_name(&name, &pointer);
            if let Some(name) = name.as_ref().filter(|name| !seen.insert((*name).clone())) {
                let message = format!("the header `{name}` is written twice; names are alike in upper and lower case");
                self.fault_at_key(&pointer, message);
                headers = None;
            }
            let value = value.and_then(|value| self.header_value(name.as_deref(), value, &pointer));
            headers = match (headers, name, value) {
                (Some(mut headers), Some(name), Some(value)) => {
                    headers.push(Header { name, value });
                    Some(headers)
                }
                _ => None,
            };
        }
        headers
    }

    fn header_name(&mut self, written: &str, pointer: &str) -> Option<String> {
        let Ok(name) = HeaderName::from_bytes(written.as_bytes()) else {
            self.fault_at_key(pointer, "not a header's name; write letters, digits and `-`");
            return None;
        };
        let name = name.as_str().to_owned();
        if OWNED.contains(&name.as_str()) || name.starts_with("proxy-conn") {
            self.fault_at_key(pointer, format!("the header `{name}` is set by the protocol itself; remove it"));
            return None;
        }
        Some(name)
    }

    /// The source of a value. No message repeats the value: it may be a secret.
    fn header_value(&mut self, name: Option<&str>, written: raw::HeaderValue, pointer: &str) -> Option<HeaderSource> {
        let (text, source) = match written {
            raw::HeaderValue::Environment(written) => {
                let prefix = written.prefix.unwrap_or_default();
                let source = HeaderSource::Environment { variable: written.env?.0, prefix: prefix.clone() };
                (prefix, source)
            }
            raw::HeaderValue::Literal(text) => (text.clone(), HeaderSource::Literal(text)),
        };
        let literal = matches!(source, HeaderSource::Literal(_));
        if secrets::value_looks_so(&text) || literal && name.is_some_and(secrets::name_says_so) {
            let prefix = scheme(&text).map(|scheme| format!(", prefix: \"{scheme} \"")).unwrap_or_default();
            let message = format!(
                "a secret must not be written in a contract; put it into an environment variable and write `{{ env: VARIABLE{prefix} }}`"
            );
            self.fault_at_key(pointer, message);
            return None;
        }
        if HeaderValue::from_str(&text).is_err() {
            self.fault(pointer, "a header's value is one line of visible ASCII characters; remove the others");
            return None;
        }
        Some(source)
    }
}

/// The authorization scheme that a literal value begins with.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(' ')?;
    ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str()).then_some(scheme)
}
