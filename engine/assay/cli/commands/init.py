"""``assay init``: write a starter verifier."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.errors import UsageError, likely_ending, printable, shown_path

STARTER = """\
# A verifier: the reward of a rollout is the weighted mean of its checks, each between 0.0 and 1.0.
# `assay checks` lists the check types and steps with their params; `assay check {name}` validates this file.
id: {id}

# A rollout passes if its reward is at least this.
passThreshold: 0.8

checks:
  # Text that must occur. `caseSensitive: true` compares letters as they are.
  - id: mentions-refund
    type: contains
    value: refund
    weight: 2

  # Text that must not occur.
  - id: no-robot-talk
    type: not_contains
    value: as an AI language model

  # A pattern of Python's `re`, searched anywhere in the text.
  - id: names-a-date
    type: regex
    pattern: '\\d{{4}}-\\d{{2}}-\\d{{2}}'

  # Characters of the text. A rollout cannot pass while a `required` check scores below 1.0.
  - id: not-empty
    type: min_length
    value: 20
    required: true

  # A gold answer, from the column `answer` of the rollouts: the number after the last "Answer:", thoughts left out.
  # - id: answer
  #   type: number
  #   value: {{column: answer}}
  #   on: [afterThink, {{after: "Answer:"}}]

  # A group: one of its checks has to pass. `gate: true` in place of a weight makes the reward 0.0 if none does.
  # - id: polite
  #   type: any_of
  #   gate: true
  #   checks:
  #     - {{type: contains, value: sorry}}
  #     - {{type: contains, value: thank}}
"""
"""A commented spec; ``init`` fills in ``{id}`` and ``{name}``."""


@command()
def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File to write, ending in .yaml.")] = Path(
        "verifier.yaml"
    ),
    *,
    rollouts: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ROLLOUTS",
            help="Look at these rollouts: write a verifier with their gold, and the command to score them.",
        ),
    ] = None,
) -> None:
    """Write a commented verifier to start from."""
    from assay.system.atomic_file import check_target, new_file

    if path.suffix.lower() not in (".yaml", ".yml"):
        hint = likely_ending(path, (".yaml", ".yml")) or "Use a name that ends in .yaml"
        raise UsageError(f"{shown_path(path)}: the verifier is written as YAML.", hint)
    check_target(path, overwrite=True, how="")
    if path.exists():
        raise UsageError(f"{shown_path(path)}: already exists.", "Name another file: assay init NAME.yaml")
    text = STARTER.format(id=json.dumps(path.stem), name=json.dumps(path.name))
    next_command = f"assay score rollouts.jsonl --spec {shown_path(path)} --out rewards.parquet"
    if rollouts is not None:
        from assay.cli.drafting import draft

        drafted = draft(rollouts, path.stem)
        text = drafted.text
        mapped = "".join(f" --map {shlex.quote(f'{name}={column}')}" for name, column in drafted.mapping.items())
        next_command = (
            f"assay score {shlex.quote(rollouts)} --spec {shlex.quote(str(path))}{mapped} --out rewards.parquet"
        )
    with new_file(path) as (file, guard), guard():
        file.write(text.encode())
    console = to_stderr()
    lines = (
        f"wrote {shown_path(path)}",
        "next:",
        f"  assay check {shown_path(path)}",
        f"  {printable(next_command)}",
    )
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
