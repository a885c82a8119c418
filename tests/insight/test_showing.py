"""Rows to look at: which are chosen, what their checks say, and where in the text what they look for is."""

import contextlib
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from insight_cases import rescored
from rich.console import Console
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.cli.views import print_cards
from assay.errors import printable
from assay.insight.results import open_result
from assay.loading.formats.parquet import ParquetFile

SPEC = {
    "id": "v",
    "checks": [
        {"type": "contains", "value": "refund"},
        {"id": "curt", "type": "max_length", "value": 30},
        {"id": "number", "type": "regex", "pattern": r"\d+"},
        {"id": "gold", "type": "equals", "value": {"column": "answer"}},
    ],
}
TEXTS = ["a Refund of 20", "no", "refund " * 9, None, "20"]
ROWS = [
    {"task_id": f"t{n}", "model": "xy"[n % 2], "step": n, "completion": text, "answer": "20"}
    for n, text in enumerate(TEXTS)
]
SPECS = Path(__file__).resolve().parents[2] / "specs"


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with a result that does not keep the texts, beside its input."""
    folder = tmp_path_factory.mktemp("scored")
    with contextlib.chdir(folder):
        Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        assay.score_file("in.jsonl", SPEC, "out.parquet")
    return folder


@pytest.fixture
def result(scored, tmp_path, monkeypatch):
    """The result, in a copy of the folder."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return "out.parquet"


def test_one_name_stands_for_a_list_of_one(result):
    for options in ({"failed": "curt"}, {"passed": "curt"}, {"where": "step > 2"}, {"sort": "-step"}):
        listed = {name: [value] for name, value in options.items()}
        assert assay.show(result, **options).as_json() == assay.show(result, **listed).as_json()
    assert len(assay.show(result, failed="curt").cards) == 1


def test_texts_in_large_row_groups_are_read_without_the_rows_before_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS).write_parquet("in.parquet", row_group_size=2)
    assay.score_file("in.parquet", SPEC, "out.parquet")

    def in_pieces(*_):
        raise AssertionError("the file is read from its begin")

    assert assay.show("out.parquet", row=[4]).cards[0].text == "20"
    monkeypatch.setattr(ParquetFile, "read", in_pieces)
    assert [card.text for card in assay.show("out.parquet").cards] == TEXTS


def rows(cards):
    return [card.row for card in cards.cards]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"limit": 2}, [0, 1]),
        ({"failed": ["contains"]}, [1, 4]),
        ({"passed": ["contains"], "failed": ["curt"]}, [2]),
        ({"failed": ["gold", "number"]}, [1, 2]),
        ({"where": ["reward IS NULL"]}, [3]),
        ({"where": ["reward < 0.8 and model = 'x'"]}, [0, 2, 4]),
        ({"where": ['reward < 0.8 and model == "x"', "step > 0"]}, [2, 4]),
        ({"where": ['"check/v/curt" = 0']}, [2]),
        ({"where": ["feedback like 'contains%'"]}, [1, 4]),
        ({"sort": ["-step"], "limit": 3}, [4, 3, 2]),
        ({"sort": ["model", "-reward"]}, [0, 4, 2, 1, 3]),
        ({"sort": ["reward"]}, [1, 2, 0, 4, 3]),
        ({"row": [4, 1]}, [1, 4]),
        ({"where": ["step > 99"]}, []),
    ],
)
def test_rows_are_chosen_and_sorted(result, options, expected):
    cards = assay.show(result, **options)
    assert rows(cards) == expected
    if "limit" not in options:
        assert cards.matching == len(expected)


def test_a_random_choice_is_the_same_each_time_and_another_for_another_seed():
    frame = pl.DataFrame({"reward": [0.0] * 500, "passed": False})
    first, again, other = (rows(assay.show(frame, random=seed, limit=20)) for seed in (1, 1, 2))
    assert first == again == sorted(first)
    assert len({*first}) == 20
    assert first != other
    assert rows(assay.show(frame, random=1, limit=20, sort=["reward"])) == first


