"""The rollouts of a parquet file in JSON lines: completions, or chats of two messages, also with what Python reads."""

from pathlib import Path

import polars as pl

from harness.generate import kept

__all__ = ["FORMS", "in_lines"]

_CALL = pl.struct(
    id=pl.lit("call_1"),
    type=pl.lit("function"),
    function=pl.struct(name=pl.lit("search"), arguments=pl.lit('{"query": "music"}')),
)


def _chat(**more: pl.Expr) -> pl.Expr:
    """A question, and the completion as its answer."""
    question = pl.struct(role=pl.lit("user"), content=pl.lit("Answer."), **{name: pl.lit(None) for name in more})
    return pl.concat_list(question, pl.struct(role=pl.lit("assistant"), content="completion", **more)).alias("messages")


FORMS = {
    "completions": ["completion"],
    "chats": [_chat()],
    "completions with metadata": ["completion", pl.struct(topic=pl.lit("music"), step="id").alias("metadata")],
    "chats with tool calls": [_chat(tool_calls=pl.concat_list(_CALL))],
}


def in_lines(rollouts: Path, form: str, rows: int) -> Path:
    """Return a file of JSON lines with the first rows, made where it is not there."""
    frame = pl.scan_parquet(rollouts, n_rows=rows).select("id", *FORMS[form])
    return kept(
        f"{rollouts.stem}-{rows}-{form.replace(' ', '-')}", lambda path: frame.collect().write_ndjson(path), "jsonl"
    )
