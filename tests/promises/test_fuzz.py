"""Cases drawn by a seed: files, footers, tables, columns, rubrics, commands; each ends as it must, and is the same wherever it is made.

ASSAY_FUZZ_TYPES=20000, and likewise for each name, draws so many; ``make fuzz`` has the numbers of a thorough look.
"""

import json
import os
import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import fuzz_commands
import fuzz_footers
import fuzz_formats
import fuzz_insight
import fuzz_loader
import fuzz_neighbours
import fuzz_rubric
import fuzz_specs
import fuzz_tables
import fuzz_types
import fuzz_whatifs
import mutations
import polars as pl
import pytest
from cases import sized
from fuzzing import SEED, fuzz

import assay
from assay.checks.registry import CHECKS
from assay.errors import SpecError
from assay.spec.verifier import load_verifier
from assay.testing import assert_plan_conforms

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is drawn is of Linux")
SIZES = {
    "commands": (4, 1), "footers": (20, 1), "formats": (2000, 6), "insight": (100, 14), "loader": (112, 16),
    "files": (400, 1), "neighbours": (3000, 12), "packages": (600, 2), "specs": (5000, 4), "rubric": (8, 3), "tables": (30, 16), "types": (1200, 24), "whatifs": (200, 3),
}  # fmt: skip
"""How many cases, in ``make test-all`` and in ``make test``; of footers, the share of all cases, in ten-thousandths."""


def size(name):
    return int(os.environ.get(f"ASSAY_FUZZ_{name.upper()}", sized(*SIZES[name])))


def have(*kinds):
    return lambda ends, _: {*kinds} <= {*ends}


def rows_are_compared(ends, cases):
    compared = [kind for kind in ends if kind.endswith((*fuzz_neighbours.WAYS, "parquet"))]
    return (len(compared) > cases // 10 or len(compared) > 100) and sum(map(ends.get, compared)) > 0.7 * cases


def all_types_are_compared(ends, cases):
    return ends["compared"] > 3 * cases and {check.type for check in CHECKS[:cases]} <= {*ends}


def changes_are_compared(ends, cases):
    reasons = {name.removeprefix("refused: ") for name in ends if name.startswith("refused")}
    enough = ends["changes compared"] > cases and ends["compared where rows lose their checks"] > 0
    return enough and reasons <= {*fuzz_whatifs.REFUSALS}


def of_spec(_, number, __, draw=fuzz_specs.drawn):
    """Columns give what rows give, for specs of the whole language."""
    spec, rows = draw(number)
    try:
        verifier = load_verifier(spec)
    except SpecError:  # such as weights that add up to 0
        return "refused", ""
    types = {f"type {node.type}" for node in verifier.nodes}
    return Counter({"compared": assert_plan_conforms([verifier], rows), **dict.fromkeys(types, 1)}), ""


def of_packages(*case):
    return of_spec(*case, draw=fuzz_specs.drawn_for_packages)


def of_files(_, number, folder):
    """Files give what memory gives, in one piece and in parts."""
    spec, rows = fuzz_specs.drawn(number)
    try:
        verifier = load_verifier(spec)
    except SpecError:
        return "refused", ""
    columns = pl.col(RESULT), pl.selectors.matches("^(score|check)/")
    expected = assay.score(rows, verifier).select(columns)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "rows.parquet", row_group_size=7)
    runs = (
        ("rows.jsonl", "a.parquet", "a.parquet"),
        ("rows.parquet", "b.parquet", "b.parquet"),
        ("rows.parquet", "parts/", "parts/*.parquet"),
    )
    different = []
    for source, out, found in runs:
        assay.score_file(folder / source, verifier, f"{folder}/{out}", part_bytes=2_000, isolate=False, lenient=True)
        different += [] if pl.read_parquet(folder / found).select(columns).equals(expected) else [out]
    return "compared", different


