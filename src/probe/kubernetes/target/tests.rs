//! Which cluster is asked, and as whom, by what kubeconfig files hold.

use std::ffi::OsString;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::contract::PodField;

/// The secret of every file here.
const SECRET: &str = "s3cret-token";

/// A folder with kubeconfig files.
struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Nothing but `$KUBECONFIG`, with these files.
    fn around(&self, names: &[&str]) -> Surroundings {
        let list = std::env::join_paths(names.iter().map(|name| self.path(name))).expect("paths");
        Surroundings { kubeconfig: Some(list), home: None, service: None, account: self.path("account") }
    }
}

fn source() -> KubernetesSource {
    KubernetesSource {
        namespace: None,
        selector: "app=vllm".to_owned(),
        container: None,
        context: None,
        kubeconfig: None,
        field: PodField::RestartCount,
    }
}

async fn find_in(text: &str) -> Result<Target, String> {
    let files = Files::new(&[("config", text)]);
    Target::find(&source(), &files.around(&["config"]), Path::new("/")).await
}

/// A kubeconfig with this entry of the cluster and of the user, in YAML's flow form.
fn config(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: main
contexts: [{{ name: main, context: {{ cluster: one, user: gate, namespace: serving }} }}]
clusters: [{{ name: one, cluster: {cluster} }}]
users: [{{ name: gate, user: {user} }}]
"
    )
}

fn token(target: &Target) -> &str {
    match &target.bearer {
        Bearer::Token(token) => token.expose_secret(),
        other => panic!("{other:?} is no token"),
    }
}

#[tokio::test]
async fn of_several_files_the_first_that_names_something_counts() {
    let first = "current-context: main\ncontexts: null\nusers: [{ name: gate, user: { token: first } }]\n";
    let second = "
current-context: other
contexts:
  - { name: main, context: { cluster: one, user: gate } }
  - { name: other, context: { cluster: one, user: other, namespace: elsewhere } }
clusters: [{ name: one, cluster: { server: 'https://10.0.0.1:6443/base' } }]
users:
  - { name: gate, user: { token: second } }
  - { name: other, user: { token: third } }
";
    let files = Files::new(&[("first", first), ("second", second)]);
    let around = files.around(&["first", "missing", "second"]);
    let target = Target::find(&source(), &around, Path::new("/")).await.expect("a target");
    assert_eq!((target.server.as_str(), target.namespace.as_str()), ("https://10.0.0.1:6443/base", "default"));
    assert_eq!(token(&target), "first");
    let named = KubernetesSource { context: Some("other".to_owned()), ..source() };
    let target = Target::find(&named, &around, Path::new("/")).await.expect("a target");
    assert_eq!((target.namespace.as_str(), token(&target)), ("elsewhere", "third"));
    // The contract's own file comes before all of them.
    let own = KubernetesSource { kubeconfig: Some(PathBuf::from("second")), ..source() };
    let target = Target::find(&own, &around, files.0.path()).await.expect("a target");
    assert_eq!(token(&target), "third");
}

#[tokio::test]
async fn the_usual_file_is_in_the_home_folder() {
    let files = Files::new(&[]);
    fs::create_dir(files.path(".kube")).expect("a folder");
    fs::write(files.path(".kube/config"), config("{ server: 'https://a' }", "{ token: x }")).expect("a file");
    let around = Surroundings { kubeconfig: None, home: Some(files.path("")), service: None, account: files.path("a") };
    assert_eq!(Target::find(&source(), &around, Path::new("/")).await.expect("a target").namespace, "serving");
}

#[tokio::test]
async fn a_pod_asks_as_its_service_account() {
    let files = Files::new(&[("ca.crt", "PEM"), ("namespace", "serving\n"), ("token", SECRET)]);
    let service = Some(("fd00::1".to_owned(), "443".to_owned()));
    let around = Surroundings { kubeconfig: None, home: None, service, account: files.path("") };
    let target = Target::find(&source(), &around, Path::new("/")).await.expect("a target");
    assert_eq!((target.server.as_str(), target.namespace.as_str()), ("https://[fd00::1]/", "serving"));
    assert_eq!(target.trust.authority.as_deref(), Some(b"PEM".as_slice()));
    assert!(matches!(&target.bearer, Bearer::File(path) if *path == files.path("token")));
    let nowhere = Surroundings { service: None, ..around };
    let failure = Target::find(&source(), &nowhere, Path::new("/")).await.expect_err("nothing to ask");
    assert!(failure.starts_with("there is no kubeconfig and this is no pod; write `kubeconfig`"), "{failure}");
}

