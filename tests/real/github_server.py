"""A server that plays GitHub's API: it keeps pull requests, comments and check runs, knows tokens and their rights, and fails as it
is told to.

    github_server.py PORT DESCRIPTION PRISM

Three servers stand behind one another, all on the loopback interface:

- the front, at PORT: what clients talk to, with or without `/api/v3` before the path, as on a GitHub Enterprise Server. It plays
  what goes wrong on the way, and keeps every violation of the description that Prism finds;
- Prism, as a validating proxy: it holds every request and every answer against GitHub's own description (PRISM is its program);
- the world, which has the state.

Control paths of the front, which no client of the API knows:

    PUT /_world/OWNER/NAME    makes a repository anew: {"tokens": {TOKEN: {"login", "user", "comment", "checks", "collaborator"}},
                              "pulls": [{"number", "head", "repository", "branch", "state", "locked"}],
                              "comments": [{"pull", "author", "body", "minimized"}], "moved_to": "OWNER/NAME",
                              "faults": [{"method", "path", "times", "status", "headers", "message", "close", "after",
                              "together"}]}; with `together`, a request waits until so many have come
    POST /_world/OWNER/NAME   the faults from here on
    GET /_world/OWNER/NAME    what it has now: {"comments", "check_runs", "requests", "violations"}
    GET /_world/violations    every violation since the start; an empty list unless somebody broke the description
"""

import atexit
import copy
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

LONGEST_COMMENT = 65_536


class Repository:
    """What one test made, and what became of it."""

    def __init__(self, made):
        self.tokens = made.get("tokens", {})
        self.pulls = made.get("pulls", [])
        self.moved_to = made.get("moved_to")
        self.faults = made.get("faults", [])
        self.comments, self.check_runs, self.requests, self.violations = [], [], [], []
        self.lock, self.waiting = threading.Lock(), None

    def barrier(self, parties):
        with self.lock:
            self.waiting = self.waiting or threading.Barrier(parties)
        return self.waiting


