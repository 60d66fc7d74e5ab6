//! Rust text to tokens and paths: as much of the language as the rules need, without a parser.

/// A word, a number, `::` or one sign. Comments are gone; a literal is the token `"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A path as it stands in the text: `crate::units::Rate`, also out of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Its segments; `*` for a glob.
    pub(crate) segments: Vec<String>,
    /// The name it gets by `as`.
    pub(crate) alias: Option<String>,
    /// Inline modules around it, outermost first.
    pub(crate) inside: Vec<String>,
    /// Whether it stands in a `pub use`.
    pub(crate) exposed: bool,
    pub(crate) line: usize,
}

/// Splits Rust text into tokens.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let (end, token) = next_token(&chars, at);
        if let Some(text) = token {
            found.push(Token { text, line });
        }
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    found
}

/// Where the token at `at` ends, and its text unless it is blank or a comment.
fn next_token(chars: &[char], at: usize) -> (usize, Option<String>) {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match (chars[at], next(1)) {
        (c, _) if c.is_whitespace() => (at + 1, None),
        ('/', '/') => (find(chars, at, |rest| rest[0] == '\n'), None),
        ('/', '*') => (block_comment_end(chars, at), None),
        ('"', _) => (quoted_end(chars, at, '"'), Some("\"".to_owned())),
        ('\'', '\\') => (quoted_end(chars, at, '\''), Some("\"".to_owned())),
        ('\'', _) if next(2) == '\'' => (at + 3, Some("\"".to_owned())),
        (':', ':') => (at + 2, Some("::".to_owned())),
        (c, _) if is_word(&c) => {
            let end = find(chars, at, |rest| !is_word(&rest[0]));
            literal_after_prefix(chars, at, end).map_or_else(
                || (end, Some(chars[at..end].iter().collect())),
                |literal_end| (literal_end, Some("\"".to_owned())),
            )
        }
        (c, _) => (at + 1, Some(c.to_string())),
    }
}

/// The first place from `at` whose rest of the text is so, or the end.
fn find(chars: &[char], at: usize, is_so: impl Fn(&[char]) -> bool) -> usize {
    (at..chars.len()).find(|place| is_so(&chars[*place..])).unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut place = at;
    while place < chars.len() {
        match (chars[place], chars.get(place + 1)) {
            ('/', Some('*')) => (depth, place) = (depth + 1, place + 2),
            ('*', Some('/')) => (depth, place) = (depth - 1, place + 2),
            _ => place += 1,
        }
        if depth == 0 {
            return place;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], at: usize, quote: char) -> usize {
    let mut place = at + 1;
    while place < chars.len() && chars[place] != quote {
        place += if chars[place] == '\\' { 2 } else { 1 };
    }
    (place + 1).min(chars.len())
}

/// The end of `b"…"`, `r#"…"#` and the like, when the word from `at` to `end` is the prefix of a literal.
fn literal_after_prefix(chars: &[char], at: usize, end: usize) -> Option<usize> {
    let prefix: String = chars[at..end].iter().collect();
    let hashes = chars[end..].iter().take_while(|c| **c == '#').count();
    let opens = chars.get(end + hashes);
    match prefix.as_str() {
        "b" if hashes == 0 && opens == Some(&'\'') => Some(quoted_end(chars, end, '\'')),
        "b" | "c" if hashes == 0 && opens == Some(&'"') => Some(quoted_end(chars, end, '"')),
        "r" | "br" | "cr" if opens == Some(&'"') => {
            let closes: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            Some((find(chars, end + hashes + 1, |rest| rest.starts_with(&closes)) + closes.len()).min(chars.len()))
        }
        _ => None,
    }
}

/// The tokens without what is compiled for tests only, and the names of test modules that live in files of their own.
pub(crate) fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    let mut kept = Vec::new();
    let mut test_modules = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((inner, end)) = attribute(tokens, at) else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        if !is_test_attribute(&tokens[at..end]) {
            kept.extend_from_slice(&tokens[at..end]);
            at = end;
        } else if inner {
            return (Vec::new(), test_modules);
        } else {
            let item = skip_attributes(tokens, end);
            at = item_end(tokens, item);
            if let [.., keyword, name, last] = &tokens[item..at]
                && keyword.text == "mod"
                && last.text == ";"
            {
                test_modules.push(name.text.clone());
            }
        }
    }
    (kept, test_modules)
}

