//! A server that answers as GitHub's does, with a storage on another host from which archives are downloaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use goodput::baseline::artifact::Artifacts;
use goodput::github::Site;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::description::Description;
use crate::server::{Received, Server, read_head};

pub(super) const TOKEN: &str = "ghs_SecretOfThisJob";

/// The part of a storage's address that gives the right to read.
const RIGHT: &str = "sig=SecretOfTheStorage";

/// The repository of the documented examples.
const REPOSITORY: u64 = 1_296_269;

/// An answer as it goes over the wire.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) body: Vec<u8>,
    /// How many bytes of the body are sent before the connection breaks.
    pub(super) cut: Option<usize>,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: String::new(), body: body.to_string().into_bytes(), cut: None }
    }

    pub(super) fn refusal(status: u16, message: &str, headers: &str) -> Self {
        let body = json!({"message": message, "documentation_url": "https://docs.github.com/rest"});
        Self { headers: headers.to_owned(), ..Self::json(status, &body) }
    }
}

/// What happens to a request instead of what usually does; told its number among all, from 0, and its path.
type Script = Box<dyn Fn(usize, &str) -> Option<Reply> + Send + Sync>;

/// What the repository holds, and what was asked of it.
pub(super) struct World {
    description: Description,
    runs: Vec<Value>,
    /// Artifacts with the run that each belongs to.
    artifacts: Vec<(u64, Value)>,
    /// What the storage sends for an artifact.
    archives: BTreeMap<u64, Vec<u8>>,
    /// Artifacts that are gone though they are listed.
    pub(super) gone: Vec<u64>,
    /// Whether parameters are ignored, so that everything is listed.
    pub(super) lists_all: bool,
    pub(super) script: Option<Script>,
    storage: Option<String>,
    /// The paths that were asked for, in order; those of the storage too.
    asked: Mutex<Vec<String>>,
    problems: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn empty() -> Self {
        Self {
            description: Description::read(),
            runs: Vec::new(),
            artifacts: Vec::new(),
            archives: BTreeMap::new(),
            gone: Vec::new(),
            lists_all: false,
            script: None,
            storage: None,
            asked: Mutex::default(),
            problems: Mutex::default(),
        }
    }

    /// A green run of the default branch at that commit, changed as `change` says.
    pub(super) fn run(&mut self, id: u64, commit: &str, change: impl FnOnce(&mut Value)) {
        let mut run = self.description.example("workflow-run");
        run["id"] = id.into();
        run["head_sha"] = commit.into();
        run["head_branch"] = "master".into();
        run["event"] = "schedule".into();
        run["status"] = "completed".into();
        run["conclusion"] = "success".into();
        run["path"] = ".github/workflows/nightly.yml".into();
        run["head_repository"]["id"] = REPOSITORY.into();
        run["html_url"] = format!("https://github.com/octocat/Hello-World/actions/runs/{id}").into();
        change(&mut run);
        self.runs.push(run);
    }

    /// An artifact of a run, changed as `change` says, and what is downloaded for it.
    pub(super) fn artifact(&mut self, id: u64, run: u64, archive: Vec<u8>, change: impl FnOnce(&mut Value)) {
        let mut artifact = self.description.example("artifact-paginated")["artifacts"][0].clone();
        let of = self.runs.iter().find(|candidate| candidate["id"] == run).unwrap();
        artifact["id"] = id.into();
        artifact["name"] = "goodput-baseline".into();
        artifact["size_in_bytes"] = archive.len().into();
        artifact["expired"] = false.into();
        artifact["expires_at"] = "2026-12-24T02:00:00Z".into();
        for key in ["id", "head_sha", "head_branch"] {
            artifact["workflow_run"][key] = of[key].clone();
        }
        change(&mut artifact);
        self.artifacts.push((run, artifact));
        self.archives.insert(id, archive);
    }