@pytest.mark.parametrize(
    "where",
    [
        "rewrd < 1",
        "reward <",
        "reward",
        "'x'",
        "*",
        "1; select 2",
        "reward in (select 1)",
        "reward IN (SELECT a FROM read_csv('in.jsonl'))",
        "exists (/**/from read_csv('in.jsonl'))",
        "(from read_csv('in.jsonl'))",
        "(with a as (values (1)) table a)",
        "read_csv('in.jsonl')",
        "model -- x",
        "(" * 400 + "passed" + ")" * 400,
        "not " * 3000 + "passed",
        "reward" + "+1" * 3000,
    ],
)
def test_a_condition_that_cannot_be_used_is_an_error_with_the_columns_there_are(result, where):
    with pytest.raises(assay.UsageError) as refused:
        assay.show(result, where=[where])
    assert refused.value.fact.startswith("--where ")
    assert "Columns: task_id, model, step, answer, reward, " in refused.value.hint


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"failed": ["contain"]}, "no check is called `contain`"),
        ({"sort": ["-rewar"]}, "--sort rewar"),
        ({"columns": ["modl"]}, "--columns modl"),
        ({"row": [5]}, "--row 5: out.parquet has the rows 0 to 4."),
        ({"row": [-1]}, "--row -1"),
        ({"limit": 0}, "--limit 0"),
    ],
)
def test_what_does_not_exist_is_named(result, options, fact):
    with pytest.raises(assay.UsageError) as refused:
        assay.show(result, **options)
    assert fact in refused.value.fact


def test_a_card_says_what_the_checks_say_about_the_text(result):
    card, _, long, null, _ = assay.show(result).cards
    assert (card.key, card.state, card.reward) == ({"task_id": "t0", "model": "x", "step": 0}, "fail", 0.75)
    assert [(one.check, one.score, one.passes) for one in card.checks] == [
        ("contains", 1.0, True),
        ("curt", 1.0, True),
        ("number", 1.0, True),
        ("gold", 0.0, False),
    ]
    assert card.checks[3].feedback.startswith("differs from") or card.checks[3].feedback
    assert [one.evidence.spans for one in card.checks] == [
        ((2, 8, "matched"),),
        (),
        ((12, 14, "matched"),),
        ((12, 14, "gold"),),
    ]
    assert (card.checks[3].evidence.read, card.checks[3].evidence.near) == ("a Refund of 20", "ends")
    assert card.gold == {"answer": "20"}
    assert long.checks[1].evidence.spans == ((30, 63, "excess"),)
    assert null.checks[0].evidence is None
    assert (null.state, null.reward, null.text, null.error) == ("unscored", None, None, ("the completion is null",))
    assert {one.passes for one in null.checks} == {None}


