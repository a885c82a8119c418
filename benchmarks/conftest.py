"""After the benchmarks: one table on the terminal; in results.md, for the README, the part of it that has goals."""

from pathlib import Path

import pytest

from harness.table import as_markdown, as_text, at_least, at_most, line, per_row

RESULTS = Path(__file__).with_name("results.md")
OURS = ("columns", "rubric_columns")
_LINES = []


@pytest.fixture(scope="session")
def table():
    """The lines of the table, to add to."""
    return _LINES


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem != "bench_ten")  # the first lines of the table


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    found = [*_LINES, *_of_contenders(getattr(session, "benchmarks", []))]
    if not found:
        return
    for said in as_text(found):
        terminalreporter.write_line(said)
    aimed = {one.measured for one in found if one.goal}
    RESULTS.write_text(as_markdown([one for one in found if one.measured in aimed]), "utf-8")


def _of_contenders(benchmarks):
    """A line for each contender that pytest-benchmark timed, as a multiple of what Assay takes."""
    groups = {}
    for bench in benchmarks:
        if "contender" in bench.extra_info:
            name = bench.extra_info["contender"].rpartition(".")[2]
            groups.setdefault(bench.group, {})["assay" if name in OURS else name] = bench
    for group, benches in groups.items():
        each = {name: bench.stats.min / bench.extra_info["rows"] for name, bench in benches.items()}
        for name, bench in benches.items():
            ratio, goal = each[name] / each["assay"] if "assay" in each else None, None
            if "at_most" in bench.extra_info:
                goal = at_most(each[name] * 1e6, bench.extra_info["at_most"], " µs/row")
            elif "at_least" in bench.extra_info and ratio is not None:
                goal = at_least(ratio, bench.extra_info["at_least"], " × assay")
            yield line(group, name, per_row(each[name], 1), ratio=ratio and (ratio, "assay"), goal=goal)
