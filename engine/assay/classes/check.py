"""The check that a verifier class makes: its reward, its diagnostics, its errors."""

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from assay.calls.limits import NO_REWARD, own_failure, scalar, settled
from assay.checks.base import BELOW_1, Check, Outcome, Row
from assay.classes.registry import Verifier
from assay.errors import RAISED, said_by
from assay.expressions.json import NOT_JSON, loads, mended
from assay.expressions.lane import OTHER_ROWS, Lane, is_elementwise, rowwise, text
from assay.expressions.mixed import untyped
from assay.values.arguments import messages

__all__ = ["ByClass", "prompt_text", "target_of"]

_GOLDS = ("answer", "expected", "metadata", "expected_output_schema")
_TARGET = "target"
_PROMPT = "prompt"
_ANSWER = pl.Struct({"reward": pl.Float64, "info": pl.String, "error": pl.String})


def prompt_text(prompt: Any) -> str:
    """The text the model saw: a string, or the contents of chat messages, one after another with a blank line between.

    Messages may come as JSON text, as they do where the messages of a file are of several shapes.
    """
    if isinstance(prompt, str):
        prompt = messages(prompt)
    if not isinstance(prompt, list | tuple):
        return prompt if isinstance(prompt, str) else ""
    return "\n\n".join(_content(message) for message in prompt)


def _content(message: Any) -> str:
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list | tuple):
        content = "".join(
            part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        )
    return content if isinstance(content, str) else ""


def target_of(row: Row) -> dict[str, Any]:
    """The reference data of a row: its ``target``, else its gold columns by name; JSON text of objects is read."""
    given = {name: untyped(row.get(name)) for name in (_TARGET, *_GOLDS)}
    if given[_TARGET] is not None:
        target = _read(given[_TARGET])
        return dict(target) if isinstance(target, Mapping) else {_TARGET: target}
    return {name: _read(given[name]) for name in _GOLDS if given[name] is not None}


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = loads(value) if value.lstrip().startswith("{") else NOT_JSON
    return found if isinstance(found, dict) else value


class ByClass(Check):
    """The reward of a verifier class.

    Args:
        kind: Its name in the registry.
        verifier: The instance.
    """

    graded = True
    bounded = False
    extra = "info/{verifier}"

    def __init__(self, kind: str, verifier: Verifier) -> None:
        super().__init__()
        # NOTE: one class stands for every kind, so what other checks say of their class this one says of itself
        self.type = kind  # type: ignore[misc]
        self.verifier = verifier
        self.may_read = () if self.has_expr else (_PROMPT, _TARGET, *_GOLDS)  # type: ignore[misc]

    def outcome(self, row: Row) -> Outcome:
        try:
            prompt = prompt_text(row.get(_PROMPT))
            result = self.verifier.verify(prompt=prompt, completion=row["completion"], target=target_of(row))
            info = _json(getattr(result, "info", None))
            reward, misfit = settled(result.reward)
            if misfit is not None:
                return Outcome(0.0, NO_REWARD, NO_REWARD, info)
        except BaseException as wrong:  # one broken verifier never ends a run
            if not own_failure(wrong):
                raise
            return Outcome(0.0, said_by(wrong), said_by(wrong))
        return Outcome(reward, (BELOW_1 if info == "{}" else info) if reward < 1 else "", None, info)

    @property
    def made_by(self) -> type:
        return type(self.verifier)

    @property
    def has_expr(self) -> bool:
        return callable(getattr(self.verifier, "verify_expr", None))

    def expr(self) -> pl.Expr:
        return self._lane().col.struct.field("reward" if self.has_expr else "score")

    def reason_expr(self) -> pl.Expr:
        if not self.has_expr:
            return self._lane().col.struct.field("reason")
        info = self.extra_expr()
        return pl.coalesce(self.error_expr(), pl.when(info == "{}").then(pl.lit(BELOW_1)).otherwise(info))

    def error_expr(self) -> pl.Expr:
        return self._lane().col.struct.field("error")

    def extra_expr(self) -> pl.Expr:
        return self._lane().col.struct.field("info" if self.has_expr else "extra")

    def lanes(self) -> tuple[Lane, ...]:
        return (self._lane(),)

    def explain(self) -> str:
        return (
            "columns: the class has a twin" if self.has_expr else "Python, row by row: the class has no verify_expr()"
        )

    def _identity(self) -> str:
        return f"{self.type}:{id(self.verifier)}"

    def _lane(self) -> Lane:
        if not self.has_expr:
            return self._row_lane()
        return Lane(f"class:{self._identity()}", self._twin)

    def _twin(self, schema: pl.Schema) -> pl.Expr:
        asked, prompt = [text().fill_null("").alias("completion")], pl.lit("")
        if _PROMPT in schema:
            asked, prompt = [*asked, _prompt_expr(schema).fill_null("").alias(_PROMPT)], pl.col(_PROMPT)
        twin = self.verifier.verify_expr(prompt=prompt, completion=pl.col("completion"))  # type: ignore[attr-defined]
        _check_twin(twin)
        run = partial(_answers, twin, self.made_by.__qualname__)
        return pl.struct(asked).map_batches(run, return_dtype=_ANSWER, is_elementwise=True)


