"""What people see carries nothing that a terminal, or rich, would obey."""

import io
import os
import pty
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from waiting import PATIENCE

import assay
from assay.cli.terminal import print_document, print_error, print_table
from assay.cli.views import explanation_document, listing_document
from assay.errors import printable
from assay.scoring.summary import CheckSummary, Summary
from assay.spec.listing import as_json, listing
from assay.system.stdout import open_console
from assay.testing import hostile_texts
from assay.writing.documents import Table

HOSTILE = "[bold]x[/bold] \x1b[31m \x9b2J \u202e \x00 \r \ue000 \ud800"
ESCAPED = r"[bold]x[/bold] \x1b[31m \x9b2J \u202e \x00 \r \ue000 \ud800"
COLOUR = r"\x1b\[[\d;]*(?:3[0-8]|4[0-8]|9[0-7])[\d;]*m"


def shown(show, *what, width=160, **options):
    """What is printed, without the blanks that fill table cells."""
    console = Console(file=io.StringIO(), width=width, **options)
    show(console, *what)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def print_summary(console, summary):
    print_document(console, summary.document())


def child(command, **options):
    """A run of the command line that believes what its streams are."""
    env = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    env |= {"PYTHONPATH": str(Path(assay.__file__).parents[1]), "TERM": "xterm-256color"} | options.pop("env", {})
    return subprocess.Popen([sys.executable, "-m", "assay", *command], env=env, **options)


def on_a_terminal(command, code=0, **env):
    """What a terminal receives."""
    ours, theirs = pty.openpty()
    with child(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as done:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
    assert done.returncode == code
    return seen.decode()


@pytest.fixture
def command(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"completion": "x"}\n' * 1234)
    (tmp_path / "v.json").write_text('{"checks": [{"type": "regex", "pattern": "("}]}')
    return ["score", str(tmp_path / "in.jsonl"), "--spec", str(tmp_path / "v.json")]


def check(**fields):
    return CheckSummary(**{"id": "c", "type": "contains", "weight": 1.0} | fields)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("naïve Σ 日本語 👍 – “q” \\", "naïve Σ 日本語 👍 – “q” \\"),
        (HOSTILE, ESCAPED),
        ("\x1b]0;title\x07\x08\x7f\x85", r"\x1b]0;title\x07\x08\x7f\x85"),
        ("a\u2066b\u2069\u200f\u061c\ufeff\u200b\u2028", r"a\u2066b\u2069\u200f\u061c\ufeff\u200b\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("a\tb\nc", r"a\tb\nc"),
    ],
)
def test_text_is_shown_without_what_a_terminal_obeys(value, expected):
    assert printable(value) == expected


def test_line_breaks_stay_where_lines_are_wanted():
    assert printable("a\nb\r\tc", lines=True) == "a\nb\\r\\tc"


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": None}])
def test_an_error_is_a_fact_a_blank_line_and_a_hint(options):
    wrong = assay.InputError(f"{HOSTILE}.parquet: no such file.", "Did you mean [red]`this`[/red]?")
    found = shown(print_error, wrong, width=20, **options)
    assert found == f"error: {ESCAPED}.parquet: no such file.\n\nDid you mean [red]`this`[/red]?"


def test_a_run_in_numbers():
    contains = check(
        id="contains", rows=1500, total=1200.0, failures=300, reasons=Counter({'lacks "a"': 200, "b": 100})
    )
    summary = Summary(
        [contains, check(id="t/long", rows=1500, total=1500.0)],
        ["a note"],
        rows=1500,
        scored=1500,
        passed=1200,
        total=1350.0,
        seconds=0.5,
        out="out/rewards.parquet",
    )
    assert shown(print_summary, summary) == (
        "1,500 rows · mean reward 0.900 · pass rate 80.0 % · 3,000 rows/s\n\n"
        "check      mean  failures  most frequent reasons\n"
        'contains  0.800       300  200× lacks "a"\n'
        "                           100× b\n"
        "t/long        1         0\n\n"
        "note: a note\n"
        "rewards: out/rewards.parquet"
    )


@pytest.mark.parametrize(("rows", "head"), [(999, "999 rows"), (1000, "1,000 rows")])
def test_a_small_run_says_nothing_about_speed(rows, head):
    summary = Summary(
        [check(id="a", rows=rows, total=rows)], [], rows=rows, scored=rows, passed=rows, total=rows, seconds=2
    )
    speed = " · 500 rows/s" if rows == 1000 else ""
    assert shown(print_summary, summary).splitlines()[0] == f"{head} · mean reward 1 · pass rate 100 %{speed}"