RESULT = ("reward", "passed", "feedback", "error")
MARKS = {
    "commands": ON_LINUX,
    "packages": pytest.mark.skipif(
        not all(map(find_spec, fuzz_specs.PACKAGES.values())), reason="packages are missing"
    ),
}
FUZZERS = {
    "commands": (fuzz_commands.outcome, lambda ends, cases: ends.total() == cases),
    "files": (of_files, lambda ends, cases: ends.total() == cases),
    "formats": (fuzz_formats.outcome, all_types_are_compared),
    "insight": (fuzz_insight.outcome, lambda ends, cases: ends.total() == cases),
    "neighbours": (fuzz_neighbours.outcome, rows_are_compared),
    "packages": (of_packages, lambda ends, _: {f"type {name}" for name in fuzz_specs.PACKAGES} & {*ends}),
    "rubric": (fuzz_rubric.outcome, lambda ends, cases: ends["cases"] == cases),
    "specs": (of_spec, lambda ends, cases: ends["compared"] > 10 * cases),
    "tables": (fuzz_tables.outcome, have("joined", "joined refused")),
    "types": (fuzz_types.outcome, have("scored", "unscored", "ColumnsError", "InputError")),
    "whatifs": (fuzz_whatifs.outcome, changes_are_compared),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in FUZZERS])
def test_every_case_ends_as_it_must(name):
    outcome, is_enough = FUZZERS[name]
    ends, problems = fuzz(outcome, size(name))
    assert problems == []
    assert is_enough(ends, size(name)), ends


@ON_LINUX
def test_every_damaged_file_is_read_whole_or_refused_in_words():
    done = fuzz_loader.fuzz(size("loader"), SEED)
    assert done["found"] == []
    assert set(done["ends"]) == set(mutations.seeds())
    assert {0, 2} <= {code for kind in done["ends"].values() for code in kind} <= {0, 2, 3}
    assert sum(sum(kind.values()) for kind in done["ends"].values()) == size("loader")


def test_every_command_ends_in_words_whatever_a_footer_says():
    done = fuzz_footers.fuzz(size("footers"), SEED)
    assert done["found"] == []
    assert done["cases"] > 2 * size("footers")


def of_rubric(number):
    case = fuzz_rubric.Case(7, number)
    return case.rows, [func.func for func in case.functions], case.rubric.get_reward_weights()


def of_whatif(number):
    case = fuzz_whatifs.Case(7, number, Path(), {})
    return case.specs, case.rows, case.weights, case.is_rubric, case.drawn()


def of_tables(number):
    rollouts, tasks, forms, rewards = fuzz_tables.case(7, number)
    return rollouts.to_dicts(), rollouts.schema, tasks.to_dicts(), forms, rewards


