"""After the benchmarks: one table of µs a row and of the ratio to what people do today."""

import re

BASELINES = ("row_loop", "fn_loop", "peer_rubric")


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
    terminalreporter.write_line(f"{'':44}{'contender':>18}{'µs/row':>10}{'baseline µs/row':>17}{'ratio':>9}")
    for group, by in found.items():
        baseline = next((by[name] for name in BASELINES if name in by), None)
        for name, took in by.items():
            if name not in BASELINES and baseline is not None:
                line = f"{group:44}{name:>18}{took:10.3f}{baseline:17.3f}{baseline / took:8.1f}×"
                terminalreporter.write_line(line)
