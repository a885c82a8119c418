"""The command that makes a training set of results."""

import json
from typing import Annotated, Any

import typer

from assay.cli.app import AsData, command, option, to_stderr
from assay.cli.results import deliver
from assay.errors import FailedRunError, UsageError
from assay.options import ExportOptions, settle
from assay.system.stdout import only_data

_WORDS = {"true": True, "false": False, "none": None, "null": None}


@command(
    {ExportOptions: ()},
    modules=("assay.insight.exporting.exports",),
    epilog="""\b
Examples:
  assay export rewards.parquet --recipe sft --out train.parquet
  assay export rewards.parquet --recipe dpo --set margin=0.5 --set validation=0.1 --out pairs/
  assay export rewards.parquet --recipe prompts --target verl --out prompts.parquet""",
)
def export(
    results: Annotated[
        list[str], typer.Argument(help="Rewards that assay score wrote: parquet files, or folders of parts.")
    ],
    *,
    recipe: Annotated[
        str, option("What to make: sft, dpo, kto or prompts; or a file with `recipe` and settings.", "NAME|FILE")
    ],
    target: Annotated[
        str | None,
        option("Trainer that reads it: trl, verl, openrlhf, nemo-rl, axolotl or llamafactory. [default: trl]", "NAME"),
    ] = None,
    settings: Annotated[
        list[str] | None, option("Setting of the recipe, such as best=2. May be repeated.", "KEY=VALUE", "--set")
    ] = None,
    out: Annotated[str, option("File that ends in .parquet or .jsonl, or folder.", "PATH", "--out", "-o")],
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Make a training set of results: examples that a trainer reads, why each other row is not used, and a card."""
    from assay.insight.exporting.exports import make
    from assay.insight.exporting.rows import Asking
    from assay.insight.exporting.settings import settled

    told = _settings(settings or []) | ({} if target is None else {"target": target})
    asking: dict[str, Any] = {**settle(ExportOptions, options, "export")}
    own = {name: asking.pop(name) for name in ("min_examples", "overwrite")}
    with only_data(), to_stderr().status("exporting"):
        made = make(results, settled(recipe, told), out, Asking(**asking), **own)
    deliver(made.as_json(), made.document(), out=None, as_data=as_data)
    if made.lacks:
        raise FailedRunError(f"{made.lacks}.")


def _settings(pairs: list[str]) -> dict[str, Any]:
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"--set {pair}: expected KEY=VALUE.", "For example --set best=2")
        settings[name] = _value(text)
    return settings


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for read in (json.loads, float):  # JSON has no .5
        try:
            return read(text)
        except ValueError:
            continue
    return [_value(part.strip()) for part in text.split(",")] if "," in text else text