DRAWN = {
    "commands": (lambda number: fuzz_commands.case(7, number), 300),
    "loader": (lambda number: fuzz_loader.case(7, number, [*mutations.seeds()]), 60),
    "rubric": (of_rubric, 20),
    "tables": (of_tables, 400),
    "whatifs": (of_whatif, 20),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_case_is_the_same_wherever_it_is_made(name):
    draw, cases = DRAWN[name]
    assert [repr(draw(number)) for number in range(cases)] == [repr(draw(number)) for number in range(cases)]


def test_commands_and_streams_of_all_kinds_are_drawn():
    drawn = [fuzz_commands.case(7, number) for number in range(300)]
    assert {one.stdout for one in drawn} == {"file", "full", "closed", "broken"}
    assert len({one.arguments[0] for one in drawn}) >= 9


@ON_LINUX
def test_a_descriptor_that_nobody_gave_is_not_that_of_the_run_itself():
    case = fuzz_commands.Case(["score", "/dev/fd/3", "-s", "v.json", "-o", "o.parquet"], third="closed")
    status, printed, message = fuzz_commands.tried(case)
    assert (status, printed) == (2, "")
    # some builds of libffi keep their own file open, under the first number that is free when ctypes is imported
    assert re.match(r"error: (/dev/fd/3: Bad file descriptor|/\S+/libffi\.so\S*: unknown file format)\.\n", message)


def test_every_entry_of_a_footer_is_edited_in_every_way_and_read_by_every_command():
    text = '{"verifiers": [{"canonical": "{\\"checks\\": [{\\"id\\": \\"a\\"}]}"}]}'
    entries = [*fuzz_footers.places({"verifiers": [{"canonical": '{"checks": [{"id": "a"}]}'}]})]
    assert entries[-1] == ("verifiers", 0, "canonical", "checks", 0, "id")
    drawn = [case for case, _ in fuzz_footers.cases({"out.parquet": text}, 9_999, "7", "http://127.0.0.1/")]
    assert {case.place for case in drawn} == {*entries}
    assert {case.kind for case in drawn} == {*fuzz_footers.KINDS}
    assert {case.command for case in drawn} == {*fuzz_footers.COMMANDS}


def test_tables_of_all_types_formats_and_references_are_drawn():
    cases = [fuzz_formats.case("7", number) for number in range(30 * len(CHECKS))]
    assert {drawn.type for drawn in cases} == {check.type for check in CHECKS}
    assert {(drawn.kind, form) for drawn in cases for form in drawn.formats} == {
        (kind, form) for kind, forms in fuzz_formats.FORMATS.items() for form in forms
    }
    referring = {drawn.type for drawn in cases if "column" in str(drawn.check) or "template" in str(drawn.check)}
    assert referring >= {check.type for check in CHECKS if fuzz_formats.references(check)}


def test_damaged_files_of_all_kinds_are_drawn_and_few_are_whole():
    drawn = [fuzz_loader.case(7, number, [*mutations.seeds()]) for number in range(60)]
    assert {kind for kind, *_ in drawn} == {*mutations.seeds()}
    assert sum(content in mutations.seeds()[kind] for kind, content, _ in drawn) < 6


@pytest.mark.parametrize("alone", [True, False], ids=["it alone", "after others"])
def test_what_ends_a_child_is_laid_at_the_door_of_its_case_and_the_others_go_on(tmp_path, monkeypatch, alone):
    asked = []

    def ran(self, first, last):
        asked.append((first, last))
        if first <= 3 < last and (alone or last - first > 1):
            return dict.fromkeys(range(first, 3), 0), (3, "SIGSEGV: …")
        return dict.fromkeys(range(first, last), 2), None

    monkeypatch.setattr(fuzz_loader.Fuzz, "ran", ran)
    one = fuzz_loader.Fuzz(tmp_path, "0", ["rows.csv", "rows.jsonl"])
    one.run(0, 10)
    assert asked == [(0, 10), (3, 4), (4, 10)]
    assert one.ends == {"rows.csv": {0: 2, 2: 3}, "rows.jsonl": {0: 1, 2: 3, "wrong": 1}}
    said = "SIGSEGV: …" if alone else "after others: SIGSEGV: …"
    assert one.found == [{"kind": "rows.jsonl", "case": "3 0 rows.csv,rows.jsonl", "how": said}]


def test_ids_of_all_types_and_rewards_of_all_kinds_are_drawn():
    drawn = [fuzz_tables.case(7, number) for number in range(400)]
    types = {rollouts["task_id"].dtype.base_type() for rollouts, *_ in drawn}
    assert types >= {dtype.base_type() for dtype, _ in fuzz_tables.IDS.values()}
    rewards = [reward for *_, rewards in drawn for reward in rewards or ()]
    assert min(rewards.count(reward) for reward in (None, 0.0, 1.0)) > 50


def test_columns_of_all_types_in_all_places_are_drawn():
    titles = []
    for number in range(4000):
        try:
            titles.append(fuzz_types.case("7", number)[3])
        except (ValueError, NotImplementedError):  # pyarrow has no such array
            continue
    words = " ".join(titles)
    assert [name for name in (*fuzz_types.LEAVES, *fuzz_types.NESTED) if name not in words] == []
    places = {title.split(" as ")[1].rsplit(" `", 1)[0] for title in titles}
    assert places == {*fuzz_types.COLUMNS, *fuzz_types.places()}
