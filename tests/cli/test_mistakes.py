"""Typical mistakes of new users: each ends with exit code 2 and says what is wrong, where, and what to do."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import assay
from assay.cli.main import app

ROWS = [
    {"task_id": "a", "completion": "a refund. Answer: 18", "answer": "18"},
    {"task_id": "b", "completion": "no", "answer": "4"},
]
SPEC = {"checks": [{"type": "contains", "value": "refund"}]}
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
CHECK = "checks:\n- type: contains\n"

SPECS = [  # (spec, what the message has)
    ('checks:\n- type: regex\n  pattern: "\\d+"\n', ["v.yaml:3", '"\\d" in double quotes', "single quotes"]),
    ("checks:\n- type: contains\n   value: x\n", ["v.yaml:3", "column 4", "line 2", "column 3", "same column"]),
    (f"{CHECK} value: x\n", ["v.yaml:3", "column 2", "same column"]),
    (f"{CHECK}  value: x\n - type: json_valid\n", ["v.yaml:4", "items of one list", "same column"]),
    ("checks:\n\t- type: contains\n", ["v.yaml:2", "a tab", "spaces"]),
    (f"{CHECK}  value: a: b\n", ["v.yaml:3", "colon", "`value: 'a: b'`"]),
    ("checks\n- type: contains\n", ["v.yaml:1", "lacks its colon", "`checks:`"]),
    ("checks:\n- type:contains\n  value: x\n", ["v.yaml:2", "space after the colon", "`- type: contains`"]),
    ("checks:\n-type: contains\n value: x\n", ["v.yaml:2", "space after the dash"]),
    (f"{CHECK}  value refund\n", ["v.yaml:3", "`value: refund`"]),
    (f"{CHECK}  value: 'refund\n", ["v.yaml:3", "never closed"]),
    (f"{CHECK}  value: 'don't'\n", ["v.yaml:3", "in quotes", "''"]),
    ("checks:\n- type: contains_any\n  values: [a, b\n- type: json_valid\n", ["v.yaml:3", "not closed"]),
    (f"{CHECK}  value: @user\n", ["v.yaml:3", "begins with @", "in quotes"]),
    ("checks:\n- type: regex\n  pattern: [0-9]+\n", ["v.yaml:3", "in quotes"]),
    ("checks:\n- contains: refund\n", ["line 2", "`- {type: contains, value: refund}`"]),
    ("checks:\n- contians: refund\n", ["line 2", "`- {type: contains, value: refund}`"]),
    ("checks:\n- json_valid\n", ["line 2", "`- {type: json_valid}`"]),
    ("checks:\n  contains: refund\n", ["line 1", "a list", "`- {type: contains, value: refund}`"]),
    ("type: contains\nvalue: refund\n", ["is a check, not a verifier", "`checks:`"]),
    ("- type: contains\n  value: refund\n", ["is a list of checks", "`checks:`"]),
    ("cheks:\n- type: json_valid\n", ["1 problem", "line 1", "Did you mean `checks`?"]),
    ("checks:\n- {type: contians, value: x}\n", ["line 2", "contians", "Did you mean `contains`?"]),
    ("checks:\n- {type: contains, vaule: x}\n", ["line 2", "Did you mean `value`?"]),
    ("checks:\n- {type: regex, pattern: '(a'}\n", ["line 2", "unterminated subpattern"]),
]  # fmt: skip


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("in.jsonl").write_text(LINES)
    Path("v.json").write_text(json.dumps(SPEC))


def refused(*command):
    done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.mark.parametrize(("spec", "parts"), SPECS)
def test_a_spec_that_cannot_be_used_is_mended_in_words(spec, parts):
    Path("v.yaml").write_text(spec)
    message = refused("check", "v.yaml")
    assert all(part in message for part in parts), message


COMMANDS = [  # (command, files, what the message has)
    ("score v.json --spec in.jsonl", {}, ["in.jsonl", "holds rollouts", "--spec"]),
    ("score v.yaml --spec v.json", {"v.yaml": CHECK}, ["v.yaml", "a verifier's spec", "--spec"]),
    ("score in.jsonl v.yaml --spec v.json", {"v.yaml": CHECK}, ["v.yaml", "a verifier's spec", "--spec"]),
    ("score in.jsnl --spec v.json", {}, ["no such file", "`in.jsonl`"]),
    ("score b.jsnl --spec v.json", {"b.jsnl": LINES}, ["unknown file format", "Rename it: b.jsonl"]),
    ("score b.txt --spec v.json", {"b.txt": LINES}, ["Rename it: b.jsonl"]),
    ("score b.json --spec v.json", {"b.json": LINES}, ["one after another", ".jsonl"]),
    ("score b.jsonl --spec v.json", {"b.jsonl": "[{}]"}, ["is a JSON array", ".json"]),
    ("score in.jsonl --spec v.ymal", {"v.ymal": CHECK}, ["unknown file format", "Rename it: v.y"]),
    ("score in.jsonl --spec w.json", {}, ["no such file"]),
    ("check w.json", {"w.json": '{"checks": [],}'}, ["w.json:1", "comma"]),
    ("check w.json", {"w.json": r'{"checks": "\d"}'}, ["w.json:1", "twice"]),
    ("score in.jsonl --spec v.yaml", {"v.yaml": "checks:\n- {type: equals, value: {column: anwser}}\n"}, ["anwser", "Did you mean `answer`?"]),
    ("score in.jsonl --spec v.json --map completion=completon", {}, ["--map completion=completon", "Did you mean `completion`?"]),
    ("score in.jsonl --spec v.json --keep anwser", {}, ["--keep", "Did you mean `answer`?"]),
    ("checks contians", {}, ["contians", "Did you mean `contains`?"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "files", "parts"), COMMANDS)
def test_a_command_that_cannot_run_says_what_to_write(command, files, parts):
    for name, text in files.items():
        Path(name).write_text(text)
    message = refused(*command.split())
    assert all(part in message for part in parts), message


WHERE = [  # (condition, what to write)
    ("answer = 18", "answer = '18'"),
    ("answer > 3", "cast(answer as double) > 3"),
    ("reward = '1'", "reward = 1"),
    ("task_id = a1", "'a1'"),
    ("reward => 1", ">="),
    ("reward > 0 && passed", "and"),
]


@pytest.mark.parametrize(("condition", "mended"), WHERE)
def test_a_condition_that_cannot_be_used_says_what_to_write(condition, mended):
    assay.score_file("in.jsonl", SPEC, "r.parquet")
    message = refused("show", "r.parquet", "--where", condition)
    assert f"--where {condition}" in message
    assert mended in message


def reward(completion):
    return 1.0


PYTHON = [  # (call, what the message has)
    (lambda: assay.score(["a text", "b"], SPEC), ["a text", '[{"completion": "a text"}]']),
    (lambda: assay.score({"completion": "a"}, SPEC), ["`completion`", "[{…}]"]),
    (lambda: assay.score(ROWS, reward), ["function", "test_mistakes.py, line", "assay.Rubric([reward])"]),
    (lambda: assay.score(ROWS, [reward]), ["assay.Rubric([reward])"]),
    (lambda: assay.compile(reward), ["assay.Rubric([reward])"]),
    (lambda: assay.load_verifier(reward), ["assay.Rubric([reward])"]),
    (lambda: assay.score(ROWS, 42), ["not an int"]),
    (lambda: assay.score(SPEC, ROWS), ["is a rollout, not a verifier", "first argument"]),
    (lambda: assay.score([{"response": "a"}], SPEC), ['mapping={"completion": "response"}']),
    (lambda: assay.score(ROWS, SPEC, mapping={"completion": "completon"}), ['mapping={"completion": "completon"}', "`completion`"]),
    (lambda: assay.score(ROWS), ["verifiers=FILE", 'verifier_name="exact_match"']),
    (lambda: assay.score(ROWS, SPEC, function_timeout=-1), ["function_timeout=-1"]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "parts"), PYTHON)
def test_python_speaks_of_keywords(call, parts):
    with pytest.raises(assay.AssayError) as caught:
        call()
    assert caught.value.exit_code == 2
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "--" not in str(caught.value)


FACES = """import assay