def test_rows_with_errors_are_counted_with_their_causes():
    summary = Summary([check(id="b/bad", errors=2), check(id="fine")], [], rows=3, errors=1234)
    summary.unscored.update({"the completion is null": 1231, "task_id x is not in the task table": 1})
    found = shown(print_summary, summary)
    assert (
        "1,234 rows have an error:\n"
        "  b/bad: 2\n"
        "  unscored, the completion is null: 1,231\n"
        "  unscored, task_id x is not in the task table: 1\n"
    ) in found
    assert "fine: 0" not in found


@pytest.mark.parametrize(("errors", "said"), [(0, ""), (1, "1 row has an error:"), (2, "2 rows have an error:")])
def test_one_error_is_not_many(errors, said):
    found = shown(print_summary, Summary([], [], rows=2, errors=errors))
    assert said in found
    assert ("error" in found) == bool(errors)


def test_one_row_is_not_many():
    assert shown(print_summary, Summary([], [], rows=1, scored=1)).startswith("1 row · ")


def test_a_run_without_rows_has_dashes_for_numbers():
    found = shown(print_summary, Summary([check()], []))
    assert found.splitlines()[0] == "0 rows · mean reward – · pass rate –"
    assert found.splitlines()[3].split() == ["c", "–", "0"]
    assert "nan" not in found.lower()


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (None, "rewards: not written; name a file with --out"),
        ("-", "rewards: standard output"),
        (f"{HOSTILE}.csv", f"rewards: {ESCAPED}.csv"),
    ],
)
def test_where_the_rewards_are(out, said):
    assert shown(print_summary, Summary([], [], out=out), width=20).endswith(said)


def test_reasons_are_counted_by_template_and_cut_to_three_of_seventy_characters():
    numbers = Counter({f"the number is {n}, expected {n + 1}": n for n in range(1, 9)})
    reasons = numbers + Counter({"x" * 71: 5, "y" * 70: 4, 'lacks "z"': 3, "q": 2})
    lines = shown(print_summary, Summary([check(reasons=reasons)], [])).splitlines()[3:10]
    assert [line.split("0  ", 1)[-1].strip() for line in lines] == [
        "36× the number is …, expected …",
        "8× the number is 8, expected 9",
        "7× the number is 7, expected 8",
        "6× the number is 6, expected 7",
        "5× " + "x" * 69 + "…",
        "4× " + "y" * 70,
        "… 2 more",
    ]


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": None}], ids=["pipe", "terminal"])
def test_nothing_of_a_summary_is_obeyed(options):
    summary = Summary([check(id=HOSTILE, reasons=Counter({HOSTILE: 1}), errors=1)], [HOSTILE], errors=1)
    summary.unscored[HOSTILE] = 1
    found = shown(print_summary, summary, **options)
    assert found.count(ESCAPED) == 5
    assert all(code.isprintable() or code == "\n" for code in found)


def test_long_ids_and_reasons_are_folded_not_lost():
    summary = Summary([check(id="I" * 30, reasons=Counter({"Q" * 60: 1}))], [])
    found = shown(print_summary, summary, width=60)
    assert (found.count("I"), found.count("Q"), "…" in found) == (30, 60, False)


def test_an_explanation_says_what_runs_where(monkeypatch):
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    spec = {
        "id": "[red]v",
        "passThreshold": 0.5,
        "checks": [
            {"id": "[i]calm", "type": "not_contains", "value": "!", "weight": 2, "required": True},
            {"type": "regex", "pattern": "(?<=a)b", "negate": True},
            {"id": "bad", "type": "regex", "pattern": "("},
            {"id": "odd", "type": "[bold]\u202e"},
        ],
    }
    found = shown(print_document, explanation_document(assay.load_verifier(spec)), width=200)
    first, _, head, *rows = found.splitlines()
    assert first.startswith("[red]v  passes at 0.5  sha256 ")
    assert head.split() == ["check", "type", "weight", "runs", "as"]
    words = [row.split(maxsplit=3) for row in rows]
    assert words[0][:3] == ["[i]calm", "not_contains", "2"]
    assert words[0][3].split()[:2] == ["required", "columns:"]
    assert words[1][3].split()[:2] == ["negated", "linear"]
    assert words[2][3].startswith("never runs: PatternError")
    assert words[3][1] == r"[bold]\u202e"
    assert r'skipped, unknown check type "[bold]\u202e"' in words[3][3]


def test_the_listing_shows_every_type_with_its_params():
    found = shown(print_document, listing_document(as_json()), width=80)
    assert found.startswith("task_expectations\n")
    assert "contains (must_contain)\n" in found
    assert "\n  - value (or text): string " in found
    assert "\n  - caseSensitive: boolean [false] " in found
    names = [" ".join([check.type, *(f"({alias})" for alias in check.traits.aliases)]) for check in assay.CHECKS]
    assert [line for line in found.splitlines() if line and not line.startswith(" ")] == names


