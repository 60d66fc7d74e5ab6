//! Payload templates: a JSON document in which a text `$name` stands for a whole value.

use serde_json::Value;

use super::Case;

/// A placeholder that cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {problem}")]
pub struct TemplateError {
    /// JSON pointer into the template.
    pub pointer: String,
    /// What is wrong and what to do.
    pub problem: String,
}

/// Fills `template` with one case: a text that is exactly `$model` becomes the endpoint's model, one that is exactly
/// `$field` the case's value of that name, as JSON and never as text. `$$` at the start writes one `$`.
///
/// # Errors
/// All faults at once: a field that the case lacks, and a placeholder inside a longer text.
pub fn render(template: &Value, case: &Case, model: &str) -> Result<Value, Vec<TemplateError>> {
    let mut faults = Vec::new();
    let value = fill(template, case, model, "", &mut faults);
    if faults.is_empty() { Ok(value) } else { Err(faults) }
}

fn fill(template: &Value, case: &Case, model: &str, pointer: &str, faults: &mut Vec<TemplateError>) -> Value {
    match template {
        Value::String(text) => match fill_text(text, case, model) {
            Ok(value) => value,
            Err(problem) => {
                faults.push(TemplateError { pointer: pointer.to_owned(), problem });
                Value::Null
            }
        },
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| fill(item, case, model, &format!("{pointer}/{index}"), faults))
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| {
                let step = key.replace('~', "~0").replace('/', "~1");
                (key.clone(), fill(item, case, model, &format!("{pointer}/{step}"), faults))
            })
            .collect(),
        plain => plain.clone(),
    }
}

fn fill_text(text: &str, case: &Case, model: &str) -> Result<Value, String> {
    if let Some(rest) = text.strip_prefix("$$") {
        return Ok(Value::String(format!("${rest}")));
    }
    if let Some(name) = text.strip_prefix('$').filter(|name| is_name(name)) {
        if name == "model" && !case.fields.contains_key("model") {
            return Ok(Value::String(model.to_owned()));
        }
        return case.fields.get(name).cloned().ok_or_else(|| {
            format!(
                "the case `{}` has no field `{name}`; add it to the case, or write `$${name}` for the plain text",
                case.id
            )
        });
    }
    match inner_placeholder(text, case) {
        Some(name) => Err(format!(
            "`${name}` stands inside a longer text; a placeholder replaces a whole value, so put the text around it into the case"
        )),
        None => Ok(Value::String(text.to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A `$name` in the middle of a text that names something we could fill in: surely meant as a placeholder.
fn inner_placeholder(text: &str, case: &Case) -> Option<String> {
    text.split('$').skip(1).find_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..end];
        let known = matches!(name, "model" | "prompt" | "max_tokens") || case.fields.contains_key(name);
        (is_name(name) && known).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(fields: Value) -> Case {
        let Value::Object(fields) = fields else { panic!("an object") };
        Case { id: "c".to_owned(), fields }
    }

    #[test]
    fn values_are_substituted_whole_and_never_as_text() {
        let case = case(json!({"prompt": "say \"hi\", {}\n$model", "max_tokens": 7, "tools": [{"a": 1}]}));
        let template = json!({"model": "$model", "m": [{"content": "$prompt"}], "max_tokens": "$max_tokens",
            "tools": "$tools", "price": "$$prompt", "cost": "5 $ and $5", "n": 1});
        let filled = render(&template, &case, "gamma").expect("filled");
        assert_eq!(
            filled,
            json!({"model": "gamma", "m": [{"content": "say \"hi\", {}\n$model"}], "max_tokens": 7,
                "tools": [{"a": 1}], "price": "$prompt", "cost": "5 $ and $5", "n": 1})
        );
    }

    #[test]
    fn missing_fields_and_inner_placeholders_are_refused_with_their_place() {
        let template = json!({"a/b": ["$absent"], "text": "Answer: $prompt"});
        let faults = render(&template, &case(json!({"prompt": "x"})), "m").expect_err("faults");
        let pointers: Vec<&str> = faults.iter().map(|f| f.pointer.as_str()).collect();
        assert_eq!(pointers, ["/a~1b/0", "/text"]);
        assert!(faults[0].problem.contains("no field `absent`"));
        assert!(faults[1].problem.contains("whole value"));
    }
}
