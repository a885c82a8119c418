"""The table of the benchmarks: what it says of a goal, and how it gets into the README."""

import pytest
from readme import measured

from harness.table import as_markdown, as_text, at_least, at_most, line, per_row


def test_what_is_measured_is_said_once():
    lines = [
        line("reading", "a", per_row(0.5, 1_000_000), speed=1234.5, ratio=(1.0, "a")),
        line("reading", "b|c", per_row(1, 1_000_000), ratio=(12.34, "a"), goal=at_most(12.34, 2)),
    ]
    heads, first, second = as_text(lines)
    assert heads.split() == ["measured", "contender", "time", "MB/s", "ratio", "goal", "met"]
    assert first.split() == ["reading", "a", "0.50", "µs/row", "1,234", "1.00", "×", "a"]
    assert second.split() == ["b|c", "1.00", "µs/row", "12.3", "×", "a", "≤", "2", "no"]
    said = as_markdown(lines)
    assert "| reading | b\\|c | 1.00 µs/row |  | 12.3 × a | ≤ 2 | no |\n" in said
    assert "CPython" in said.partition("\n\n")[0]


@pytest.mark.parametrize(("goal", "met"), [(at_most(2.0, 2), True), (at_most(2.1, 2), False)])
def test_a_goal_is_met_or_not(goal, met):
    assert (goal.said, goal.met) == ("≤ 2", met)


def test_a_goal_may_be_a_least():
    assert at_least(4, 4, " × assay").met
    assert at_least(3.9, 4, " × assay").said == "≥ 4 × assay"


def test_the_table_replaces_the_one_in_the_readme():
    text = "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n"
    assert measured(text, "new\n") == text.replace("old", "new")
    assert measured(measured(text, "new\n"), "new\n") == measured(text, "new\n")