def test_texts_come_from_the_result_the_inputs_or_the_files_named(result, tmp_path):
    assert assay.show(result).cards[0].text == TEXTS[0]
    Path("moved.jsonl").write_bytes(Path("in.jsonl").read_bytes())
    Path("in.jsonl").write_text("{}\n")
    changed = assay.show(result)
    assert [card.text for card in changed.cards] == [None] * 5
    assert changed.notes == (
        "no texts: in.jsonl: is not the file that was scored, or has changed since: another size and time; name the files that were scored with --rollouts",
    )
    assert [card.text for card in assay.show(result, rollouts="moved.jsonl").cards] == TEXTS
    Path("other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[1:]))
    with pytest.raises(assay.InputError, match="row 0: task_id is t0 there, t1 here"):
        assay.show(result, rollouts="other.jsonl")
    kept = assay.score(ROWS, SPEC, keep="*")
    assert [card.text for card in assay.show(kept, row=[0, 4]).cards] == [TEXTS[0], TEXTS[4]]


def test_inputs_are_read_again_as_they_were(tmp_path):
    """Mappings, presets, roles and bad rows that the footer records hold for the texts, whoever reads them."""
    spec = {"checks": [{"type": "contains", "value": "refund"}]}
    nested = {"out": {"text": "a refund"}, "ref": {"id": 7}}
    cases = {
        "renamed": ({"output": "a refund", "n": 1}, {"mapping": {"completion": "output"}}),
        "nested": (nested, {"mapping": {"completion": "$.out.text", "task_id": "$.ref.id"}}),
        "overridden": ({"completion": "no", "output": "a refund"}, {"mapping": {"completion": "output"}}),
        "preset": (nested, {"preset": {**MINE, "fields": {"completion": "out.text", "task_id": "ref.id"}}}),
        "role": ({"completion": [{"role": "user", "content": "a refund"}]}, {"any_role": True}),
        "bad": ({"completion": "a refund"}, {"max_bad_rows": 1}),
    }
    for name, (row, options) in cases.items():
        source, out = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.parquet"
        source.write_text(f"{json.dumps({**row, 'at': 0})}\n" + ("{\n" if name == "bad" else ""))
        assay.score_file(source, spec, out, **options)
        assert assay.show(out).cards[0].text == "a refund", name
        assert assay.show(out, rollouts=source).cards[0].text == "a refund", name
        report = assay.report(out)
        assert [row["text"] for row in report.examples["best"]] == ["a refund"], name
        assert assay.verify(out).intact, name
        if name != "bad":
            assert rescored(out).changed == 0, name


MINE = {"name": "mine", "title": "ours", "signature": {"required": {"out": "object"}}}


def test_options_that_a_footer_cannot_have_cost_the_texts_only(tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    source.write_text('{"output": "a refund"}\n')
    assay.score_file(
        source, {"checks": [{"type": "contains", "value": "refund"}]}, out, mapping={"completion": "output"}
    )
    footer = assay.read_provenance(out)
    for settings in ({"mapping": {"completion": 1}}, {"preset": "/etc/passwd"}, {"other": 1}, {"limit": -1}):
        opened = replace(open_result(out), provenance={**footer, "settings": settings})
        [note] = [note for note in assay.show(opened).notes if note.startswith("no texts")]
        assert "the options in its footer cannot be read" in note


def test_golds_of_tasks_are_shown_and_their_phrases_marked(tmp_path):
    folder = SPECS / "refund-quality"
    out = tmp_path / "out.parquet"
    assay.score_file(folder / "rollouts.jsonl", folder / "refund-quality.json", out, tasks=folder / "tasks.jsonl")
    [card] = assay.show(out, row=[2]).cards
    assert '"anyOf": ["refund", "money back"]' in card.gold["expectations"]
    kept = tmp_path / "kept.parquet"
    tasks = folder / "tasks.jsonl"
    assay.score_file(folder / "rollouts.jsonl", folder / "refund-quality.json", kept, tasks=tasks, keep=["+completion"])
    assert assay.show(kept, row=[2]).cards[0].checks == card.checks
    spans = [span for one in card.checks if one.evidence for span in one.evidence.spans]
    assert [(card.text[start:end], kind) for start, end, kind in spans] == [("sorry", "matched"), ("photo", "matched")]


def test_only_checks_of_our_types_are_read_from_a_footer(result):
    """A result of another check than its footer says, or of a check of the user's, has cards without evidence, not an error."""
    opened = open_result(result)
    form = opened.forms[0]
    checks = [
        {**form["checks"][0], "type": "a_type_of_others"},
        {**form["checks"][1], "params": {"value": "no number"}},
        {**form["checks"][2], "params": {"pattern": "("}},
        {**form["checks"][3], "params": {"value": {"column": "answer[0].x"}}},
    ]
    entry = {**opened.verifiers[0], "canonical": json.dumps({**form, "checks": checks})}
    card = assay.show(replace(opened, provenance={**opened.provenance, "verifiers": [entry]})).cards[0]
    assert [one.evidence and one.evidence.read for one in card.checks] == [None, None, None, "a Refund of 20"]
    assert card.checks[3].evidence.expected == ()


def test_other_texts_that_checks_read_are_sources(tmp_path):
    spec = {"checks": [{"type": "contains", "value": "rain", "on": ["prompt"]}, {"type": "case", "is": "lower"}]}
    out = str(tmp_path / "out.parquet")
    assay.score_file([{"completion": "No", "prompt": "will it rain?"}], spec, out, keep="*")
    [card] = assay.show(out).cards
    assert card.sources == {"prompt": "will it rain?"}
    data = card.as_json()
    assert data["sources"] == {"prompt": "will it rain?"}
    assert data["checks"][0]["evidence"] == {
        "source": "prompt",
        "read": None,
        "expected": ["rain"],
        "near": None,
        "spans": [{"start": 8, "end": 12, "kind": "matched"}],
    }
    shown = CliRunner().invoke(app, ["show", out, "--check", "contains"], env={"COLUMNS": "100"}).stdout
    assert "  │ prompt: will it ⟦matched:rain⟧?\n" in shown
    assert "  │ No\n" in shown
    assert "  │ ⟦offending:N⟧o\n" in CliRunner().invoke(app, ["show", out], env={"COLUMNS": "100"}).stdout
    assert "Did you mean `contains`?" in CliRunner().invoke(app, ["show", out, "--check", "contain"]).stderr


def test_the_terminal_says_what_was_read_and_how_it_relates_to_the_gold(tmp_path):
    checks = [
        {"type": "equals", "value": {"column": "answer"}, "on": [{"after": "A:"}]},
        {"type": "max_length", "value": 26},
    ]
    out = str(tmp_path / "out.parquet")
    assay.score_file(
        [{"completion": "2 * 9 = 18 a day\nA: 18 dollars.", "answer": "18"}], {"checks": checks}, out, keep="*"
    )
    shown = CliRunner().invoke(app, ["show", out], env={"COLUMNS": "100"}).stdout
    assert "    read 18 dollars. → expected 18 (begins)\n" in shown
    assert "  │ 2 * 9 = ⟦gold:18⟧ a day\n  │ A: ⟦18 dollars.⟧\n" in shown
    text = {}
    for no_color in (False, True):
        console = Console(
            file=io.StringIO(), width=100, force_terminal=True, color_system="standard", no_color=no_color
        )
        print_cards(console, assay.show(out))
        text[no_color] = console.file.getvalue()
    read = r"\x1b\[2m  │ \x1b\[0m(\x1b\[39m)?A: (\x1b\[0m)?\x1b\[7;36m18 dollars\.\x1b\[0m\n"
    assert re.search(read, text[False])
    assert "⟦" not in text[False]
    shown = re.sub(r"\x1b\[[\d;]*m", "", text[True])
    assert "  │ 2 * 9 = ⟦gold:18⟧ a day\n  │ A: ⟦18 dollars.⟧\n" in shown


HOSTILE = "[bold]x[/bold] \x1b[31m \x9b2J \u202e \x00 \r \ue000"


@pytest.mark.parametrize("as_json", [False, True])
def test_what_rows_hold_is_shown_escaped(tmp_path, as_json):
    spec = {"id": 'v"<b>', "checks": [{"id": "c: [red]é\u4e2d", "type": "contains", "value": "refund"}]}
    frame = [{"task_id": HOSTILE, "answer": HOSTILE, "completion": HOSTILE + "refund" + HOSTILE * 9000 + "\x07"}]
    out = str(tmp_path / "out.parquet")
    assay.score_file(frame, spec, out, keep="*")
    done = CliRunner().invoke(app, ["show", out, *(["--json"] if as_json else [])], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    if as_json:
        [card] = json.loads(done.stdout)["cards"]
        assert card["text"] == frame[0]["completion"]
        assert [one["check"] for one in card["checks"]] == ["c: [red]é\u4e2d"]
        assert [span["kind"] for span in card["checks"][0]["evidence"]["spans"]] == ["matched"]
        assert done.stdout.isascii()
        assert "\x1b" not in done.stdout
    else:
        assert done.stderr == ""
        assert all(line.isprintable() for line in done.stdout.splitlines())
        assert printable(HOSTILE) in done.stdout
        assert " more characters" in done.stdout
        assert len(done.stdout) < 4_000


def test_the_command_shows_cards_and_data_on_stdout(result):
    def run(*options, code=0):
        done = CliRunner().invoke(app, ["show", result, *options], env={"COLUMNS": "100"})
        assert done.exit_code == code, done.output
        return done

    shown = run("--failed", "contains", "--columns", "model,step", "--sort", "-step").stdout
    assert shown.startswith("row 4 · model x · step 4 · reward 0.750 · ✗ failed\n")
    assert '  ✗ contains  0       does not contain "refund"\n' in shown
    assert shown.endswith("2 rows of 2 that match; out.parquet has 5\n")
    data = json.loads(run("--row", "3", "--row", "0", "--json").stdout)
    assert [card["row"] for card in data["cards"]] == [0, 3]
    assert (data["insight"], data["rows"], data["matching"]) == (1, 5, 2)
    assert "no such file" in run("--rollouts", "gone.jsonl", code=2).stderr
    assert run("--where", "rewrd < 1", code=2).stderr.startswith(
        "error: --where rewrd < 1: no column is called `rewrd`."
    )


def test_a_frame_without_checks_or_texts_is_shown_with_notes():
    cards = assay.show(pl.DataFrame({"reward": [0.5, None, float("nan")]}))
    assert [(card.state, card.reward, card.text) for card in cards.cards] == [
        ("scored", 0.5, None),
        ("unscored", None, None),
        ("unscored", None, None),
    ]
    assert cards.notes[-1].startswith("no texts: ")
    assert rows(assay.show(pl.DataFrame({"reward": []}, {"reward": pl.Float64}))) == []


def test_objects_in_columns_are_the_same_in_the_result_and_in_its_input(tmp_path):
    rows = [{"completion": '{"n": 2}', "gold": {"n": 1}}, {"completion": '{"m": []}', "gold": {"m": []}}]
    source, out = tmp_path / "in.jsonl", str(tmp_path / "out.parquet")
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assay.score_file(source, {"checks": [{"type": "json_match", "value": {"column": "gold"}}]}, out)
    first, second = assay.show(out).cards
    assert (first.checks[0].evidence.spans, second.checks[0].passes) == (((6, 7, "offending"),), True)
