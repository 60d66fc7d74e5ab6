//! The headers that a contract names, with their values from the environment.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::Secrets;
use crate::contract::{Header, HeaderSource};

/// A header that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Its variable is not set.
    #[error("header `{header}`: the environment variable `{variable}` is not set; set it to the secret before the run")]
    Variable {
        /// The header.
        header: String,
        /// The variable.
        variable: String,
    },
    /// Its variable is set to nothing.
    #[error("header `{header}`: the environment variable `{variable}` is empty; set it to the secret before the run")]
    Empty {
        /// The header.
        header: String,
        /// The variable.
        variable: String,
    },
    /// HTTP does not allow it.
    #[error("header `{header}`: {problem}")]
    Invalid {
        /// The header.
        header: String,
        /// What is wrong.
        problem: String,
    },
}

/// Puts the headers of a contract into a map, in place of those of the same name. Values that come from the environment are
/// secrets: they are added to these.
///
/// # Errors
/// When a variable is missing or empty, or HTTP does not allow a header.
pub fn add_headers(map: &mut HeaderMap, headers: &[Header], secrets: &mut Secrets) -> Result<(), HeaderError> {
    for header in headers {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|error| HeaderError::Invalid { header: header.name.clone(), problem: error.to_string() })?;
        let mut value = match &header.value {
            HeaderSource::Literal(text) => header_value(&header.name, text)?,
            HeaderSource::Environment { variable, prefix } => {
                let secret = std::env::var(variable)
                    .map_err(|_| HeaderError::Variable { header: header.name.clone(), variable: variable.clone() })?;
                if secret.trim().is_empty() {
                    return Err(HeaderError::Empty { header: header.name.clone(), variable: variable.clone() });
                }
                secrets.add(secret.trim());
                header_value(&header.name, &format!("{prefix}{}", secret.trim()))?
            }
        };
        value.set_sensitive(matches!(header.value, HeaderSource::Environment { .. }));
        map.insert(name, value);
    }
    Ok(())
}

/// A header's value.
///
/// # Errors
/// When HTTP does not allow it.
pub fn header_value(header: &str, text: &str) -> Result<HeaderValue, HeaderError> {
    HeaderValue::from_str(text).map_err(|_| HeaderError::Invalid {
        header: header.to_owned(),
        problem: "its value holds characters that HTTP does not allow, such as a line end".to_owned(),
    })
}