class World:
    """All repositories. Whoever changes something holds the lock."""

    def __init__(self, description):
        self.examples = {name: example["value"] for name, example in description["components"]["examples"].items()}
        self.lock = threading.Lock()
        self.repositories = {}
        self.violations = []
        self.last_id = 1000

    def make(self, name, made):
        repository = Repository(made)
        for comment in made.get("comments", []):
            made_comment = self.comment(name, comment["pull"], comment["author"], comment["body"])
            repository.comments.append(made_comment | {"minimized": comment.get("minimized")})
        self.repositories[name] = repository

    def number(self):
        self.last_id += 1
        return self.last_id

    def user(self, login):
        kind = "Bot" if login.endswith("[bot]") else "User"
        return self.examples["issue-comment"]["user"] | {"login": login, "type": kind}

    def comment(self, name, pull, author, body):
        number = self.number()
        return copy.deepcopy(self.examples["issue-comment"]) | {
            "id": number,
            "body": body,
            "user": self.user(author),
            "html_url": f"https://github.com/{name}/pull/{pull}#issuecomment-{number}",
            "issue_url": f"https://api.github.com/repos/{name}/issues/{pull}",
        }

    def pull(self, name, made, example):
        pull = copy.deepcopy(self.examples[example])
        pull = pull[0] if isinstance(pull, list) else pull
        pull |= {"number": made["number"], "state": made.get("state", "open"), "locked": made.get("locked", False)}
        # The example's team lacks what the description requires.
        pull["requested_teams"] = []
        repository = made.get("repository", name)
        pull["head"] |= {"sha": made["head"], "ref": made.get("branch", "topic")}
        pull["head"]["repo"] |= {"full_name": repository}
        pull["head"]["user"] |= {"login": repository.split("/")[0]}
        return pull

    def rights(self, token):
        """What the token may do, whichever repository's it is."""
        return next((made.tokens[token] for made in self.repositories.values() if token in made.tokens), None)

    def answer(self, method, path, query, body, token):
        """Status and JSON of an answer."""
        rights = self.rights(token)
        if rights is None:
            return 401, refusal("Bad credentials")
        if path == "/user":
            if not rights.get("user"):
                return 403, refusal("Resource not accessible by integration")
            example = "private-user-response-with-public-profile-information"
            return 200, self.examples[example] | {"login": rights["login"]}
        named = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)", path)
        repository = self.repositories.get(named[1]) if named else None
        if repository is None or token not in repository.tokens:
            return 404, refusal("Not Found")
        return self.inside(named[1], repository, method, named[2], query, body, rights)

    def inside(self, name, repository, method, path, query, body, rights):
        parts = path.strip("/").split("/")
        match [method, *parts]:
            case ["GET", "pulls"]:
                return 200, page(self.listed_pulls(name, repository, query), query)
            case ["GET", "pulls", number]:
                found = [pull for pull in repository.pulls if str(pull["number"]) == number]
                return (200, self.pull(name, found[0], "pull-request")) if found else (404, refusal("Not Found"))
            case ["GET", "issues", number, "comments"]:
                return 200, page(comments_of(repository, number), query)
            case ["POST", "issues", number, "comments"]:
                return self.create(name, repository, number, body, rights)
            case ["PATCH" | "DELETE", "issues", "comments", number]:
                return change(repository, method, number, body, rights)
            case ["POST", "check-runs"]:
                if not rights.get("checks"):
                    return 403, refusal("Resource not accessible by integration")
                repository.check_runs.append(body)
                return 201, self.check_run(name, body)
        return 404, refusal("Not Found")

    def listed_pulls(self, name, repository, query):
        state, head = query.get("state", "open"), query.get("head")
        pulls = [self.pull(name, pull, "pull-request-simple-items") for pull in repository.pulls]
        return [
            pull
            for pull in pulls
            if state in ("all", pull["state"]) and head in (None, f"{pull['head']['user']['login']}:{pull['head']['ref']}")
        ]

    def create(self, name, repository, number, body, rights):
        pull = next((pull for pull in repository.pulls if str(pull["number"]) == number), None)
        if pull is None:
            return 404, refusal("Not Found")
        if not rights.get("comment"):
            return 403, refusal("Resource not accessible by integration")
        if pull.get("locked") and not rights.get("collaborator"):
            return 403, refusal("Unable to create comment because issue is locked.")
        if too_long := long(body):
            return too_long
        comment = self.comment(name, number, rights["login"], body["body"])
        repository.comments.append(comment)
        return 201, comment

    def check_run(self, name, body):
        number = self.number()
        output = {"annotations_count": len(body["output"].get("annotations", [])), "annotations_url": "https://api.github.com"}
        return copy.deepcopy(self.examples["check-run-example-of-completed-conclusion"]) | {
            "id": number,
            "name": body["name"],
            "head_sha": body["head_sha"],
            "conclusion": body["conclusion"],
            "html_url": f"https://github.com/{name}/runs/{number}",
            "output": {"title": body["output"]["title"], "summary": body["output"]["summary"], "text": None} | output,
        }

    def state(self, repository):
        short = lambda comment: {
            "id": comment["id"],
            "pull": int(comment["issue_url"].rsplit("/", 1)[1]),
            "author": comment["user"]["login"],
            "body": comment["body"],
        }
        return {
            "comments": [short(comment) for comment in repository.comments],
            "check_runs": repository.check_runs,
            "requests": repository.requests,
            "violations": repository.violations,
        }


def refusal(message):
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}


def long(body):
    """What GitHub says to a comment that is too long."""
    if len(body["body"]) <= LONGEST_COMMENT:
        return None
    error = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
    error["message"] = f"Body is too long (maximum is {LONGEST_COMMENT} characters)"
    return 422, {"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest", "errors": [error]}


def comments_of(repository, number):
    return [comment for comment in repository.comments if comment["issue_url"].endswith(f"/issues/{number}")]


def change(repository, method, number, body, rights):
    comment = next((comment for comment in repository.comments if str(comment["id"]) == number), None)
    if comment is None:
        return 404, refusal("Not Found")
    if not rights.get("comment"):
        return 403, refusal("Resource not accessible by integration")
    if method == "DELETE":
        repository.comments.remove(comment)
        return 204, None
    if too_long := long(body):
        return too_long
    comment["body"] = body["body"]
    return 200, comment


def page(items, query):
    size, number = int(query.get("per_page", 30)), int(query.get("page", 1))
    return items[(number - 1) * size : number * size]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        length = int(self.headers.get("content-length") or 0)
        self.serve(self.rfile.read(length))

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, status, value, headers=()):
        text = b"" if value is None else json.dumps(value).encode()
        self.reply(status, [("content-type", "application/json; charset=utf-8"), *headers], text)


class Inside(Handler):
    """The world, behind Prism."""

    world = None

    def serve(self, body):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        with self.world.lock:
            answer = self.world.answer(self.command, url.path, query, json.loads(body) if body else None, token)
        self.reply_json(*answer)


