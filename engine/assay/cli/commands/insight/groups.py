"""``assay groups``: each task's rollouts together, each model's mean over tasks, and models in pairs."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.app import command, command_line, to_stderr
from assay.errors import UsageError
from assay.system.stdout import write_data

__all__ = ["groups"]

_EXAMPLES = """\b
Examples:
  assay groups rewards.parquet --k 1,4,8
  assay groups rewards.parquet --advantages grpo --out groups.parquet"""


def _names(value: str | None) -> list[str]:
    return [name for name in (value or "").split(",") if name]


def _sizes(value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        return [int(size) for size in value.split(",")]
    except ValueError:
        raise UsageError(f"--k {value}: expected numbers of rows.", "For example --k 1,4,8") from None


def _shares(value: str | None) -> list[float]:
    try:
        return [float(share) for share in _names(value)]
    except ValueError:
        raise UsageError(
            f"--thresholds {value}: expected shares from 0 to 1.", "For example --thresholds 0.5"
        ) from None


@command(epilog=_EXAMPLES, modules=("assay.cli.tables", "assay.insight.grouping"))
def groups(
    result: Annotated[
        str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
    ],
    *,
    by: Annotated[
        str | None,
        typer.Option(help="Columns whose values are summarised and compared. [default: model]", metavar="NAME,…"),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(help="Sizes of subsets, as in pass@k. [default: 1,4,8 as far as there are rows]", metavar="N,…"),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Also compute G-Pass@k: shares of k rows that must pass, such as 0.5,0.75.", metavar="X,…"),
    ] = None,
    vote: Annotated[
        str | None, typer.Option(help="Column with the answer of each row, for maj@k.", metavar="COLUMN")
    ] = None,
    unscored: Annotated[
        str, typer.Option(help="Rows without a reward: skip them, or count them as failures.", metavar="skip|fail")
    ] = "skip",
    advantages: Annotated[
        str | None,
        typer.Option(
            help="Also compute the advantage of each row in its group: grpo, dr_grpo, rloo, or as a trainer does: trl-grpo, "
            "verl-rloo, … (see docs/advantages.md).",
            metavar="NAME",
        ),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option(
            help="Column with the tokens of each text, for advantages normalized over tokens.", metavar="COLUMN"
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Column with the reward of a greedy response, for ReMax.", metavar="COLUMN")
    ] = None,
    eps: Annotated[float, typer.Option(help="Added to the standard deviation of grpo.", metavar="X")] = 1e-6,
    ci: Annotated[
        str, typer.Option(help="Intervals: by Student's t, or by 2,000 resamples of the tasks.", metavar="t|bootstrap")
    ] = "t",
    seed: Annotated[int, typer.Option(help="Seed of the resamples.", metavar="N")] = 0,
    task: Annotated[
        str | None,
        typer.Option(help="Columns that name the task. [default: task_id, else example_id]", metavar="NAME,…"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Columns that name the group. [default: those of the task, model, step, as far as they exist]",
            metavar="NAME,…",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Write the table of groups: .parquet, .jsonl or .csv.", metavar="PATH"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print the summary and the pairs as JSON on stdout.")] = False,
) -> None:
    """Look at the rollouts of each task together: pass@k, best of k, intervals over tasks, models in pairs, advantages."""
    from assay._version import __version__
    from assay.cli.tables import print_groups
    from assay.insight.grouping import groups as look
    from assay.system.atomic_file import check_target
    from assay.writing.writers import ENDINGS, open_writer

    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix.lower() not in ENDINGS:
            raise UsageError(f"--out {out}: expected a name that ends in {', '.join(ENDINGS)}.")
        check_target(path, overwrite=overwrite, how="--overwrite")
    kinds: dict[str, Any] = {"unscored": unscored, "advantages": advantages, "ci": ci}
    with to_stderr().status("reading"):
        found = look(
            result,
            by=None if by is None else _names(by),
            k=_sizes(k),
            thresholds=_shares(thresholds),
            vote=vote,
            length=length,
            baseline=baseline,
            eps=eps,
            seed=seed,
            task=_names(task),
            group=_names(group),
            **kinds,
        )
    with open_writer(path, found.table.schema) as writer:
        if writer is not None:
            writer.write(found.table)
            writer.close({"assay_version": __version__, "command": command_line(), "rows": found.table.height})
    if as_data:
        write_data(json.dumps(found.as_json(), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_groups(to_stderr(), found)
