"""The table of the benchmarks: what it says of a goal, of the state of a figure, of the commit."""

import shutil
import subprocess

import pytest
import readme

from harness.table import as_text, at_least, at_most, commit, line, merged, per_row


def test_what_is_measured_is_written_once():
    lines = [
        line("reading", "a", per_row(0.5, 1_000_000), per_row(0.75, 1_000_000), ratio=(1.0, "a"), cpu_ratio=(2, "b")),
        line("reading", "b|c", per_row(1, 1_000_000), state="warm", ratio=(12.34, "a"), goal=at_most(12.34, 2)),
    ]
    heads, first, second = as_text(lines)
    assert [" ".join(one.split()) for one in (heads, first, second)] == [
        "measured contender state time CPU ratio CPU ratio goal met",
        "reading a cold 0.50 µs/row 0.75 µs/row 1.00 × a 2.00 × b",
        "b|c warm 1.00 µs/row 12.3 × a ≤ 2 no",
    ]
    page = merged("", lines, "today", "here: drawn by seed 7")
    assert page.startswith("* today: here: drawn by seed 7\n\n| measured | contender | state |")
    assert "| reading | b\\|c | warm | 1.00 µs/row |  | 12.3 × a |  | ≤ 2 | no | today |\n" in page


def test_what_is_measured_anew_replaces_its_lines_and_no_other():
    names = ("ours (1 of 9 rows differ)", "worst, draw 3: a|b", "median of 2 of 20", "groups of 5,000", "peer")
    first = [line("reading", name, "1 s") for name in names] + [line("writing", "ours", "1 s")]
    kept = merged("", [*first, line("reading", "ours", "1 s", state="warm")], "yesterday", "there")
    assert merged(kept, [], "today", "here") == kept
    names = ("ours", "worst, draw 4: c", "median of 3 of 20", "groups of 50,000")
    again = [line("reading", name, "2 s") for name in names] + [line("reading", "peer", "absent: make peers")]
    heads, *rows = merged(kept, again, "today", "here").split("\n| ")
    assert heads == "* today: here\n* yesterday: there\n"
    assert [
        [row.split(" | ")[at] for at in (0, 1, 2, 3)] + [row[-13:].split(" | ")[-1].strip(" |\n")] for row in rows[2:]
    ] == [
        ["reading", "ours", "cold", "2 s", "today"],
        ["reading", "worst, draw 4: c", "cold", "2 s", "today"],
        ["reading", "median of 3 of 20", "cold", "2 s", "today"],
        ["reading", "groups of 5,000", "cold", "1 s", "yesterday"],
        ["reading", "peer", "cold", "1 s", "yesterday"],
        ["reading", "ours", "warm", "1 s", "yesterday"],
        ["reading", "groups of 50,000", "cold", "2 s", "today"],
        ["writing", "ours", "cold", "1 s", "yesterday"],
    ]
    everything = merged(kept, [*first, line("reading", "ours", "2 s", state="warm")], "today", "here")
    assert "yesterday" not in everything


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_the_commit_is_that_of_the_checkout(tmp_path):
    assert commit(tmp_path) == "no commit"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (tmp_path / "old").touch()
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        subprocess.run([*git, *command], check=True)
    short = subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True).stdout
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "of nothing here"], check=True)
    assert commit(tmp_path) == f"commit {short.strip()}"
    (tmp_path / "new").touch()
    assert commit(tmp_path) == f"commit {short.strip()} + changes"


@pytest.mark.parametrize(("goal", "met"), [(at_most(2.0, 2), True), (at_most(2.1, 2), False)])
def test_a_goal_is_met_or_not(goal, met):
    assert (goal.wanted, goal.met) == ("≤ 2", met)


def test_a_goal_may_be_a_least():
    assert at_least(4, 4, " × assay").met
    assert at_least(3.9, 4, " × assay").wanted == "≥ 4 × assay"


def test_the_front_page_shows_cold_figures(monkeypatch, tmp_path):
    states = (("1.00 µs/row", "warm"), ("2.00 µs/row", "cold"))
    lines = [
        line(
            "ten checks, texts in memory",
            f"{who} (2 rows differ)",
            time,
            state=state,
            cpu="" if who == "promptfoo" else "3.00 µs/row",
        )
        for who in readme.SPEED
        for time, state in states
    ]
    kept = tmp_path / "measured.md"
    kept.write_text(merged("", lines, "2026-11-22, commit a; CPU 2026-11-27", "here"), "utf-8")
    monkeypatch.setattr(readme, "MEASURED", kept)
    head, _, *rows = readme.few_of_benchmarks().splitlines()
    assert head == "| scored by | rows a second on one core, 2026-11-27 | time beside Assay |"
    assert rows[0] == "| Assay, with the reason of each failure | 330,000 | 1.0 × |"
    assert rows[-1] == "| assertions of promptfoo | 500,000 | 0.7 × |"


def test_a_line_that_the_front_page_needs_is_there():
    """What is left out of the table on the front page is an error, not a shorter table."""
    with pytest.raises(LookupError, match="slope: nobody"):
        readme._line_of([{"measured": "slope", "contender": "assay"}], "slope", "nobody")
