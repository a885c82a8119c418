"""Findings about groups that do not hold together, at their limits, and not for rows without a group."""

import naive_integrity
import polars as pl
import pytest

import assay

KINDS = ("mixed", "shared_prompt", "odd_size")


def rows_of(groups, size=2, **changes):
    """Groups of rows with a prompt and a gold each, with changes in some rows by number."""
    rows = [
        {
            "task_id": f"t{at // size:02}",
            "model": "elm",
            "prompt": f"Question {at // size}",
            "answer": "1",
            "reward": at % 2,
        }
        for at in range(groups * size)
    ]
    for name, values in changes.items():
        for at, value in values.items():
            rows[at][name] = value
    return rows


def found(rows, **options):
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(passed=pl.col("reward") == 1)
    findings = assay.report(frame, **options).findings
    return [finding for finding in findings if finding["kind"] in KINDS], frame


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (rows_of(20), []),
        (rows_of(20, prompt={0: "Another?"}), [("mixed", 2, [0, 1])]),
        (rows_of(20, answer={2: "2", 5: None}), [("mixed", 2, [2, 3])]),
        (rows_of(20, answer={2: "2", 4: "2"}), [("mixed", 4, [2, 3, 4, 5])]),
        (rows_of(20, prompt={0: " \n", 1: None}), []),
        (
            rows_of(20, prompt={0: "Question\n7", 1: "Question  7"}),
            [("mixed", 2, [0, 1]), ("shared_prompt", 4, [0, 1, 14, 15])],
        ),
        (
            rows_of(20, model=dict.fromkeys(range(1, 40, 2), "oak"), prompt={0: "Question 7"}),
            [("shared_prompt", 2, [0, 14])],
        ),
        (rows_of(20, model={0: "oak"}, prompt={0: "Question 7"}), [("odd_size", 2, [0, 1])]),
        (rows_of(20)[1:], [("odd_size", 1, [0])]),
        (rows_of(21)[1:], []),  # less than 5 %
        (rows_of(19)[1:], []),  # fewer than 20 groups
        ([row | {"task_id": None} for row in rows_of(20, prompt={0: "Another?"})], []),
    ],
)
def test_groups_that_do_not_hold_together_are_found(rows, expected):
    findings, frame = found(rows)
    told = [(finding["kind"], finding["rows"], finding["filter"]["row"]) for finding in findings]
    assert sorted(told) == sorted(expected)
    _, facts = naive_integrity.integrity([row | {"completion": None} for row in rows], ["task_id", "model"])
    for finding in findings:
        assert finding["numbers"]["of_groups"] == facts["groups"]
        assert len(finding["text"]) <= 240
        assert assay.show(frame, **finding["filter"]).cards
    of = {finding["kind"]: finding["numbers"]["groups"] for finding in findings}
    assert of.get("shared_prompt", 0) == facts["shared_prompt"]


def test_what_makes_a_group_can_be_named():
    rows = rows_of(20, model=dict.fromkeys(range(1, 40, 2), "oak"), answer={3: "2"})
    assert found(rows)[0] == []
    (finding,), _ = found(rows, group="task_id")
    assert finding["title"] == "1 group has several prompts or golds"
    assert finding["level"] == 2