def test_the_listing_has_a_heading_for_each_kind_but_the_first():
    found = shown(print_document, listing_document(listing()), width=80)
    assert [line for line in found.splitlines() if line.startswith("#")] == [
        "# groups",
        "# scorers",
        "# steps",
        "# normalizers",
    ]
    assert "\n  - mark: string (the value of the name) The text that stands before the part.\n" in found


def test_a_terminal_sees_progress_and_colour_and_a_pipe_does_not(command):
    seen = on_a_terminal(command, code=3)  # its check is broken
    assert re.search(r"scoring .*1,234 rows", seen)
    assert re.search(COLOUR, seen)
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as piped:
        said = piped.communicate(timeout=PATIENCE)
    assert said[0] == ""
    assert "1,234 rows · mean reward 0" in said[1]
    assert "\x1b" not in said[1]
    assert "scoring " not in said[1]


def test_names_between_colons_are_no_pictures():
    output = io.StringIO()
    open_console(file=output).print("rows:x:1", markup=False, highlight=False)
    assert output.getvalue() == "rows:x:1\n"


@pytest.mark.parametrize("columns", ["0", "-1", "many"])
def test_messages_are_seen_on_a_terminal_without_columns(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    print_error(open_console(stderr=True), assay.InputError("No rollouts."))
    assert capsys.readouterr().err == "error: No rollouts.\n"


def test_no_color_means_no_colour(command):
    seen = on_a_terminal(command, code=3, NO_COLOR="1")
    assert "v/regex: broken" in seen
    assert not re.search(COLOUR, seen)


NAME = "Infinity-Instruct-3M-0613-Llama3-70B"
WHY = "the number is 18 and not what was expected, for the text ends before it"
TABLE = Table(
    {"model": False, "rows": True, "won:tied:lost": True, "why": False},
    [[NAME, "1,234,567", "167:33:605", WHY], ["elm\x1b[31m", "–", "0:0:1", ""]],
    spare=("won:tied:lost", "rows"),
)


def printed(table, width, **options):
    text = io.StringIO()
    print_table(Console(file=text, width=width), table, **options)
    return text.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_number_is_split_and_no_line_is_longer_than_the_terminal(width):
    found = printed(TABLE, width)
    assert all(len(line) <= width and line == line.rstrip() for line in found.splitlines())
    assert "\x1b" not in found
    assert {"1,234,567", "167:33:605", "0:0:1"} <= {*found.split()}
    assert {*WHY.split()} <= {*found.split()}


@pytest.mark.parametrize(
    ("width", "columns", "lines"),
    [
        (200, {"model": False, "rows": True, "won:tied:lost": True, "why": False}, 3),  # as it is
        (100, {"model": False, "rows": True, "won:tied:lost": True, "why": False}, 7),  # texts are folded
        (80, {"model": False, **dict.fromkeys("abcdef", True), "rows": True, "won:tied:lost": True}, 6),
        (79, {"model": False, **dict.fromkeys("abcdefghij", True), "rows": True}, 25),  # stacked
    ],
)
def test_a_table_gives_up_width_step_by_step(width, columns, lines):
    cells = {"model": NAME, "rows": "1,234,567", "won:tied:lost": "167:33:605", "why": WHY}
    table = Table(columns, [[cells.get(name, "0.526") for name in columns]] * 2, spare=("won:tied:lost",))
    found = printed(table, width).splitlines()
    assert max(map(len, found)) <= width
    assert len(found) == lines
    assert ("… won:tied:lost: --json" in found) == (width == 80)


def test_rows_beyond_those_shown_are_counted():
    many = Table({"n": True}, [[str(at)] for at in range(100)])
    assert printed(many, 80).splitlines()[-2:] == ["59", "… 40 rows: --json"]
    assert printed(many, 80, rows=None).splitlines()[-1] == "99"
    assert "… 4,700 more" in printed(Table({"n": False}, [["x" * 5_000]]), 80)


def test_a_list_of_names_and_values_has_all_columns():
    wide = Table(dict.fromkeys(map(str, range(40)), True), [["0.526"] * 40] * 31, spare=("3", "4"))
    found = printed(wide, 100).splitlines()
    assert [line.split() for line in found[:40]] == [[str(at), "0.526"] for at in range(40)]
    assert found[-1] == "… 1 row: --json"


@pytest.mark.parametrize("width", [20, 80])
def test_hostile_texts_fit_in_a_table(width):
    texts = [text for text in hostile_texts(300) if text]
    found = printed(Table({"a": False, "b": False}, [[text, text] for text in texts]), width, rows=None)
    assert all(char.isprintable() or char == "\n" for char in found)
    assert max(map(cell_len, found.splitlines())) <= width


def test_a_table_without_rows_has_its_headings():
    assert printed(Table({"model": False, "rows": True}, []), 80).split() == ["model", "rows"]
