//! Values that must not appear in any file, log or error.

use std::borrow::Cow;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// What stands in place of a secret.
const MASK: &str = "***";

/// Shorter values are not masked: they would blot out ordinary text and protect nothing.
const SHORTEST: usize = 4;

/// The secrets of a run: header values that came from the environment.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<SecretString>,
}

impl Secrets {
    /// Adds a value to mask.
    pub fn add(&mut self, value: &str) {
        if value.len() >= SHORTEST {
            self.values.push(SecretString::from(value));
        }
    }

    /// The text with every secret in it replaced.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in self.values.iter().map(ExposeSecret::expose_secret) {
            if masked.contains(secret) {
                masked = Cow::Owned(masked.replace(secret, MASK));
            }
        }
        masked
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-token");
        secrets.add("ab");
        assert_eq!(secrets.mask("Bearer hunter2-token, abc"), "Bearer ***, abc");
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }
}
