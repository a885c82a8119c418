"""The check of a verifier class: its reward, diagnostics and errors."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from assay.calls.limits import NO_REWARD, is_user_error, to_reward
from assay.calls.places import failure
from assay.checks.base import BELOW_1, Columns, Outcome, Row, RowAwareCheck, Traits, outcomes_lane
from assay.checks.json.expected_schema import output_schema
from assay.classes.registry import Verifier
from assay.errors import RAISED, describe_error
from assay.expressions.json import NOT_JSON, loads, mended
from assay.expressions.mixed import untyped
from assay.expressions.shared_columns import OTHER_ROWS, SharedColumn, is_elementwise, rowwise, text
from assay.names import OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL
from assay.values.arguments import messages
from assay.values.plain import json_data

_GOLDS = ("answer", "expected", "metadata", OUTPUT_SCHEMA)
_TARGET = "target"
_PROMPT = "prompt"
_ANSWER = pl.Struct({"reward": pl.Float64, "info": pl.String, "error": pl.String})


def prompt_text(prompt: Any) -> str:
    """Return the text the model saw: a string, or the contents of chat messages, separated by blank lines."""
    prompt = untyped(prompt)
    if isinstance(prompt, str):
        prompt = messages(prompt)
    if not isinstance(prompt, list | tuple):
        return prompt if isinstance(prompt, str) else ""
    texts = []
    for message in prompt:
        content = message.get("content") if isinstance(message, Mapping) else message
        if isinstance(content, list | tuple):
            parts = [part.get("text") for part in content if isinstance(part, Mapping)]
            content = "".join(part for part in parts if isinstance(part, str))
        texts.append(content if isinstance(content, str) else "")
    return "\n\n".join(texts)


def target_of(row: Row) -> dict[str, Any]:
    """Return the reference data of a row: its ``target``, else its gold columns by name; JSON text of objects is parsed."""
    row = {**row, OUTPUT_SCHEMA: output_schema(row)}
    values = {name: untyped(row.get(name)) for name in (_TARGET, *_GOLDS)}
    if values[_TARGET] is not None:
        target = _read(values[_TARGET])
        return dict(target) if isinstance(target, Mapping) else {_TARGET: target}
    return {name: _read(values[name]) for name in _GOLDS if values[name] is not None}


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parsed = loads(value) if value.lstrip().startswith("{") else NOT_JSON
    return parsed if isinstance(parsed, dict) else value


class ByClass(RowAwareCheck):
    """The reward of an instance of a verifier class; ``kind`` is the name of the class in the registry."""

    graded = True

    def __init__(self, kind: str, verifier: Verifier) -> None:
        super().__init__()
        # NOTE: one check class serves every kind, so `type` and `traits`, class attributes elsewhere, are set on the instance
        self.type = kind  # type: ignore[misc]
        self.verifier = verifier
        may_read = () if self.has_twin else (_PROMPT, _TARGET, *_GOLDS, OUTPUT_SCHEMA_CAMEL)
        extra = "info/{verifier}"
        self.traits = Traits(bounded=False, may_read=may_read, extra=extra, code=type(verifier))  # type: ignore[misc]

    def outcome(self, row: Row) -> Outcome:
        try:
            prompt = prompt_text(row.get(_PROMPT))
            result = self.verifier.verify(prompt=prompt, completion=row["completion"], target=target_of(row))
            info = _json(getattr(result, "info", None))
            reward, misfit = to_reward(result.reward)
            if misfit is not None:
                return Outcome(0.0, NO_REWARD, NO_REWARD, info)
        except BaseException as exception:  # one broken verifier never ends a run
            if not is_user_error(exception):
                raise
            message = failure(exception, self, self.type)
            return Outcome(0.0, message, message)
        return Outcome(reward, (BELOW_1 if info == "{}" else info) if reward < 1 else "", None, info)

    @property
    def has_twin(self) -> bool:
        """Whether the class has columns."""
        return callable(getattr(self.verifier, "verify_expr", None))

    def columns(self) -> Columns:
        key = f"{self.type}:{id(self.verifier)}"
        if not self.has_twin:
            answers = outcomes_lane(self, key=key).col
            return Columns.of(answers, extra=answers.struct.field("extra"))
        answers = SharedColumn(f"class:{key}", self._twin).col
        reward, info, error = (answers.struct.field(name) for name in ("reward", "info", "error"))
        reason = pl.coalesce(error, pl.when(info == "{}").then(pl.lit(BELOW_1)).otherwise(info))
        return Columns(reward, reason, error, info)

    def explain(self) -> str:
        return (
            "columns: the class has a twin" if self.has_twin else "Python, row by row: the class has no verify_expr()"
        )

    def _twin(self, schema: pl.Schema) -> pl.Expr:
        inputs, prompt = [text().fill_null("").alias("completion")], pl.lit("")
        if _PROMPT in schema:
            inputs, prompt = [*inputs, _prompt_expr(schema).fill_null("").alias(_PROMPT)], pl.col(_PROMPT)
        twin = self.verifier.verify_expr(prompt=prompt, completion=pl.col("completion"))  # type: ignore[attr-defined]
        _check_twin(twin)
        run = partial(_answers, twin, type(self.verifier).__qualname__)
        return pl.struct(inputs).map_batches(run, return_dtype=_ANSWER, is_elementwise=True)


def _prompt_expr(schema: pl.Schema) -> pl.Expr:
    values = pl.col(_PROMPT)
    if schema[_PROMPT] != pl.String:
        return rowwise(values, prompt_text, pl.String)
    chats = pl.when(values.str.starts_with("[{")).then(values)
    return pl.coalesce(rowwise(chats, prompt_text, pl.String), values)


def _check_twin(twin: pl.Expr) -> None:
    texts = pl.LazyFrame(schema={"completion": pl.String, _PROMPT: pl.String})
    dtype = texts.select(answer=twin).collect_schema()["answer"]
    fields = {field.name: field.dtype for field in dtype.fields} if isinstance(dtype, pl.Struct) else {}
    reward = fields.get("reward", pl.Null())
    if not ((reward.is_numeric() or reward == pl.Boolean) and isinstance(fields.get("info"), pl.Struct)):
        raise TypeError(f"it gives {dtype}, not a struct of `reward`, a number, and `info`, a struct")
    if not is_elementwise(twin, texts.collect_schema(), tried=True):
        raise TypeError(OTHER_ROWS)


def _answers(twin: pl.Expr, name: str, texts: pl.Series) -> pl.Series:
    frame, answer = texts.struct.unnest(), pl.col("answer").struct
    reward, info, none = answer.field("reward").cast(pl.Float64), answer.field("info"), pl.lit(None, dtype=pl.String)
    info = pl.when(info.is_not_null()).then(info.struct.json_encode()).otherwise(pl.lit("{}"))
    try:
        # with_columns next to the texts rejects a twin of another length and repeats a literal; lazy, because only then Polars
        # computes a repeated subexpression once
        answers = frame.lazy().with_columns(answer=twin).select(reward=reward, info=info, error=none).collect()
    except BaseException as exception:  # one broken twin never ends a run
        if not is_user_error(exception):
            raise
        message = describe_error(exception).partition("\n\n")[0]  # Polars appends the expression
        error = pl.lit(f"the twin of {name} cannot run: {message}")
        answers = frame.with_columns(reward=pl.lit(0.0), info=none, error=error).select("reward", "info", "error")
    return answers.to_struct(texts.name)


def _json(info: Any) -> str:
    if info is None:
        return "{}"
    if not isinstance(info, Mapping):
        raise TypeError(f"info is {type(info).__name__}, not a dict")
    try:
        plain = json.dumps(json_data(info), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RAISED as exception:  # it contains itself, or an object whose str() raises
        plain = json.dumps({"info": describe_error(exception)}, separators=(",", ":"), ensure_ascii=False)
    return mended(plain)