/// Whether the attribute at `at` is an inner one (`#![…]`), and where it ends.
fn attribute(tokens: &[Token], at: usize) -> Option<(bool, usize)> {
    let text = |place: usize| tokens.get(place).map_or("", |t| t.text.as_str());
    let inner = text(at + 1) == "!";
    let open = at + 1 + usize::from(inner);
    (text(at) == "#" && text(open) == "[").then(|| (inner, closing(tokens, open)))
}

fn skip_attributes(tokens: &[Token], mut at: usize) -> usize {
    while let Some((_, end)) = attribute(tokens, at) {
        at = end;
    }
    at
}

fn is_test_attribute(attribute: &[Token]) -> bool {
    let has = |word: &str| attribute.iter().any(|t| t.text == word);
    let head = attribute.iter().find(|t| !["#", "!", "["].contains(&t.text.as_str())).map_or("", |t| t.text.as_str());
    (head == "cfg" && has("test") && !has("not")) || head == "test"
}

/// The place after the bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (place, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The end of the item, field or variant that begins at `start`.
fn item_end(tokens: &[Token], start: usize) -> usize {
    const ENDS_WITH_SEMICOLON: [&str; 5] = ["use", "const", "static", "type", "let"];
    const ENDS_WITH_BLOCK: [&str; 8] = ["mod", "fn", "impl", "struct", "enum", "trait", "async", "macro_rules"];
    let head =
        tokens[start..].iter().map(|t| t.text.as_str()).find(|t| !["pub", "(", "crate", "super", ")"].contains(t));
    let is_one_of = |words: &[&str]| head.is_some_and(|head| words.contains(&head));
    let (needs_semicolon, is_item) = (is_one_of(&ENDS_WITH_SEMICOLON), is_one_of(&ENDS_WITH_BLOCK));
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "," if !needs_semicolon && !is_item => return at + 1,
            "}" | ")" | "]" => return at,
            "{" if !needs_semicolon => return closing(tokens, at),
            "{" | "(" | "[" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// All paths that begin with a word for which `is_root` holds.
pub(crate) fn references(tokens: &[Token], is_root: impl Fn(&str) -> bool) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut modules: Vec<(usize, String)> = Vec::new();
    let (mut depth, mut in_use, mut exposed) = (0usize, false, false);
    let text = |place: usize| tokens.get(place).map_or("", |t| t.text.as_str());
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", text);
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                modules.retain(|(opened, _)| *opened < depth + 1);
            }
            "mod" if text(at + 2) == "{" => modules.push((depth + 1, text(at + 1).to_owned())),
            "use" => (in_use, exposed) = (true, before == "pub" || before == ")"),
            ";" => (in_use, exposed) = (false, false),
            root if is_root(root) && !["::", "."].contains(&before) && (text(at + 1) == "::" || in_use) => {
                let start = Reference {
                    segments: Vec::new(),
                    alias: None,
                    inside: modules.iter().map(|(_, name)| name.clone()).collect(),
                    exposed,
                    line: token.line,
                };
                path_tree(tokens, at, &start, &mut found);
            }
            _ => {}
        }
    }
    found
}

/// Reads one path from `at`, and every branch of its groups; returns the place after it.
fn path_tree(tokens: &[Token], mut at: usize, prefix: &Reference, found: &mut Vec<Reference>) -> usize {
    let mut path = prefix.clone();
    let text = |place: usize| tokens.get(place).map_or("", |t| t.text.as_str());
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => {
                at += 1;
                while !["}", ""].contains(&text(at)) {
                    at = if text(at) == "," { at + 1 } else { path_tree(tokens, at, &path, found).max(at + 1) };
                }
                return at + 1;
            }
            // `a::{self}` is `a`.
            "self" if !path.segments.is_empty() => {}
            word if word == "*" || word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                path.segments.push(word.to_owned());
                path.line = token.line;
            }
            _ => break,
        }
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if text(at) == "as" {
        path.alias = Some(text(at + 1).to_owned());
        at += 2;
    }
    found.push(path);
    at
}