class Polite(assay.Check):
    type = "polite"

    def row(self, row):
        return 1.0 if "please" in row["completion"] else 0.0

    def expr(self):
        return assay.text().str.contains("(?i)please")


class Raises(assay.Check):
    type = "polite"

    def row(self, row):
        return 1.0 / len(row["completion"].split("zz")[1])
"""


def test_a_class_whose_row_and_expr_differ_is_one_message_with_both_scores():
    Path("mine.py").write_text(FACES)
    Path("v.yaml").write_text("checks:\n- type: polite\n")
    message = refused("check", "v.yaml", "--checks", "mine:Polite")
    assert 'v.yaml: polite: row() and expr() of Polite differ: 0.0 and 1.0, on "PLEASE".' in message


def test_an_exception_of_a_check_type_is_logged_with_its_line(caplog):
    Path("mine.py").write_text(FACES)
    Path("v.yaml").write_text("checks:\n- type: polite\n")
    CliRunner().invoke(app, ["score", "in.jsonl", "--spec", "v.yaml", "--checks", "mine:Raises"])
    (record,) = caplog.records
    assert record.getMessage().startswith("polite: IndexError: list index out of range\n  mine.py, line 18: return 1.0")


URLS = [
    (
        ("score", "in.jsonl", "--spec", "https://me:pw@example.org/v.yaml"),
        "https://***@example.org/v.yaml",
        "curl -O URL",
    ),
    (("check", "gs://bucket/v.yaml"), "gs://bucket/v.yaml", "gcloud storage cp gs://bucket/v.yaml ."),
    (("show", "s3://bucket/r.parquet"), "s3://bucket/r.parquet", "aws s3 cp s3://bucket/r.parquet ."),
    (("report", "https://example.org/r.parquet"), "https://example.org/r.parquet", "curl -O https://example.org/r"),
    (("verify", "hf://datasets/a/b/r.parquet"), "hf://datasets/a/b/r.parquet", "hf download"),
    (("diff", "s3://bucket/r.parquet", "r.parquet"), "s3://bucket/r.parquet", "aws s3 cp"),
]


@pytest.mark.parametrize(
    ("command", "url", "download"), URLS, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_a_url_where_only_files_are_read_is_called_one_with_the_command_that_downloads_it(command, url, download):
    message = refused(*command)
    assert f"{url}: is a URL; this is read from a local file only." in message
    assert f"Download it first: {download}" in message


@pytest.mark.parametrize("url", ["hf://datasets/a/b", "gs://bucket/rollouts"])
def test_a_url_without_a_suffix_is_perhaps_a_folder(url):
    assert f"a folder with a slash at the end: {url}/" in refused("score", url, "--spec", "v.json")


@pytest.mark.parametrize("options", [(), ("--lenient",), ("--json",)])
def test_why_a_pattern_does_not_compile_is_told_once(options):
    Path("broken.yaml").write_text(
        "checks:\n- {id: a, type: regex, pattern: '(a'}\n- {type: contains, value: refund}\n"
    )
    done = CliRunner().invoke(app, ["score", "in.jsonl", "--spec", "broken.yaml", *options])
    assert done.stderr.count("unterminated subpattern") == 1
    assert "problem: broke on every row: a\n" in done.stderr
    assert "--json" not in options or "unterminated subpattern" in str(json.loads(done.stdout)["problems"])