def _prompt_expr(schema: pl.Schema) -> pl.Expr:
    """``prompt_text`` as an expression."""
    values = pl.col(_PROMPT)
    if schema[_PROMPT] != pl.String:
        return rowwise(values, prompt_text, pl.String)
    messages = pl.when(values.str.starts_with("[{")).then(values)
    return pl.coalesce(rowwise(messages, prompt_text, pl.String), values)


def _check_twin(twin: pl.Expr) -> None:
    """Find a twin of the wrong type before a row is read.

    Raises:
        TypeError: It is.
    """
    texts = pl.LazyFrame(schema={"completion": pl.String, _PROMPT: pl.String})
    dtype = texts.select(answer=twin).collect_schema()["answer"]
    fields = {one.name: one.dtype for one in dtype.fields} if isinstance(dtype, pl.Struct) else {}
    reward = fields.get("reward", pl.Null())
    if not ((reward.is_numeric() or reward == pl.Boolean) and isinstance(fields.get("info"), pl.Struct)):
        raise TypeError(f"it gives {dtype}, not a struct of `reward`, a number, and `info`, a struct")
    if not is_elementwise(twin, texts.collect_schema(), tried=True):
        raise TypeError(OTHER_ROWS)


def _answers(twin: pl.Expr, name: str, asked: pl.Series) -> pl.Series:
    """What a twin says of a batch; where it raises, every row of the batch scores 0.0 and says so."""
    frame, answer = asked.struct.unnest(), pl.col("answer").struct
    reward, info, none = answer.field("reward").cast(pl.Float64), answer.field("info"), pl.lit(None, dtype=pl.String)
    info = pl.when(info.is_not_null()).then(info.struct.json_encode()).otherwise(pl.lit("{}"))
    try:
        # a column beside the texts: a twin of another length is refused, and a literal is repeated; lazy, for only then what
        # a twin says twice is computed once
        found = frame.lazy().with_columns(answer=twin).select(reward=reward, info=info, error=none).collect()
    except BaseException as wrong:  # one broken twin never ends a run
        if not own_failure(wrong):
            raise
        said = said_by(wrong).partition("\n\n")[0]  # the engine adds the expression
        error = pl.lit(f"the twin of {name} cannot run: {said}")
        found = frame.with_columns(reward=pl.lit(0.0), info=none, error=error).select("reward", "info", "error")
    return found.to_struct(asked.name)


def _json(info: Any) -> str:
    """Diagnostics as compact JSON text, whatever they hold: no info costs a good reward."""
    if info is None:
        return "{}"
    if not isinstance(info, Mapping):
        raise TypeError(f"info is {type(info).__name__}, not a dict")
    try:
        plain = json.dumps(_plain(info), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RAISED as wrong:  # it holds itself, or what has no str()
        plain = json.dumps({"info": said_by(wrong)}, separators=(",", ":"), ensure_ascii=False)
    return mended(plain)


def _plain(value: Any) -> Any:
    """A value as JSON has it: keys and what JSON does not know by their str(), what is no finite number as null."""
    value = scalar(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
