"""CPU by stage of the ten-check run, from file to file: processes that are cut off after a stage, each less the one before it.

``python -m harness.stages`` measures what ``stages_before.json`` keeps: the engine that it imports, so
``PYTHONPATH=CHECKOUT/engine`` measures another.
"""

import json
import sys
from pathlib import Path

import assay
from harness.generate import CACHE, ROWS, real_rollouts
from harness.process import HERE, SPEC, Race, contender
from harness.table import commit, machine, today

__all__ = ["BEFORE", "STAGES", "Stages", "as_markdown", "measure", "read_before"]

BEFORE = HERE / "stages_before.json"

STAGES = {
    "start": "imports, reads the spec and the schema, compiles",
    "decode": "reads the texts as a run reads them",
    "checks": "scores each check, and the reward",
    "reasons": "says why a check failed",
    "summary": "hands the results on batch by batch, and counts them",
    "write": "writes the rewards",
}
"""What each stage adds to the one before it."""

FLOOR = "the floor"
_TURNS = 3

Stages = dict[str, object]
"""``machine``, ``commit``, ``rows``, and for each process the ``seconds`` and the ``cpu`` seconds from its start to its end."""


def commands(rollouts: Path) -> dict[str, list[str]]:
    """Return the processes, each cut off after its stage; and the floor."""
    files = [*map(str, (SPEC, rollouts, CACHE / "stage.parquet"))]
    named = {stage: [sys.executable, "-m", "contenders.stage", stage, *files] for stage in STAGES}
    return {**named, FLOOR: contender("file_floor", rollouts)}


def measure(rows: int = ROWS, turns: int = _TURNS) -> Stages | None:
    """Run the processes in turn. None where the real texts are absent."""
    rollouts = real_rollouts(rows)
    if rollouts is None:
        return None
    race = Race(commands(rollouts), turns)
    figures = {name: {"seconds": race.seconds(name), "cpu": race.cpu(name)} for name in race.commands}
    where = {"machine": f"{today()} · {machine()}", "commit": commit(Path(assay.__file__).parent)}
    return {**where, "rows": rows, "figures": figures}


def read_before() -> Stages | None:
    """Return what was measured before, where it was."""
    return json.loads(BEFORE.read_text("utf-8")) if BEFORE.exists() else None


def as_markdown(after: Stages | None, before: Stages | None) -> str:
    """Return the two measurements, and a table of what each stage adds."""
    both = [(when, measured) for when, measured in (("before", before), ("after", after)) if measured]
    heads = ["stage", "what it adds", *(f"{when}: {what}" for when, _ in both for what in ("wall", "CPU", "CPU a row"))]
    rows = [heads, ["---"] * len(heads)]
    rows += [
        [name, what, *(cell for _, measured in both for cell in _added(measured, name))]
        for name, what in STAGES.items()
    ]
    rows.append(
        [
            "all",
            "from start to end",
            *(cell for _, measured in both for cell in _cells(measured, *_figures(measured, "write"))),
        ]
    )
    rows.append(
        [
            FLOOR,
            "reads the column, and nothing else",
            *(cell for _, measured in both for cell in _cells(measured, *_figures(measured, FLOOR))),
        ]
    )
    lines = [
        f"* {when}: {measured['commit']}, {measured['rows']:,} rows · {measured['machine']}" for when, measured in both
    ]
    return "\n".join(lines) + "\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _figures(measured: Stages, name: str) -> tuple[float, float]:
    return measured["figures"][name]["seconds"], measured["figures"][name]["cpu"]


def _added(measured: Stages, name: str) -> list[str]:
    """Return what a stage takes beyond the process that is cut off before it."""
    at = list(STAGES).index(name)
    less = _figures(measured, list(STAGES)[at - 1]) if at else (0.0, 0.0)
    return _cells(measured, *(mine - other for mine, other in zip(_figures(measured, name), less, strict=True)))


def _cells(measured: Stages, seconds: float, cpu: float) -> list[str]:
    return [f"{seconds:.2f} s", f"{cpu:.2f} s", f"{cpu / measured['rows'] * 1e6:.2f} µs"]


if __name__ == "__main__":
    BEFORE.write_text(json.dumps(measure(), indent=2, ensure_ascii=False) + "\n", "utf-8")
