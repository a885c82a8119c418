"""``assay show``: rows of a result, with what their checks say."""

import json
from functools import partial
from typing import Annotated

import typer

from assay.cli.app import command
from assay.cli.app import show as on_stdout
from assay.cli.arguments import AsData, ResultPath, names
from assay.system.stdout import write_data

_EXAMPLES = """\b
Examples:
  assay show rewards.parquet --failed policy --limit 5
  assay show rewards.parquet --where 'reward < 0.5 and model == "elm"' --sort -reward"""


@command(epilog=_EXAMPLES, modules=("assay.cli.cards", "assay.insight.rows.showing"))
def show(
    result: ResultPath,
    *,
    failed: Annotated[
        list[str] | None, typer.Option(help="Rows on which this check fails. May be repeated.", metavar="CHECK")
    ] = None,
    passed: Annotated[
        list[str] | None, typer.Option(help="Rows on which this check passes. May be repeated.", metavar="CHECK")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Rows for which this SQL expression over the columns holds. May be repeated.", metavar="SQL"),
    ] = None,
    sort: Annotated[
        list[str] | None, typer.Option(help="Columns to sort by; -NAME for the largest first.", metavar="NAME,…")
    ] = None,
    limit: Annotated[int, typer.Option(help="Rows to show.", metavar="N")] = 10,
    random: Annotated[
        int | None, typer.Option(help="Choose the rows at random; the same seed chooses the same.", metavar="SEED")
    ] = None,
    row: Annotated[
        list[int] | None, typer.Option(help="Number of a row, from 0. May be repeated.", metavar="N")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to show of each row. [default: those of the task, model, step, as far as they exist]",
            metavar="NAME,…",
        ),
    ] = None,
    rollouts: Annotated[
        list[str] | None,
        typer.Option(
            help="The rollouts that were scored, to show their texts. [default: the result's own, else those it names]",
            metavar="FILE",
        ),
    ] = None,
    as_data: AsData = False,
) -> None:
    """Show rows of a result: key columns, reward, each check with its feedback, the gold, and the text with what matched."""
    from assay.cli.cards import print_cards
    from assay.insight.rows.showing import show as look

    cards = look(
        result,
        failed=failed or (),
        passed=passed or (),
        where=where or (),
        sort=names(sort),
        limit=limit,
        random=random,
        row=row or (),
        columns=names(columns),
        rollouts=rollouts or None,
    )
    if as_data:
        write_data(json.dumps(cards.as_json(), allow_nan=False, default=str) + "\n")
    else:
        on_stdout(partial(print_cards, cards=cards), width=None)
