"""``assay groups``: each task's rollouts together, each model's mean over tasks, and models in pairs."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from assay.cli.app import command, command_line, to_stderr
from assay.cli.arguments import AsData, GroupNames, LengthColumn, Overwrite, ResultPath, TaskNames, names
from assay.errors import UsageError, likely_ending
from assay.system.stdout import write_data

_N = TypeVar("_N", int, float)

_EXAMPLES = """\b
Examples:
  assay groups rewards.parquet --k 1,4,8
  assay groups rewards.parquet --advantages grpo --out groups.parquet"""


def _sizes(value: str | None) -> list[int] | None:
    return None if value is None else _listed("--k", value, int, "numbers of rows", "1,4,8")


def _shares(value: str | None) -> list[float]:
    return [] if value is None else _listed("--thresholds", value, float, "shares from 0 to 1", "0.5,0.75")


def _listed(option: str, value: str, kind: type[_N], expected: str, example: str) -> list[_N]:
    try:
        return [kind(item) for item in value.split(",")]
    except ValueError:
        raise UsageError(f"{option} {value}: expected {expected}.", f"For example {option} {example}") from None


@command(epilog=_EXAMPLES, modules=("assay.cli.groupings", "assay.insight.grouping"))
def groups(
    result: ResultPath,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            help="Columns whose values are summarised and compared; none for all groups together. [default: model]",
            metavar="NAME,…",
        ),
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
    advantage_option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option of the trainer, by its own name: norm_adv_by_std_in_grpo=false. Repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    length: LengthColumn = None,
    baseline: Annotated[
        str | None, typer.Option(help="Column with the reward of a greedy response, for ReMax.", metavar="COLUMN")
    ] = None,
    eps: Annotated[float, typer.Option(help="Added to the standard deviation of grpo.", metavar="X")] = 1e-6,
    ci: Annotated[
        str, typer.Option(help="Intervals: by Student's t, or by 2,000 resamples of the tasks.", metavar="t|bootstrap")
    ] = "t",
    seed: Annotated[int, typer.Option(help="Seed of the resamples.", metavar="N")] = 0,
    task: TaskNames = None,
    group: GroupNames = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Write the table of groups: .parquet, .jsonl or .csv.", metavar="PATH"),
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
) -> None:
    """Look at the rollouts of each task together: pass@k, best of k, intervals over tasks, models in pairs, advantages."""
    from assay._version import __version__
    from assay.cli.documents import json_text
    from assay.cli.groupings import print_groups
    from assay.cli.tables import print_notes
    from assay.insight.grouping import groups as look
    from assay.system.atomic_file import check_target
    from assay.writing.writers import ENDINGS, open_writer

    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix.lower() not in ENDINGS:
            fact = f"--out {out}: expected a name that ends in {', '.join(ENDINGS)}."
            raise UsageError(fact, likely_ending(path, ENDINGS))
        check_target(path, overwrite=overwrite, how="--overwrite")
    kinds: dict[str, Any] = {"unscored": unscored, "advantages": advantages, "ci": ci}
    with to_stderr().status("reading"):
        found = look(
            result,
            by=by if by in (None, "none") else names(by),
            k=_sizes(k),
            thresholds=_shares(thresholds),
            vote=vote,
            advantage_options=dict(map(_option, advantage_option or ())),
            length=length,
            baseline=baseline,
            eps=eps,
            seed=seed,
            task=names(task),
            group=names(group),
            **kinds,
        )
    with open_writer(path, found.table.schema) as writer:
        if writer is not None:
            writer.write(found.table)
            writer.close({"assay_version": __version__, "command": command_line(), "rows": found.table.height})
    if as_data:
        write_data(json_text(found.as_json()) + "\n")
    else:
        print_groups(to_stderr(), found)
        if advantages is not None and path is None:
            print_notes(to_stderr(), ["--out NAME.parquet writes the advantages"])


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        fact = f"--advantage-option {text}: expected NAME=VALUE."
        raise UsageError(fact, "For example --advantage-option norm_adv_by_std_in_grpo=false")
    try:
        return name, json.loads(value)
    except ValueError:  # a word, as of scale_rewards
        return name, value
