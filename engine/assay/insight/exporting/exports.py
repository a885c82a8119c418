"""Training sets from results: which rows, in which form, and with what pedigree."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import AssayWarning, UsageError, counted
from assay.insight.exporting import selections
from assay.insight.exporting.card import card_document, card_of, headline
from assay.insight.exporting.examples import columns_of, examples, identity
from assay.insight.exporting.files import places_of, write
from assay.insight.exporting.rows import Asking, Rows, read
from assay.insight.exporting.rules import REASONS, details, first_rules
from assay.insight.exporting.settings import Settings, settled
from assay.insight.exporting.split import is_validation, units_of
from assay.insight.exporting.targets import layout_of
from assay.insight.results import Result, names_of, open_result
from assay.options import ExportOptions, documented
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_ROWS_AT_ONCE = 1 << 16
_SIDES = {False: "train", True: "validation"}
_SIDE = pl.Enum([*_SIDES.values()])


@dataclass(frozen=True, eq=False, repr=False)
class Export(Displayed):
    """A training set.

    Attributes:
        card: What was made, of what, by which settings, and what was left out.
        notes: What the user should know.
        lacks: What there are too few of, in a sentence; ``""`` if there are enough examples.
        parts: The examples of each split, with their schema, and the excluded rows; or the files that they were written to.
    """

    card: dict[str, Any]
    notes: tuple[str, ...]
    lacks: str
    parts: Mapping[str, pl.DataFrame | Path]
    schema: pl.Schema

    @cached_property
    def train(self) -> pl.DataFrame:
        """The examples to train on."""
        return self._read("train")

    @cached_property
    def validation(self) -> pl.DataFrame:
        """The examples that are held out."""
        return self._read("validation")

    @cached_property
    def excluded(self) -> pl.DataFrame:
        """The rows that are not used, each with its ``reason`` and a ``detail``."""
        return self._read("excluded")

    def _read(self, split: str) -> pl.DataFrame:
        part = self.parts.get(split)
        if isinstance(part, Path):
            is_parquet = part.suffix.lower() == ".parquet"
            return pl.read_parquet(part) if is_parquet else pl.read_ndjson(part, schema=self.schema)
        return pl.DataFrame(schema=self.schema) if part is None else part

    @property
    def headline(self) -> str:
        """How many examples there are, of how many rows."""
        return headline(self.card)

    def _document(self) -> Document:
        return card_document(self.card, whole=False)

    def as_json(self) -> dict[str, Any]:
        """Return the card."""
        return self.card


@documented(ExportOptions)
def export(
    results: Any,
    recipe: Any = "sft",
    out: str | Path | None = None,
    *,
    where: Sequence[str] | str = (),
    task: Sequence[str] | str = (),
    group: Sequence[str] | str = (),
    length: str | None = None,
    rollouts: Any = None,
    tasks: Any = None,
    prompt: str | None = None,
    keep: Sequence[str] | str = (),
    min_examples: int = 1,
    overwrite: bool = False,
    **settings: Any,
) -> Export:
    """Make a training set of results: examples in the form that a trainer reads, and for each other row why it is not used.

    Args:
        results: Parquet files of ``assay score``, folders of parts, or Polars frames with ``reward`` and ``passed``; or a list of them.
        recipe: ``sft``, ``dpo``, ``kto`` or ``prompts``; or the path of a YAML, JSON or TOML file, or a mapping, with ``recipe`` and settings.
        out: A file that ends in ``.parquet`` or ``.jsonl``, or a folder; None for frames in memory.
        settings: Settings of the recipe, such as ``target="verl"``, ``best=2`` or ``validation=0.1``.
        options: Those of ``assay.options.ExportOptions``, as the signature lists them.

    Returns:
        The examples, the rows that are not used, and the card.

    Raises:
        InputError: A result cannot be read, or its texts cannot be had.
        UsageError: A setting or an option cannot be used.
        OutputError: A file cannot be written.

    Example:
        >>> import assay
        >>> rows = [{"task_id": "a", "prompt": "2+2?", "completion": text} for text in ("It is 4.", "It is 5.")]
        >>> rewards = assay.score(rows, {"checks": [{"type": "contains", "value": "4"}]}, keep="*")
        >>> assay.export(rewards, "dpo").train["rejected"].to_list()
        [[{'role': 'assistant', 'content': 'It is 5.'}]]
    """
    asking = Asking(names_of(where), names_of(task), names_of(group), length, rollouts, tasks, prompt, names_of(keep))
    made = make(results, settled(recipe, settings), out, asking, min_examples=min_examples, overwrite=overwrite)
    if made.lacks:
        warnings.warn(made.lacks, AssayWarning, stacklevel=3)
    return made


def make(
    results: Any, settings: Settings, out: Any, asking: Asking, *, min_examples: int = 1, overwrite: bool = False
) -> Export:
    """Do what ``export`` says, without a warning of too few examples."""
    layout_of(settings)
    places = None if out is None else places_of(out, settings, overwrite=overwrite)
    notes = list[str]()
    if isinstance(results, list | tuple) and not results:
        raise UsageError("No result is named.", "Name one, or several that one verifier has scored.")
    opened = [open_result(result) for result in (results if isinstance(results, list | tuple) else [results])]
    _refuse_scales(opened)
    rows = read(opened, settings, asking, notes)
    columns_of(settings, rows, asking.keep)
    _refuse_policies(rows, asking)
    frame, chosen = _selected(rows, settings)
    units = units_of(rows.frame, rows.tasks, rows.units)
    share, seed = settings["validation"], settings["seed"]
    held_out = pl.Series([share > 0 and is_validation(unit, share, seed) for unit in units], dtype=pl.Boolean)
    side = held_out.gather(frame["task"].gather(chosen["at"])).replace_strict(_SIDES, return_dtype=_SIDE)
    chosen = chosen.with_columns(side=side)
    if settings.get("order", "row") != "row":
        notes.append("trainers shuffle: TRL by shuffle_dataset, verl by data.shuffle")
    if settings["validation"] and chosen["side"].n_unique() == 1:
        notes.append(
            f"all examples are for {chosen['side'][0]}: there are too few units of tasks for the share of validation"
        )
    lacks = _lacks(rows, settings, asking, chosen.height, min_examples)
    card = card_of(rows, frame, chosen, settings, units, notes)
    excluded = _excluded(rows, frame, settings)
    made = examples(rows, frame, chosen, settings, asking.keep)
    parts: dict[str, Any] = {}
    if places is None:
        for split, batch in made:
            parts[split] = batch if split not in parts else pl.concat([parts[split], batch])
        schema = parts["train"].schema
        parts["excluded"] = pl.concat(excluded)
    else:
        schema = write(places, settings, made if not lacks else (), excluded, card)
        parts = {name: path for name, path in (*places.splits.items(), ("excluded", places.excluded)) if path.exists()}
    return Export(card, tuple(notes), lacks, parts, schema)


def _excluded(rows: Rows, frame: pl.DataFrame, settings: Settings) -> Iterator[pl.DataFrame]:
    """Yield the rows that are not used, in order."""
    columns = [pl.col("at"), *identity(rows), pl.col("reward").alias("assay_reward")]
    words = details(rows, settings)
    for start in range(0, max(1, frame.height), _ROWS_AT_ONCE):
        some = frame.slice(start, _ROWS_AT_ONCE)
        parts = [some.clear().select(*columns, reason=pl.lit(None, pl.String), detail=pl.lit(None, pl.String))]
        for (code,), own in some.filter(pl.col("reason") > 0).partition_by("reason", as_dict=True).items():
            detail = words.get(code, pl.lit(None, pl.String))
            parts.append(own.select(*columns, reason=pl.lit(REASONS[code]), detail=detail))
        yield pl.concat(parts).sort("at").drop("at")


def _selected(rows: Rows, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    return selections.select(first_rules(rows, settings), settings)


def _lacks(rows: Rows, settings: Settings, asking: Asking, number: int, least: int) -> str:
    """Return what to say of too few examples; ``""`` if there are enough."""
    if number >= least:
        return ""
    text = f"{counted(number, 'example')}, and at least {least:,} {'is' if least == 1 else 'are'} wanted: only the excluded rows and the card are made"
    if settings["recipe"] == "dpo" and not number and not asking.group:
        group = pl.struct(rows.place(pl.col("at"))[0], "task").rank("dense").cast(pl.UInt32).alias("group")
        joined = replace(rows, frame=rows.frame.with_row_index("at").with_columns(group).drop("at"))
        if pairs := _selected(joined, settings)[1].height:
            task = ",".join(rows.sources[0].tasks) or "TASK"
            text += f"; groups by task alone, of several models or steps, give {counted(pairs, 'pair')}: --group {task}"
    return text


def _refuse_scales(results: Sequence[Result]) -> None:
    """Refuse results of other verifiers: their rewards are not on one scale."""
    known = [(result, sorted(own["sha256"] for own in result.verifiers)) for result in results if result.verifiers]
    for result, verifiers in known:
        if verifiers != known[0][1]:
            fact = f"{result.name}: its verifiers are others than those of {known[0][0].name}, so their rewards are not on one scale."
            raise UsageError(fact, "Score the rollouts of all results with one verifier, or export them one by one.")


def _refuse_policies(rows: Rows, asking: Asking) -> None:
    """Refuse prompts of several policies: a pass rate belongs to one."""
    for name, values in rows.policies.items():
        if len(values) > 1 and not asking.group:
            fact = f"The rows have {len(values)} values of `{name}`, and a pass rate belongs to one policy."
            raise UsageError(fact, f'Choose one, such as --where "{name} = …", or join them: --group task_id')