    /// The answer of the API, as GitHub would give it.
    fn answer(&self, path: &str, query: &BTreeMap<String, String>) -> Reply {
        let rest = path.strip_prefix("/repos/octocat/Hello-World").unwrap_or("/?");
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        match parts.as_slice() {
            [] => {
                let mut repository = self.description.example("full-repository-default-response");
                // The example lacks what the description requires.
                for holder in ["", "source"] {
                    let holder = if holder.is_empty() { &mut repository } else { &mut repository[holder] };
                    holder["language"] = Value::Null;
                }
                Reply::json(200, &repository)
            }
            ["actions", "runs"] => self.list_runs(query, None),
            ["actions", "workflows", file, "runs"] => self.list_runs(query, Some(file)),
            ["actions", "runs", id] => match self.runs.iter().find(|run| run["id"] == number(id)) {
                Some(run) => Reply::json(200, run),
                None => Reply::refusal(404, "Not Found", ""),
            },
            ["actions", "runs", id, "artifacts"] => self.list_artifacts(query, |run| run == number(id)),
            ["actions", "artifacts"] => self.list_artifacts(query, |_| true),
            ["actions", "artifacts", id, "zip"] if self.gone.contains(&number(id)) => {
                Reply::refusal(410, "Artifact has expired", "")
            }
            ["actions", "artifacts", id, "zip"] => {
                let storage = self.storage.as_deref().unwrap();
                let headers = format!("location: {storage}/archives/{id}?{RIGHT}\r\n");
                Reply { status: 302, headers, body: Vec::new(), cut: None }
            }
            _ => Reply::refusal(404, "Not Found", ""),
        }
    }

    fn list_runs(&self, query: &BTreeMap<String, String>, file: Option<&str>) -> Reply {
        let asked = |run: &&Value| {
            self.lists_all
                || (query.get("head_sha").is_none_or(|commit| run["head_sha"] == *commit)
                    && query.get("status").is_none_or(|status| run["conclusion"] == *status)
                    && file.is_none_or(|file| run["path"].as_str().unwrap().ends_with(&format!("/{file}"))))
        };
        let runs: Vec<&Value> = self.runs.iter().filter(asked).collect();
        Reply::json(200, &json!({"total_count": runs.len(), "workflow_runs": runs}))
    }

    fn list_artifacts(&self, query: &BTreeMap<String, String>, of: impl Fn(u64) -> bool) -> Reply {
        let named = |artifact: &Value| query.get("name").is_none_or(|name| artifact["name"] == *name);
        let listed = self.artifacts.iter().filter(|(run, artifact)| of(*run) && (self.lists_all || named(artifact)));
        let artifacts: Vec<&Value> = listed.map(|(_, artifact)| artifact).collect();
        Reply::json(200, &json!({"total_count": artifacts.len(), "artifacts": artifacts}))
    }

    /// Notes a request of the API, checks it and its answer, and gives that.
    fn serve_api(&self, request: &Received) -> Reply {
        let (path, query) = parts(request);
        let Some(path) = path.strip_prefix("/api/v3") else {
            self.problem(format!("{path} is not below the address of the API"));
            return Reply::refusal(404, "Not Found", "");
        };
        let number = self.note(path);
        if request.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
            self.problem(format!("{path} was asked without the token"));
        }
        let scripted = self.script.as_ref().and_then(|script| script(number, path));
        let is_scripted = scripted.is_some();
        let reply = scripted.unwrap_or_else(|| self.answer(path, &query));
        let mut problems = self.description.check_request(path, &query, request);
        let is_whole = reply.cut.is_none() && (!is_scripted || reply.body.starts_with(b"{"));
        if is_whole && problems.is_empty() {
            problems.extend(self.description.check_answer(path, reply.status, &reply.body));
        }
        problems.into_iter().for_each(|problem| self.problem(problem));
        reply
    }

    /// The storage knows no token: whoever sends one there has given it away.
    fn serve_storage(&self, request: &Received) -> Reply {
        let (path, _) = parts(request);
        let number = self.note(&path);
        if request.head.contains(TOKEN) || request.header("authorization").is_some() {
            self.problem(format!("{path} got the token"));
        }
        if !request.head.contains(RIGHT) {
            self.problem(format!("{path} was asked without its right"));
        }
        let id = path.rsplit('/').next().unwrap().parse().unwrap_or_default();
        let body = self.archives.get(&id).cloned().unwrap_or_default();
        let usual = Reply { status: 200, headers: String::new(), body, cut: None };
        self.script.as_ref().and_then(|script| script(number, &path)).unwrap_or(usual)
    }

    fn note(&self, path: &str) -> usize {
        let mut asked = self.asked.lock().unwrap();
        asked.push(path.to_owned());
        asked.len() - 1
    }

    fn problem(&self, problem: String) {
        self.problems.lock().unwrap().push(problem);
    }
}

