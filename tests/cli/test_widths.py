"""What commands print in terminals of any width: no number is split, no line of a table is longer than the terminal, nothing floods it."""

import io
import json
import re

import polars as pl
import pytest
from cases import crossed
from rich.console import Console
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.cli.terminal import print_document
from assay.insight.reports.document import brief_document
from assay.writing.documents import Document, Lines
from assay.writing.numbers import change, interval, number, percent

MODELS = ("Infinity-Instruct-3M-0613-Llama3-70B", "org/another-rather-long-name-v2.1-instruct", "elm")
SPEC = {
    "id": "v",
    "checks": [
        {"id": "right-after-the-marker", "type": "number", "value": {"column": "answer"}, "on": [{"after": "A:"}]},
        {"id": "short", "type": "max_length", "value": 300, "weight": 0.25},
        {"id": "calm-and-never-apologetic", "type": "not_contains", "value": "sorry"},
    ],
}
WIDTHS = (60, 80, 120, 200)


def invoke(line, width=200, *, terminal=False, code=0):
    env = {"COLUMNS": str(width), "NO_COLOR": "1", "TTY_COMPATIBLE": "1" if terminal else "0", "TTY_INTERACTIVE": "0"}
    done = CliRunner().invoke(app, line.split(), env=env)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("widths")
    rows = [
        {
            "task_id": f"task-{at // 12:03d}",
            "model": MODELS[at % 3],
            "answer": str(at // 12),
            "completion": f"A: {at // 12 if at * 7 % 5 else 1_234_567 + at}\n{'long ' * (at * 11 % 100)}{'sorry' * (at % 4 == 1)}",
        }
        for at in range(96)
    ]
    other = SPEC | {"checks": [SPEC["checks"][0], SPEC["checks"][1] | {"value": 30}, SPEC["checks"][2]]}
    (folder / "v.json").write_text(json.dumps(SPEC))
    (folder / "w.json").write_text(json.dumps(other))
    pl.DataFrame(rows).write_parquet(folder / "in.parquet")
    for spec in "vw":
        invoke(f"score {folder}/in.parquet --spec {folder}/{spec}.json --out {folder}/{spec}.parquet")
    return folder


def means_of_models(data):
    for model in data["summary"]:
        mean = model["metrics"]["mean"]
        yield from (number(mean["value"]), interval(mean["ci95"]), number(model["metrics"]["pass@2"]["value"]))
        yield percent(model["metrics"]["flat"]["value"])


COMMANDS = {
    "score {0}/in.parquet --spec {0}/v.json --by model": lambda data: [
        *(number(check["mean"]) for check in data["checks"]),
        *(f"{number(one['mean_reward'])} {interval(one['mean_reward_ci95'])}" for one in data["by"]["model"]),
    ],
    "groups {0}/v.parquet --group task_id,model --k 1,2": means_of_models,
    "diff {0}/v.parquet {0}/w.parquet": lambda data: [
        *map(str, data["matrix"].values()),
        *(change(one["mean_delta"]) for one in (*data["by"], *data["checks"]) if one.get("changed", 1)),
    ],
    "whatif {0}/v.parquet --set short=2 --rank model": lambda data: [
        *(percent(entry["pass_rate"]["0.5"]) for entry in data["sensitivity"]),
        *(number(entry["mean"]) for entry in data["ranking"]["order"]),
    ],
    "audit {0}/v.json {0}/in.parquet --sample 4": lambda data: [
        *(number(probe["mean_reward"]) for probe in data["probes"]),
        *(percent(probe["pass_share"]) for probe in data["probes"]),
    ],
    "verify {0}/v.parquet": lambda data: [data["root"]],
    "show {0}/v.parquet --limit 2": lambda data: [number(card["reward"]) for card in data["cards"]],
    "explain {0}/v.json": lambda data: ["0.25"],
}


@pytest.fixture(scope="module")
def numbers(desk):
    """The numbers that commands have to show."""
    known = {}

    def of(line):
        if line not in known:
            known[line] = {*COMMANDS[line](json.loads(invoke(f"{line.format(desk)} --json").stdout))}
        return known[line]

    return of


@pytest.mark.parametrize(
    ("width", "terminal", "line"), crossed([*((width, True) for width in WIDTHS), (80, False)], COMMANDS)
)
def test_numbers_stay_whole_and_lines_fit(desk, numbers, line, width, terminal):
    shown = re.sub(r"\x1b\[[0-9;?]*\w", "", invoke(line.format(desk), width, terminal=terminal).output)
    assert {text for text in numbers(line) if text not in shown} == set()
    assert "NaN" not in shown
    lines = [text for text in shown.splitlines() if not text.startswith("  ")]  # texts, which the terminal folds
    assert len(lines) < 250
    if terminal and not line.startswith(("show", "explain")):
        assert [text for text in lines if len(text) > width and " " in text] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_sees_of_a_report_what_matters(desk, width):
    text = io.StringIO()
    document = brief_document(assay.report(desk / "v.parquet").as_json(), 8)
    print_document(Console(file=text, width=width, force_terminal=True, color_system=None), document)
    shown = text.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert len(shown.splitlines()) < 60
    assert "mean reward 0.752 [0.729, 0.776] · pass 36.5 %" in " ".join(shown.split())


def test_a_line_is_folded_between_words_and_not_within_a_number():
    words = ["pass", "23.0 %", "[21.6,", "24.5] %,", "12.3 M", "rows", "of", "1.2 GB", "in", "3 min", "20 s", "5 sheep"]
    line = " ".join(words)
    for width in range(8, len(line) + 2):
        text = io.StringIO()
        console = Console(file=text, width=width, force_terminal=True, color_system=None)
        print_document(console, Document("", [Lines([line])]))
        lines = text.getvalue().splitlines()
        assert (" ".join(lines), max(map(len, lines)) <= width) == (line, True)
        assert not [part for part in lines if part.startswith(("%", "M", "GB", "min", "s "))]


def test_a_log_has_tables_of_160_columns(desk, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = CliRunner().invoke(app, ["whatif", f"{desk}/v.parquet", "--set", "short=2"]).stderr
    assert "elasticity" in shown
    assert 80 < max(len(text) for text in shown.splitlines() if "%" in text) <= 160


@pytest.mark.parametrize("command", ["score in.parquet --spec v.json", "diff a.parquet b.parquet", "report a.parquet"])
def test_a_column_called_as_a_heading_has_a_heading_of_its_own(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"completion": ["a", "b"] * 4, "rows": ["x", "y"] * 4}).write_parquet("in.parquet")
    for name, value in (("b", "b"), ("a", "a"), ("v", "a")):
        spec = {"id": "v", "checks": [{"id": "k", "type": "contains", "value": value}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(spec))
        invoke(f"score in.parquet --spec {name}.json --out {name}.parquet")
    shown = invoke(f"{command} --by rows").output.replace("\\", "")
    lines = [re.findall(r"[^\s|]+", line) for line in shown.splitlines()]
    assert ["`rows`", "rows"] in [words[:2] for words in lines]
    assert {(words[0], words[1]) for words in lines if words and words[0] in ("x", "y")} == {("x", "4"), ("y", "4")}