#[tokio::test]
async fn paths_start_at_their_file_and_a_file_of_a_token_comes_before_a_token() {
    let files = Files::new(&[
        ("config", &config("{ server: 'https://a', certificate-authority: ca.pem }", "{ tokenFile: token, token: x }")),
        ("ca.pem", "PEM"),
    ]);
    let target = Target::find(&source(), &files.around(&["config"]), Path::new("/")).await.expect("a target");
    assert_eq!(target.trust.authority.as_deref(), Some(b"PEM".as_slice()));
    assert!(matches!(&target.bearer, Bearer::File(path) if *path == files.path("token")));
}

#[tokio::test]
async fn what_cannot_be_used_is_named_and_no_secret_shown() {
    let https = "{ server: 'https://a' }";
    let of_user = |user: &str| config(https, user);
    let of_cluster = |cluster: &str| config(cluster, &format!("{{ token: {SECRET} }}"));
    for (text, expected) in [
        (of_user(&format!("{{ token: {SECRET}, as: admin }}")), "user `gate`: `as` is not supported"),
        (of_user(&format!("{{ username: a, password: {SECRET} }}")), "`username` is not supported"),
        (of_user("{ auth-provider: { name: gcp } }"), "`auth-provider` is not supported"),
        (of_user("{ client-key-data: QQ== }"), "a client certificate needs its key"),
        (
            of_user(&format!("{{ client-certificate-data: QQ==, client-key-data: '{SECRET}!' }}")),
            "the client key is no base64",
        ),
        (of_user("{ client-certificate: none.pem }"), "cannot read the client certificate `"),
        (of_user(&format!("{{ token: [{SECRET}] }}")), "its entry is not understood"),
        (
            of_user("{ exec: { command: aws, apiVersion: client.authentication.k8s.io/v1alpha1 } }"),
            "unknown apiVersion `client.authentication.k8s.io/v1alpha1`",
        ),
        (
            of_user("{ exec: { command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always } }"),
            "wants to ask a person",
        ),
        (of_cluster("{ server: 'http://a' }"), "over which no token is sent"),
        (of_cluster(&format!("{{ server: 'https://u:{SECRET}@a' }}")), "`server` is no address"),
        (of_cluster("{ server: 'https://a', tls-server-name: b }"), "`tls-server-name` is not supported"),
        (of_cluster("{ server: 'https://a', proxy-url: 'socks5://b' }"), "`proxy-url` is no `http://`"),
        (
            of_cluster("{ server: 'https://a', certificate-authority: '/no/such/file' }"),
            "cannot read the certificate authority `/no/such/file`",
        ),
        (of_cluster("{ server: 'https://a', certificate-authority: '/dev/zero' }"), "it is no regular file"),
        (of_user("{}").replace("user: gate,", "user: nobody,"), "there is no user `nobody`"),
        (of_user("{}").replace("cluster: one,", "cluster: two,"), "there is no cluster `two`"),
        (of_user("{}").replace("current-context: main", "current-context: gone"), "has no context `gone`; it has main"),
        (of_user("{}").replace("current-context: main", ""), "has no current context; write `context`"),
        (of_user("{}").replace("name: one,", ""), "is not understood: clusters, contexts and users are lists"),
        (format!("users: [{{ name: gate, user: {{ token: {SECRET}"), "is no YAML: line"),
        ("\0\u{7}".to_owned(), "kubeconfig `"),
    ] {
        let failure = find_in(&text).await.expect_err(expected);
        assert!(failure.contains(expected), "{failure} has no {expected}");
        assert!(!failure.contains(SECRET) && !failure.contains('\n'), "{failure}");
    }
}

#[tokio::test]
async fn a_huge_file_is_not_read() {
    let failure = find_in(&"#".repeat(2 << 20)).await.expect_err("too large");
    assert!(failure.ends_with("it is larger than 1048576 bytes"), "{failure}");
}

#[tokio::test]
async fn certificates_that_are_none_are_refused() {
    for (cluster, user, expected) in [
        ("{ server: 'https://a', certificate-authority-data: QUJD }", "{}", "holds no PEM certificate"),
        ("{ server: 'https://a' }", "{ client-certificate-data: QUJD, client-key-data: QUJD }", "are no PEM pair"),
    ] {
        let target = find_in(&config(cluster, user)).await.expect("a target");
        let failure = target.client(None).expect_err(expected);
        assert!(failure.contains(expected), "{failure}");
    }
}

#[test]
fn an_empty_list_of_files_is_no_file() {
    let around =
        Surroundings { kubeconfig: Some(OsString::from(":")), home: None, service: None, account: PathBuf::from("/") };
    assert_eq!(around.files(), Vec::<PathBuf>::new());
}
