"""Compute the golden results of the examples in specs/ anew, by the row loop: ``make golden``."""

import json
from pathlib import Path

import assay
from assay.reference import score_rows
from assay.rollouts import scan
from assay.tasks import join_tasks, load_tasks
from cases import SPECS


def example(spec: Path) -> list[dict[str, object]]:
    """The rollouts beside a spec with the columns of their tasks, as plain rows."""
    frame = scan(spec.parent / "rollouts.jsonl")
    tasks = spec.parent / "tasks.jsonl"
    if tasks.exists():
        frame = join_tasks(frame, load_tasks(tasks), ["metadata"]).drop("__assay/task")
    return frame.collect().to_dicts()


def golden(spec: Path) -> list[dict[str, object]]:
    """What the row loop says of each rollout."""
    rows = example(spec)
    scored = score_rows(rows, [assay.load_verifier(spec)])
    return [{"rollout_id": row["rollout_id"], **result} for row, result in zip(rows, scored, strict=True)]


if __name__ == "__main__":
    for path in SPECS:
        lines = (json.dumps(row, ensure_ascii=False) for row in golden(path))
        (path.parent / "golden.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
