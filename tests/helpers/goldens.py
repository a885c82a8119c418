"""Compute the golden results of the examples in specs/ anew, by the row loop: ``make golden``."""

import json
from pathlib import Path

from cases import ON_ROW, QUIZ, QUIZ_ROLLOUTS, SPECS

import assay
from assay.compiling.verifiers import on_row
from assay.loading.rollouts import scan
from assay.loading.tasks import join_tasks, load_tasks
from assay.scoring.reference import score_rows


def example(folder: Path) -> list[dict[str, object]]:
    """The rollouts of a folder with the columns of their tasks, as plain rows."""
    frame = scan(QUIZ_ROLLOUTS if folder == QUIZ.parent else folder / "rollouts.jsonl")
    tasks = folder / "tasks.jsonl"
    if tasks.exists():
        names = ["metadata", "verifier", "kind", "answer"]
        frame = join_tasks(frame, load_tasks(tasks)[0], names).drop("__assay/task")
    return frame.collect().to_dicts()


def golden(spec: Path) -> list[dict[str, object]]:
    """What the row loop says of each rollout; the rollouts of ``ON_ROW`` name their functions themselves."""
    rows = example(spec.parent)
    verifier = on_row("contains") if spec.parent == ON_ROW else assay.load_verifier(spec)
    scored = score_rows(rows, [verifier])
    return [{"rollout_id": row["rollout_id"], **result} for row, result in zip(rows, scored, strict=True)]


if __name__ == "__main__":
    for path in [*SPECS, QUIZ, ON_ROW / "tasks.jsonl"]:
        lines = (json.dumps(row, ensure_ascii=False) for row in golden(path))
        (path.parent / "golden.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