/// Path and parameters of a request.
fn parts(request: &Received) -> (String, BTreeMap<String, String>) {
    let target = request.head.split(' ').nth(1).unwrap();
    let url = Url::parse("http://host").unwrap().join(target).unwrap();
    (url.path().to_owned(), url.query_pairs().into_owned().collect())
}

/// Both servers.
pub(super) struct GitHub {
    api: Server,
    world: Arc<World>,
    _storage: Server,
}

impl GitHub {
    pub(super) async fn start(mut world: World) -> Self {
        // The storage must know the world that names its address: it gets it when that is made.
        let known: Arc<std::sync::OnceLock<Arc<World>>> = Arc::default();
        let storage = Server::start({
            let known = Arc::clone(&known);
            move |_, stream| serve(stream, Arc::clone(&known), World::serve_storage)
        })
        .await;
        world.storage = Some(format!("http://localhost:{}", storage.address().port()));
        let world = Arc::new(world);
        assert!(known.set(Arc::clone(&world)).is_ok());
        let api = Server::start(move |_, stream| serve(stream, Arc::clone(&known), World::serve_api)).await;
        Self { api, world, _storage: storage }
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}/api/v3", self.api.address())
    }

    /// The store, with the workflow whose runs alone count.
    pub(super) fn artifacts(&self, workflow: Option<&str>) -> Artifacts {
        let site = Site::new(&self.address(), "octocat/Hello-World", TOKEN.to_owned().into()).unwrap();
        Artifacts::at(site, "goodput-baseline", workflow)
    }

    /// The paths that were asked for so far, without what all have in common, once everything about them is found right.
    #[track_caller]
    pub(super) fn asked(&self) -> Vec<String> {
        let problems = self.world.problems.lock().unwrap();
        assert!(problems.is_empty(), "{problems:#?}");
        let asked = self.world.asked.lock().unwrap();
        asked.iter().map(|path| path.trim_start_matches("/repos/octocat/Hello-World").to_owned()).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    world: Arc<std::sync::OnceLock<Arc<World>>>,
    answer: impl Fn(&World, &Received) -> Reply,
) {
    while let Some(request) = read_head(&mut stream).await {
        let reply = answer(world.get().unwrap(), &request);
        let Reply { status, headers, body, cut } = reply;
        let head = format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n", body.len());
        let sent = &body[..cut.unwrap_or(body.len())];
        if stream.write_all(head.as_bytes()).await.is_err() || stream.write_all(sent).await.is_err() {
            return;
        }
        if cut.is_some() {
            drop(stream.shutdown().await);
            drop(stream.read_to_end(&mut Vec::new()).await);
            return;
        }
    }
}

/// The repository's own number, which the runs of a fork lack.
pub(super) fn of_a_fork(run: &mut Value) {
    assert_eq!(run["head_repository"]["id"], REPOSITORY);
    run["head_repository"]["id"] = (REPOSITORY + 1).into();
}
