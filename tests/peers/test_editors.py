"""The JSON Schema in an editor: what yaml-language-server, which most editors ask, says about verifiers."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cases import ROOT
from typer.testing import CliRunner

from assay.cli.main import app

CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE", f"{os.environ.get('TMPDIR', '/tmp')}/assay-bench"))  # noqa: S108
PROGRAM = CACHE / "yaml-language-server" / "node_modules" / ".bin" / "yaml-language-server"

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason="needs yaml-language-server: make yaml-language-server"),
    pytest.mark.xdist_group("editors"),  # one process of the suite starts the server
]


class Server:
    """A language server, asked over its standard streams."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.process = subprocess.Popen([PROGRAM, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}})
        self.send(method="initialized", params={})

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def messages(self):
        """What the server sends; its own questions are answered."""
        while line := self.process.stdout.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = self.process.stdout.readline()
            message = json.loads(self.process.stdout.read(length))
            if "method" in message and "id" in message:
                self.send(id=message["id"], result=[{} for _ in message["params"].get("items", ())])
            else:
                yield message

    def ask(self, method, params):
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        return next(message["result"] for message in self.messages() if message.get("id") == self.count)

    def problems(self, path):
        """What is wrong with a file, by line."""
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text("utf-8")}
        self.send(method="textDocument/didOpen", params={"textDocument": document})
        told = (message["params"] for message in self.messages() if message.get("method", "").endswith("Diagnostics"))
        found = next(params["diagnostics"] for params in told if params["uri"] == document["uri"])
        return {(problem["range"]["start"]["line"], problem["message"]) for problem in found}

    def completions(self, path, line, character):
        place = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": character}}
        answer = self.ask("textDocument/completion", place)
        return {item["label"] for item in answer["items"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    assert CliRunner().invoke(app, ["init", str(folder / "first.yaml")]).exit_code == 0
    server = Server(folder)
    yield server
    server.process.kill()
    server.process.communicate()


def written(server, name, text):
    first = (server.folder / "first.yaml").read_text("utf-8").splitlines()[0]
    path = server.folder / name
    path.write_text(f"{first}\n{text}", "utf-8")
    return path


def test_the_starter_and_the_samples_have_no_problems(server):
    assert server.problems(server.folder / "first.yaml") == set()
    for path in sorted((ROOT / "specs").rglob("*.yaml")):
        assert server.problems(path) == set(), path


def test_misspelt_fields_and_steps_are_flagged(server):
    path = written(
        server,
        "typos.yaml",
        "passTreshold: 1\nchecks:\n  - type: contains\n    value: a\n    caseSensitve: true\n"
        "  - {type: number, value: 3, on: [afterThnk]}\n",
    )
    problems = {(line, message.split(" Valid values")[0]) for line, message in server.problems(path)}
    assert problems == {
        (1, "Property passTreshold is not allowed."),
        (5, "Property caseSensitve is not allowed."),
        (6, "Value is not accepted."),
    }


def test_check_types_their_params_and_steps_complete(server):
    path = written(server, "half.yaml", "checks:\n  - type: con\n  - type: number\n    value: 1\n    on: [af]\n    \n")
    server.problems(path)
    assert {"contains", "contains_any", "json_schema", "all_of"} <= server.completions(path, 2, 13)
    assert {"afterThink", "boxed", "tag"} <= server.completions(path, 5, 11)
    assert {"absTol", "weight", "when", "gate"} <= server.completions(path, 6, 4)
