"""Arguments that several commands share, with their help."""

from collections.abc import Iterable
from typing import Annotated

import typer

ResultPath = Annotated[
    str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
]

ByNames = Annotated[
    str | None, typer.Option(metavar="NAME,…", help="Columns whose values to tell apart. [default: model]")
]

TaskNames = Annotated[
    str | None, typer.Option(metavar="NAME,…", help="Columns that name the task. [default: task_id, else example_id]")
]

GroupNames = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,…",
        help="Columns that name the group. [default: those of the task, model, step, as far as they exist]",
    ),
]

LengthColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column with the length of each text, such as tokens. [default: code points]"),
]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]

AsData = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def names(values: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names that an option lists, separated by commas."""
    given = [values] if isinstance(values, str) else values or ()
    return tuple(name for value in given for name in value.split(",") if name)
