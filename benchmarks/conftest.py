"""After the benchmarks: one table of µs a row and of the ratio to the row loop."""

import re


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    found = {}
    for bench in getattr(session, "benchmarks", []):
        rows = int(re.search(r"([\d,]+) rows", bench.group).group(1).replace(",", ""))
        found.setdefault(bench.group, {})[bench.params["contender"].__name__.rpartition(".")[2]] = (
            bench.stats.min / rows * 1e6
        )
    if not found:
        return
    terminalreporter.write_line(f"{'':44}{'columns µs/row':>16}{'loop µs/row':>17}{'ratio':>9}")
    for group, by in found.items():
        loop = by.get("row_loop", by.get("fn_loop"))
        if "columns" in by and loop is not None:
            ratio = loop / by["columns"]
            terminalreporter.write_line(f"{group:44}{by['columns']:16.3f}{loop:17.3f}{ratio:8.1f}×")
