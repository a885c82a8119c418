"""Examples as a trainer reads them, built while the results are read a second time: texts wait only for those they are paired with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import UsageError
from assay.expressions.mixed import untyped_expr
from assay.expressions.shared_columns import exactly
from assay.insight.exporting.rows import Rows, Source, asked_messages
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import MESSAGES, layout_of
from assay.insight.integrity.prompts import gold_texts
from assay.insight.results import ROW
from assay.names import HIDDEN

TRACE = ("assay_result", "assay_row", "assay_root", "assay_task")
_SIDES = ("train", "validation")
_STORED: dict[str, Any] = {
    "at": pl.UInt32,
    "place": pl.UInt32,
    "prompt": MESSAGES,
    "completion": pl.String,
    "gold": pl.String,
}
_STORED |= {"data_source": pl.String, "ability": pl.String}
_KEPT = HIDDEN + "kept/"


def identity(rows: Rows) -> list[pl.Expr]:
    """Return the columns that say which row it is, of a frame with ``at`` and ``task``."""
    roots = [(source.result.provenance.get("content") or {}).get("root") for source in rows.sources]
    result, row = rows.place(pl.col("at"))
    task = pl.lit(rows.tasks).gather(pl.col("task")) if len(rows.tasks) else pl.lit(None, pl.String)
    return [
        result.cast(pl.Int64).alias("assay_result"),
        row.cast(pl.Int64).alias("assay_row"),
        pl.lit(pl.Series(roots, dtype=pl.String)).gather(result).alias("assay_root"),
        task.alias("assay_task"),
    ]


def columns_of(settings: Settings, rows: Rows, keep: Sequence[str]) -> dict[str, pl.Expr]:
    """Return the columns of examples; an error if two have one name."""
    recipe = settings["recipe"]
    columns = dict(layout_of(settings))
    trace: dict[str, pl.Expr] = {}
    if settings["trace"]:
        trace = {expr.meta.output_name(): expr for expr in identity(rows)}
        if recipe == "prompts":
            trace["assay_pass_rate"] = pl.col("c") / pl.col("n")
            trace["assay_rollouts"] = pl.col("n").cast(pl.Int64)
        else:
            trace["assay_reward"] = pl.col("reward")
        if recipe == "dpo":
            trace["assay_rejected_row"] = rows.place(pl.col("other"))[1].cast(pl.Int64)
            trace["assay_rejected_reward"] = pl.col("rejected_reward")
    for name in keep:
        dtypes = [source.whole.schema[name] for source in rows.sources]
        if other := next((dtype for dtype in dtypes if dtype != dtypes[0]), None):
            raise UsageError(f"--keep {name}: the results have values of type {dtypes[0]} and of type {other}.")
    if clash := [name for name in keep if name in columns or name in trace]:
        raise UsageError(
            f"--keep {clash[0]}: the examples have a column of that name of their own.", "Rename the column."
        )
    return columns | trace | {name: exactly(_KEPT + name) for name in keep}


def examples(
    rows: Rows, frame: pl.DataFrame, chosen: pl.DataFrame, settings: Settings, keep: Sequence[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the examples of each side in their order, batch by batch; ``chosen`` has the column ``side``.

    An example can be built when its last row has been read, and after those before it.
    """
    columns = columns_of(settings, rows, keep)
    places = chosen.with_row_index("place")
    ends = [pl.col("at"), pl.col("other")] if "other" in chosen.columns else [pl.col("at")]
    due = places.select(pl.max_horizontal(ends).cum_max()).to_series()
    used = pl.concat([places.select(end.alias("at"), "place") for end in ends])
    used = used.group_by("at").agg(pl.col("place").max()).sort("at") if len(ends) > 1 else used.sort("at")
    done, index = 0, dict.fromkeys(_SIDES, 0)
    store: pl.DataFrame | None = None
    for last, texts in _texts(rows, used, settings, keep):
        is_first = store is None
        store = texts if store is None else pl.concat([store, texts], how="vertical_relaxed")
        end = int(due.search_sorted(last, side="right"))
        if end > done or is_first:
            ready = _joined(places.slice(done, end - done), store, frame)
            for side in _SIDES:
                part = ready.filter(pl.col("side") == side)
                split = pl.lit("test" if side == "validation" else side)
                place = pl.int_range(index[side], index[side] + part.height, dtype=pl.Int64)
                part = part.with_columns(split=split, index=place)
                index[side] += part.height
                yield side, part.select(expr.alias(name) for name, expr in columns.items())
            done = end
            store = store.filter(pl.col("place") >= done)


def _joined(chosen: pl.DataFrame, store: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    texts = store.drop("place")
    ready = chosen.join(texts, on="at", how="left", maintain_order="left")
    ready = ready.hstack(frame.select("task", "reward", label="passed")[chosen["at"]])
    if "other" in chosen.columns:
        other = texts.select(pl.col("at").alias("other"), pl.col("completion").alias("rejected"))
        ready = ready.join(other, on="other", how="left", maintain_order="left")
        ready = ready.hstack(frame.select(rejected_reward="reward")[chosen["other"]])
    return ready


def _texts(
    rows: Rows, used: pl.DataFrame, settings: Settings, keep: Sequence[str]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield what examples are made of, of the rows that are used, in order; and the last row that was read."""
    start = 0
    for source in rows.sources:
        schema = source.whole.schema
        facts = (*source.golds, *(name for name in _LABELS if name in schema))
        names = dict.fromkeys((*source.prompts, *(facts if settings["recipe"] == "prompts" else ())))
        kept = [untyped_expr(exactly(name), schema[name]).alias(_KEPT + name) for name in keep]
        own = [source.text.alias(HIDDEN + "text")] if source.reads_text else []
        for batch in source.whole.batches(pl.col(ROW), *own, *map(exactly, names), *kept):
            begin, end = (int(used["at"].search_sorted(at)) for at in (start, start + batch.height))
            some = used.slice(begin, end - begin)
            start += batch.height
            yield start - 1, _stored(batch[some["at"] - (start - batch.height)], source, some, keep)


_LABELS = ("data_source", "datasource", "ability")


def _stored(batch: pl.DataFrame, source: Source, used: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
    def first(names: Sequence[str]) -> pl.Series | None:
        values = [gold_texts(batch[name]) for name in names if name in batch.columns]
        return pl.select(pl.coalesce(values)).to_series() if values else None

    sources = first(_LABELS[:2])
    columns: Mapping[str, Any] = {
        "at": used["at"],
        "place": used["place"],
        "prompt": asked_messages(batch, source.prompts),
        "completion": batch[HIDDEN + "text"] if source.reads_text else None,
        "gold": first(source.golds),
        "data_source": "assay" if sources is None else sources.fill_null("assay"),
        "ability": first(["ability"]),
    }
    frame = pl.DataFrame(columns, schema_overrides=_STORED)
    return frame.hstack([batch[_KEPT + name] for name in keep])
