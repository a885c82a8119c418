"""What users' modules get wrong is named with its file and line, without a traceback of Assay."""

import importlib
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.classes import registry as classes
from assay.cli.main import app
from assay.functions import registry as fns


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    monkeypatch.setattr(classes, "_REGISTRY", dict(classes._REGISTRY))
    for name in ("mine", "helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("in.jsonl").write_text('{"completion": "4"}\n')
    Path("v.json").write_text('{"checks": [{"type": "json_valid"}]}')
    Path("helper.py").write_text("def half(value):\n    return value / 0\n")
    importlib.invalidate_caches()


def refused(command):
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"})
    assert isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.stderr
    assert "engine" not in done.stderr
    return done.stderr


FUNCTION = "from assay.fns import register_fn\n\n@register_fn('mine')\n"
CLASS = "import assay\nfrom assay.classes.registry import FormatOnly\n@assay.register_verifier('band')\nclass Band:\n    Config = FormatOnly.Config\n"


@pytest.mark.parametrize(
    ("code", "fact", "place"),
    [
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero", "mine.py, line 2: 1 / 0"),
        ("import helper\nhelper.half(2)\n", "ZeroDivisionError", "helper.py, line 2: return value / 0"),
        ("import helper\n\nhelper.hafl\n", "AttributeError", "mine.py, line 3: helper.hafl"),
        ("import nowhere_to_be_found\n", "ModuleNotFoundError", "mine.py, line 1: import nowhere_to_be_found"),
        ("x = 1\ndef f(:\n", "SyntaxError", "mine.py, line 2: def f(:"),
        ("import json\njson.loads('{')\n", "JSONDecodeError", "mine.py, line 2: json.loads('{')"),
        ("import polars as pl\n\npl.col('a') and 1\n", "TypeError", "mine.py, line 3: pl.col('a') and 1"),
        (f"{FUNCTION}def f(output):\n    return 1.0\n", "takes (output)", "mine.py, line 3"),
        (f"{FUNCTION}def f(output, expected, params, *, more):\n    return 1.0\n", "more", "mine.py, line 3"),
        (
            f"{CLASS}    def verify(self, completion):\n        return None\n",
            "takes (self, completion)",
            "mine.py, line 6",
        ),
    ],
)
def test_a_module_that_fails_at_import_or_in_a_signature_is_named_with_file_and_line(code, fact, place):
    Path("mine.py").write_text(code)
    message = refused("score in.jsonl --spec v.json --import mine")
    assert message.startswith("error: --import mine: ")
    assert fact in message
    assert place in message
    assert f"--rubric mine:rubric: {message.removeprefix('error: --import mine: ')}" in refused(
        "score in.jsonl --rubric mine:rubric"
    )


@pytest.mark.parametrize("name", ["", "mine:", ":rubric"])
def test_a_rubric_without_a_name_is_refused(name):
    assert "expected module:attribute" in refused(f"score in.jsonl --rubric {name or 'mine'}")


def test_a_rubric_that_is_missing_or_something_else_is_named_with_its_file():
    Path("mine.py").write_text(
        "import assay\n\ndef reward(completion):\n    return 1.0\n\nrubrik = assay.Rubric([reward])\nclass Mine:\n    pass\n"
    )
    message = refused("score in.jsonl --rubric mine:rubric")
    assert "mine.py) has no `rubric`." in message
    assert "Did you mean `rubrik`?" in message
    assert "is type, not an assay.Rubric." in refused("score in.jsonl --rubric mine:Mine")


@pytest.mark.parametrize(
    "function",
    [
        lambda output, expected, params: 1.0,
        lambda *args: 1.0,
        lambda output, expected=None, params=None, more=0: 1.0,
        max,
    ],
)
def test_a_function_that_rows_can_call_is_registered(function):
    fns.register("mine", function)
    assert fns.get("mine") is function


def test_a_path_on_the_command_line_lets_a_spec_name_its_functions_and_nothing_else_does():
    Path("mine.py").write_text("def short(completion):\n    return float(len(completion) < 5)\n")
    for named in ("mine.py:short", "./mine.py:short"):
        Path("v.json").write_text(f'{{"checks": [{{"type": "{named}", "id": "short"}}]}}')
        assert "a spec imports nothing" in refused("score in.jsonl -s v.json")
        assert "mine" not in sys.modules
    Path("v.json").write_text('{"checks": [{"type": "mine.py:short"}]}')
    for command in ("-s v.json --import mine.py", "--rubric mine.py:short", "--rubric mine:short"):
        done = CliRunner().invoke(app, f"score in.jsonl {command}".split())
        assert done.exit_code == 0, done.output
    assert "no such file" in refused("score in.jsonl --rubric none.py:short")
    Path("json.py").write_text("def short(completion):\n    return 1.0\n")
    assert "another module is called json" in refused("score in.jsonl --rubric json.py:short")
