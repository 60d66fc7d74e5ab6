//! Kubeconfig files as they are written, and several of them as one.
//!
//! The names are those of the `clientcmd` package of Kubernetes' own client. What it would use and this does not is refused
//! where it matters and named there, because a request as somebody else would answer something else.

use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::files::read_small;
use crate::probe::excerpt::{plain, quote};

/// What was found in the files, the first finding of each name.
#[derive(Debug, Default)]
pub(super) struct Kubeconfig {
    pub(super) current_context: Option<String>,
    pub(super) clusters: Vec<Named<Cluster>>,
    pub(super) contexts: Vec<Named<Setting>>,
    /// Their shape is looked at when one is used: a message about it must not show a secret.
    pub(super) users: Vec<Named<Value>>,
}

/// An entry, and the file that it is from.
#[derive(Debug)]
pub(super) struct Named<T> {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) value: T,
}

impl<T> Named<T> {
    /// A path of the entry: a relative one starts at the entry's file.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.file.parent().map_or_else(|| PathBuf::from(written), |folder| folder.join(written))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) proxy_url: Option<String>,
}

/// A context.
#[derive(Debug, Deserialize)]
pub(super) struct Setting {
    pub(super) cluster: String,
    #[serde(default)]
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct User {
    #[serde(default, deserialize_with = "secret")]
    pub(super) token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    pub(super) client_key_data: Option<SecretString>,
    pub(super) exec: Option<ExecConfig>,
    #[serde(rename = "as")]
    pub(super) impersonate: Option<String>,
    pub(super) username: Option<String>,
    pub(super) auth_provider: Option<Value>,
}

/// A program that issues credentials.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecConfig {
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) args: Vec<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) env: Vec<ExecVariable>,
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) provide_cluster_info: bool,
    pub(super) interactive_mode: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ExecVariable {
    pub(super) name: String,
    pub(super) value: String,
}

/// One file. `kubectl` writes `null` for an empty list.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(rename = "current-context")]
    current_context: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    clusters: Vec<WrittenCluster>,
    #[serde(default, deserialize_with = "or_empty")]
    contexts: Vec<WrittenContext>,
    #[serde(default, deserialize_with = "or_empty")]
    users: Vec<WrittenUser>,
}

#[derive(Debug, Deserialize)]
struct WrittenCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Debug, Deserialize)]
struct WrittenContext {
    name: String,
    context: Setting,
}

#[derive(Debug, Deserialize)]
struct WrittenUser {
    name: String,
    user: Option<Value>,
}

fn or_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A text that is never shown.
pub(super) fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
}

impl Kubeconfig {
    /// Reads files as one; of entries with the same name the first one counts, as in `kubectl`.
    ///
    /// # Errors
    /// When one cannot be read or is no kubeconfig.
    pub(super) async fn read(files: &[PathBuf]) -> Result<Self, String> {
        let mut all = Self::default();
        for path in files {
            let bytes = read_small(path).await.map_err(|error| format!("cannot read kubeconfig {error}"))?;
            all.add(path, &bytes)?;
        }
        Ok(all)
    }

    fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let refuse = |problem: String| format!("kubeconfig {} {problem}", quote(&path.display().to_string()));
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("is not UTF-8".to_owned()))?;
        let documents = Yaml::load_from_str(text)
            .map_err(|error| refuse(format!("is no YAML: line {}: {}", error.marker().line(), plain(error.info()))))?;
        let Some(document) = documents.first() else { return Ok(()) };
        let value = json(document).ok_or_else(|| refuse("holds YAML that a kubeconfig does not have".to_owned()))?;
        if value.is_null() {
            return Ok(());
        }
        let file: File = shaped(value).map_err(|()| {
            refuse("is not understood: clusters, contexts and users are lists of entries with a `name`, a cluster has a `server`".to_owned())
        })?;
        self.current_context = self.current_context.take().or(file.current_context.filter(|name| !name.is_empty()));
        let file_of = path.to_owned();
        let named = |name| (name, file_of.clone());
        file.clusters.into_iter().for_each(|entry| add(&mut self.clusters, named(entry.name), entry.cluster));
        file.contexts.into_iter().for_each(|entry| add(&mut self.contexts, named(entry.name), entry.context));
        let user = |user: Option<Value>| user.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        file.users.into_iter().for_each(|entry| add(&mut self.users, named(entry.name), user(entry.user)));
        Ok(())
    }
}

fn add<T>(entries: &mut Vec<Named<T>>, (name, file): (String, PathBuf), value: T) {
    if entries.iter().all(|entry| entry.name != name) {
        entries.push(Named { name, file, value });
    }
}

/// The entry with a name.
pub(super) fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a Named<T>> {
    entries.iter().find(|entry| entry.name == name)
}

/// A value of a known shape. What is wrong is not told: serde would quote the value, and that may be a secret.
pub(super) fn shaped<T: DeserializeOwned>(value: Value) -> Result<T, ()> {
    serde_json::from_value(value).map_err(|_| ())
}

/// The same value in JSON; `None` for what JSON does not have, such as a key that is a list.
fn json(yaml: &Yaml<'_>) -> Option<Value> {
    Some(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        Yaml::Value(Scalar::Integer(value)) => Value::from(*value),
        Yaml::Value(Scalar::FloatingPoint(value)) => Value::from(value.into_inner()),
        Yaml::Value(Scalar::String(value)) => Value::String(value.to_string()),
        Yaml::Sequence(items) => Value::Array(items.iter().map(json).collect::<Option<_>>()?),
        Yaml::Mapping(entries) => {
            let entry = |(key, value): (&Yaml<'_>, &Yaml<'_>)| Some((key.as_str()?.to_owned(), json(value)?));
            Value::Object(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Yaml::Tagged(_, value) => json(value)?,
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => return None,
    })
}
