//! What looks like a secret, so that it is refused, and never shown when it is.

/// Header names whose value is a secret by their meaning.
const SECRET_HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"];
/// Parts of header and option names that tell the same.
const SECRET_PARTS: [&str; 9] =
    ["access-key", "access_key", "accesskey", "api-key", "api_key", "apikey", "secret", "password", "passwd"];
/// How secrets begin: authorization schemes and the prefixes of well-known token formats.
const SECRET_STARTS: [&str; 9] = ["bearer ", "basic ", "token ", "sk-", "hf_", "ghp_", "github_pat_", "xoxb-", "eyj"];

/// Whether a name (of a header, an option, a query parameter) says that its value is a secret.
pub(super) fn name_says_so(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&name.as_str())
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || name == "token"
        || ["-token", "_token"].iter().any(|end| name.ends_with(end))
}

/// Whether a value begins like a secret and goes on.
pub(super) fn value_looks_so(value: &str) -> bool {
    let value = value.trim_start().to_ascii_lowercase();
    SECRET_STARTS.iter().any(|start| value.strip_prefix(start).is_some_and(|rest| !rest.trim().is_empty()))
}

/// Whether the value at a pointer may be a secret that somebody wrote by mistake.
pub(super) fn pointer_may_hold(pointer: &str) -> bool {
    pointer.contains("/headers/")
}

/// Whether a source line may hold a secret; better a line too many than a token in a log.
pub(super) fn line_may_hold(line: &str) -> bool {
    // With or without a scheme: `http://me:pw@host/` and `me:pw@host/`.
    let credentials = line.split_once("://").is_some_and(|(_, rest)| rest.contains('@'))
        || line.split_whitespace().any(|word| word.split_once(':').is_some_and(|(_, rest)| rest.contains('@')));
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let lower = line.to_ascii_lowercase();
    credentials
        || words.clone().any(name_says_so)
        || words.clone().any(value_looks_so)
        || ["bearer ", "basic "].iter().any(|scheme| lower.contains(scheme))
}

/// Whether the arguments of a command hold a secret: the index of the argument.
pub(super) fn in_command(arguments: &[&str]) -> Option<usize> {
    arguments.iter().enumerate().position(|(index, argument)| {
        let option = |text: &str| text.starts_with("--") && name_says_so(text.trim_start_matches('-'));
        let joined = argument.split_once('=').is_some_and(|(name, value)| option(name) && is_literal(value));
        let follows = index > 0 && option(arguments[index - 1]) && is_literal(argument);
        let header = argument
            .split_once(':')
            .is_some_and(|(name, value)| name_says_so(name.trim()) && is_literal(value.trim_start()));
        // `env API_KEY=… program`, `docker run -e API_KEY=…`, and addresses with a user and a password.
        let variable = argument.split_once('=').is_some_and(|(name, value)| name_says_so(name) && is_literal(value));
        let credentials = argument.split_once("://").is_some_and(|(_, rest)| {
            rest.split(['/', '?', '#']).next().is_some_and(|host| {
                host.split_once('@')
                    .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, word)| is_literal(word)))
            })
        });
        joined || follows || header || variable || credentials || value_looks_so(argument)
    })
}

/// A value that is written out, not one that a shell takes from its environment.
fn is_literal(value: &str) -> bool {
    !value.is_empty() && !value.starts_with('-') && !value.contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_secrets_are_known() {
        for name in [
            "access_key_id",
            "Authorization",
            "X-API-Key",
            "api-key",
            "Cookie",
            "x-auth-token",
            "client_secret",
            "token",
        ] {
            assert!(name_says_so(name), "{name}");
        }
        for name in ["x-request-id", "anthropic-version", "max_tokens", "x-max-tokens", "Idempotency-Key"] {
            assert!(!name_says_so(name), "{name}");
        }
        for value in ["Bearer abc", "basic Zm9v", "sk-123", "hf_abc", "eyJhbGciOi"] {
            assert!(value_looks_so(value), "{value}");
        }
        for value in ["Bearer ", "2023-06-01", "skill", "tokens"] {
            assert!(!value_looks_so(value), "{value}");
        }
    }

    #[test]
    fn secrets_in_commands_are_found_unless_the_environment_gives_them() {
        assert_eq!(in_command(&["vllm", "serve", "--api-key", "abc"]), Some(3));
        assert_eq!(in_command(&["vllm", "--api-key=abc"]), Some(1));
        assert_eq!(in_command(&["curl", "-H", "Authorization: Bearer abc"]), Some(2));
        assert_eq!(in_command(&["sh", "-c", "curl -H \"Authorization: Bearer $TOKEN\" http://h/"]), None);
        assert_eq!(in_command(&["vllm", "serve", "--port", "8000"]), None);
        assert_eq!(in_command(&["env", "API_KEY=abc", "vllm"]), Some(1));
        assert_eq!(in_command(&["docker", "run", "-e", "AWS_SECRET_ACCESS_KEY=abc"]), Some(3));
        assert_eq!(in_command(&["docker", "run", "-e", "AWS_SECRET_ACCESS_KEY", "-e", "MAX_TOKENS=5"]), None);
        assert_eq!(in_command(&["env", "API_KEY=$OTHER", "vllm"]), None);
        assert_eq!(in_command(&["store", "postgres://me:pw@host/db"]), Some(1));
        for address in ["http://host:8000/a@b", "git@host:repo", "http://me@host/", "http://me:$PW@host/"] {
            assert_eq!(in_command(&["store", address]), None, "{address}");
        }
    }

    #[test]
    fn lines_with_credentials_are_not_shown() {
        for line in ["url: http://me:pw@host/", "url: me:pw@host/v1", "X-Api-Key: abc", "  - sk-abc", "a: \"Bearer x\""]
        {
            assert!(line_may_hold(line), "{line}");
        }
        for line in ["url: http://host/v1", "owner: me@host", "timeout: 3", "payload: { max_tokens: 3 }"] {
            assert!(!line_may_hold(line), "{line}");
        }
    }
}
