"""Score Arrow tables batch by batch, for engines that call Python functions on batches (Ray Data, Daft, Spark).

Such an engine needs the same columns and types for every batch, including empty ones, and calls thousands of times. The
result therefore has plain Arrow types that depend on the schema only, and a plan is compiled once per verifier and schema.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import polars as pl
import pyarrow as pa

from assay.compiling.plan import Plan, compile  # noqa: A004  (the field's word)
from assay.errors import InputError, UsageError
from assay.options import BatchOptions, documented, settle
from assay.scoring.in_memory import score
from assay.spec.named import registered
from assay.spec.verifier import VerifierSource
from assay.system.processes import prepare_process
from assay.values.arrow import from_arrow
from assay.writing.writers import in_schema, plain_arrow

_PLANS: OrderedDict[Any, tuple[Plan, Any]] = OrderedDict()
_MAX_PLANS = 32
"""Plans in the cache."""

_LOCK = threading.Lock()


@documented(BatchOptions)
def score_batch(
    table: Any,
    verifiers: VerifierSource | Sequence[VerifierSource] | Plan | None = None,
    **options: Unpack[BatchOptions],
) -> Any:
    """Score one batch of a larger table: one row for each row, in order, with the same columns and types for every batch.

    For use in functions that Ray Data, Daft and Spark call with Arrow. The plan is compiled for the first batch and cached.

    Args:
        table: A ``pyarrow.Table`` or ``RecordBatch``; validated in full.
        verifiers: One or more verifiers: objects, paths or mappings; None if the rows carry their own. A file is read once
            per process. Or a plan of ``assay.compile``, for rows of its schema.
        options: As for ``assay.score``.

    Returns:
        A ``pyarrow.Table`` with the columns of ``assay.score``, in the types that ``batch_schema`` returns.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: The table is not valid Arrow data.
        ColumnsError: Columns that the checks read are missing or have the wrong type.

    Example:
        >>> import assay, pyarrow as pa
        >>> spec = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}
        >>> assay.score_batch(pa.table({"completion": ["a refund"]}), spec)["reward"].to_pylist()
        [1.0]
    """
    settled = settle(BatchOptions, options, "score_batch")
    prepare_process()
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise InputError(f"A batch of type {type(table).__name__} cannot be scored.", "Give a pyarrow.Table.")
    frame = from_arrow(table)
    plan, schema = _compiled(frame.schema, verifiers, settled)
    try:
        return in_schema(plain_arrow(score(frame, plan)), schema)
    except pa.ArrowInvalid as error:
        hint = "Use smaller batches, with less than 2 GB of text per column."
        raise InputError(f"The batch is too large: {error}", hint) from None


@documented(BatchOptions)
def batch_schema(
    schema: Any,
    verifiers: VerifierSource | Sequence[VerifierSource] | Plan | None = None,
    **options: Unpack[BatchOptions],
) -> Any:
    """Return the schema of what ``score_batch`` returns for tables of a schema.

    Args:
        schema: A ``pyarrow.Schema``.
        verifiers: As for ``score_batch``.
        options: As for ``score_batch``.

    Returns:
        A ``pyarrow.Schema`` of text, booleans, numbers and the columns passed through.
    """
    settled = settle(BatchOptions, options, "batch_schema")
    prepare_process()
    if not isinstance(schema, pa.Schema):
        raise InputError(
            f"{type(schema).__name__} is not a schema.", "Give a pyarrow.Schema, for example table.schema."
        )
    return _compiled(from_arrow(schema.empty_table()).schema, verifiers, settled)[1]


def _compiled(
    schema: pl.Schema, verifiers: VerifierSource | Sequence[VerifierSource] | Plan | None, options: BatchOptions
) -> tuple[Plan, Any]:
    keep = options["keep"]
    key: Any = verifiers
    if not isinstance(verifiers, Plan):
        key = (tuple(schema.items()), _key(verifiers), _key({**options}))
    elif keep is not None or not options["details"] or options["any_role"] or options["lengths"] or options["outcome"]:
        fact = "keep, details, any_role, lengths, outcome: a plan is scored as it was compiled."
        raise UsageError(fact, "Compile another plan.")
    with _LOCK:
        if key not in _PLANS:
            plan = verifiers if isinstance(verifiers, Plan) else compile(verifiers, schema, **options)
            out = plan.lazy(pl.LazyFrame(schema=dict(plan.schema))).collect_schema()
            _PLANS[key] = plan, pa.schema([*map(_plain, plain_arrow(pl.DataFrame(schema=out)).schema)])
            if len(_PLANS) > _MAX_PLANS:
                _PLANS.popitem(last=False)
        _PLANS.move_to_end(key)
        return _PLANS[key]


def _key(verifiers: Any) -> Any:
    if isinstance(verifiers, str | Path):
        spec = registered(verifiers) if isinstance(verifiers, str) else None
        path = Path(verifiers) if spec is None else spec.path
        state = path.stat() if path.is_file() else None
        return str(path), state and (state.st_mtime_ns, state.st_size)
    if isinstance(verifiers, Mapping):
        return json.dumps(verifiers, sort_keys=True, default=repr)
    if isinstance(verifiers, Sequence):
        return tuple(map(_key, verifiers))
    return verifiers


def _plain(field: Any) -> Any:
    return pa.field(field.name, _plain_type(field.type))


def _plain_type(dtype: Any) -> Any:
    # every engine supports it: no views, no 64-bit offsets, no dictionaries
    if pa.types.is_dictionary(dtype):
        return _plain_type(dtype.value_type)
    if pa.types.is_large_list(dtype):
        return pa.list_(_plain(dtype.value_field))
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_plain(dtype.value_field), dtype.list_size)
    if pa.types.is_struct(dtype):
        return pa.struct([_plain(dtype.field(index)) for index in range(dtype.num_fields)])
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(dtype, dtype)