class Front(Handler):
    """What clients talk to."""

    world, prism = None, None

    def serve(self, body):
        if self.path.startswith("/_world/"):
            return self.control(self.path.removeprefix("/_world/"), body)
        base = "/api/v3" if self.path.startswith("/api/v3/") else ""
        path = self.path.removeprefix(base)
        named = re.match(r"/repos/([^/]+/[^/]+)(/[^?]*)?", path)
        repository = self.world.repositories.get(named[1]) if named else None
        if repository and repository.moved_to:
            target = f"http://{self.headers['host']}{base}/repos/{repository.moved_to}{path.removeprefix(named[0])}"
            target = target if not named[2] else target.replace(repository.moved_to, repository.moved_to + named[2], 1)
            status = 301 if self.command == "GET" else 307
            return self.reply_json(status, refusal("Moved Permanently"), [("location", target)])
        fault = self.fault(repository, named[2] or "") if repository else None
        if fault and fault.get("together"):
            repository.barrier(fault["together"]).wait(timeout=20)
            fault = None
        if fault and not fault.get("after"):
            return self.fail(fault, repository, path)
        answer = self.forward(path, body, repository)
        if fault:
            return self.fail(fault, repository, path)
        self.reply(*answer)

    def fault(self, repository, path):
        """The fault that this request meets, which then has one time less to come."""
        with self.world.lock:
            for fault in repository.faults:
                if fault["method"] == self.command and fault["path"] == path and fault.get("times", 1) > 0:
                    fault["times"] = fault.get("times", 1) - 1
                    return fault
        return None

    def fail(self, fault, repository, path):
        if fault.get("close"):
            self.close_connection = True
            repository.requests.append(f"{self.command} {path} closed")
            return None
        repository.requests.append(f"{self.command} {path} {fault['status']}")
        return self.reply_json(fault["status"], refusal(fault.get("message", "said")), fault.get("headers", {}).items())

    def forward(self, path, body, repository):
        """The answer that comes through Prism."""
        connection = http.client.HTTPConnection("127.0.0.1", self.prism, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        connection.request(self.command, path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        with self.world.lock:
            kind = answer.getheader("content-type") or ""
            if answer.getheader("sl-violations") or kind.startswith("application/problem+json"):
                said = answer.getheader("sl-violations") or content.decode()
                violation = f"{self.command} {path} {answer.status}: {said}"
                self.world.violations.append(violation)
                if repository:
                    repository.violations.append(violation)
            if repository:
                repository.requests.append(f"{self.command} {path} {answer.status}")
        dropped = ("connection", "keep-alive", "content-length", "transfer-encoding", "date", "server")
        return answer.status, [pair for pair in answer.getheaders() if pair[0].lower() not in dropped], content

    def control(self, name, body):
        with self.world.lock:
            if name == "violations":
                return self.reply_json(200, self.world.violations)
            if self.command == "PUT":
                self.world.make(name, json.loads(body))
            repository = self.world.repositories.get(name)
            if self.command == "POST":
                repository.faults = json.loads(body)
            known = self.world.state(repository) if repository else None
        return self.reply_json(200 if repository else 404, known)


def tolerant(description):
    """The description with what GitHub does not write beside every operation: that each can be refused, always in one form."""
    said = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/basic-error"}}}}
    for operations in description["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault("4XX", said)
            for answer in operation["responses"].values():
                # Prism knows no answer without a description, and descriptions were cut.
                answer.setdefault("description", "an answer")
    return description


def start_prism(program, description, upstream):
    """Starts Prism, which ends with this program, and gives its port once it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, "openapi.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)
    options = ["proxy", "--errors", "--verboseLevel", "error", "--host", "127.0.0.1", "--port", str(port)]
    child = subprocess.Popen(["node", program, *options, path, f"http://127.0.0.1:{upstream}"])
    atexit.register(child.terminate)
    for _ in range(240):
        if child.poll() is not None:
            sys.exit(f"Prism ended with {child.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return port
        except OSError:
            time.sleep(0.25)
    sys.exit("Prism does not listen after a minute")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    port, description_path, prism = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(description_path, encoding="utf-8") as file:
        description = json.load(file)
    Front.world = Inside.world = World(description)
    inside = Server(("127.0.0.1", 0), Inside)
    threading.Thread(target=inside.serve_forever, daemon=True).start()
    Front.prism = start_prism(prism, tolerant(description), inside.server_port)
    Server(("127.0.0.1", int(port)), Front).serve_forever()


main()
