"""Which columns of rollouts checks read, in types that Python can read and with bytes as text; and what is wrong with them."""

import shlex
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import polars as pl

from assay.aggregating.outcomes import SIGNS
from assay.checks.base import Check, RowAwareCheck, has_expr, is_builtin
from assay.errors import ColumnsError, InputError, closest, did_you_mean, listed, printable
from assay.expressions.completion import completion_source, completion_text, completion_text_expr
from assay.expressions.mixed import BYTES, JSON, TYPED, is_typed, untyped
from assay.expressions.readable import LOST, has_type, is_all_text, readable, readable_value
from assay.expressions.shared_columns import exactly, not_hidden, nulls, plain, plain_type
from assay.functions.check import RowFunctionCheck
from assay.functions.registry import list_fns
from assay.loading.formats.reading import Reading, reading_of
from assay.names import (
    COMPLETION,
    EXPECTED,
    FN_NAME,
    GOLD_COLUMNS,
    HIDDEN,
    IN_PROCESS,
    OUTPUT_SCHEMA,
    OUTPUT_SCHEMA_CAMEL,
    TASK_ID,
    VERIFIER,
    VERIFIER_COLUMNS,
)
from assay.spec.verifier import CheckSpec, VerifierSpec
from assay.values.arguments import ARGUMENTS
from assay.values.column import OPEN, STRUCTURED
from assay.values.failures import failure_columns
from assay.values.paths import Path, find_expr
from assay.values.references import columns_of, value_at

_WITH_FORM = frozenset((COMPLETION, FN_NAME, *STRUCTURED, *OPEN, "id", *ARGUMENTS))
"""Columns whose readers know their forms: text or messages, objects as JSON text, and the ids of examples."""
_SPELLED = {OUTPUT_SCHEMA: OUTPUT_SCHEMA_CAMEL}
"""Columns that checks also read under another name."""
_SHOWN = 5
_NAMED = 100
"""Missing columns to keep that a message names."""
_HOW_TO_NAME = (
    "Register your own function first: --import MODULE, or assay.fns.register_fn.\n"
    "For rows that name no function, set a default: --verifier-name FN."
)
_LIKELY = (
    *("response", "output", "generation", "completions", "responses", "model_output", "generated_text", "text"),
    *("messages", "conversation", "conversations"),
)
"""Names that other tools give the completion."""


def needed_columns(verifiers: Sequence[VerifierSpec]) -> dict[str, list[str]]:
    """Return the columns that the checks require, each with those checks; every check reads the completion."""
    needed: dict[str, list[str]] = {COMPLETION: []}
    for verifier in verifiers:
        for spec in _readers([verifier]):
            for name in spec.check.traits.reads if spec.check else ():
                needed.setdefault(name, []).append(f"{spec.type} ({verifier.id}/{spec.id})")
    return needed


def assumed_columns(verifiers: Sequence[VerifierSpec]) -> dict[str, Any]:
    """Return the columns of rollouts that show theirs with the first batch, as text: those that the checks require."""
    names = [*needed_columns(verifiers), *referred_columns(verifiers)]
    if any(isinstance(check, RowFunctionCheck) for check in _checks(verifiers)):
        # which of several columns has the function and the gold is not known yet; these are the last that are looked for
        names += [FN_NAME, GOLD_COLUMNS[-1]]
    return dict.fromkeys(names, pl.String)


def read_columns(verifiers: Sequence[VerifierSpec], present: Container[str] = ()) -> list[str]:
    """Return the columns that the checks require, and the optional ones."""
    checks = _checks(verifiers)
    optional = (
        name
        for check in checks
        for name in check.traits.may_read
        if not any(other in present for other in check.traits.ignored_if.get(name, ()))
    )
    return list(dict.fromkeys([*needed_columns(verifiers), *optional, *referred_columns(verifiers)]))


def exact_columns(verifiers: Sequence[VerifierSpec]) -> tuple[str, ...]:
    """Return the columns in which each row keeps its own value, whatever the other rows have."""
    checks = [
        check
        for check in _checks(verifiers)
        if is_builtin(check) or not has_expr(check) or isinstance(check, RowAwareCheck)
    ]
    read = (name for name in _read_by(checks) if name not in _WITH_FORM)
    referred = (name for name in referred_columns(verifiers) if name not in (COMPLETION, *STRUCTURED, TASK_ID))
    return tuple(dict.fromkeys([*referred, *read]))


def reading_for(options: Any, verifiers: Sequence[VerifierSpec]) -> Reading:
    """Return how files are read that verifiers score, given the settled options."""
    ends: Literal["", "shown", "hidden"]
    ends = "shown" if options.get("outcome") else "hidden" if counts_outcomes(options) else ""
    # what is only counted leaves the types of what is written as they are
    exact = (*exact_columns(verifiers), *(SIGNS if ends == "shown" else ()))
    return replace(reading_of(options), known=tuple(read_columns(verifiers)), exact=exact, ends=ends)


def counts_outcomes(options: Mapping[str, Any]) -> bool:
    """Return whether a run has limits on outcomes, so that it counts them."""
    return any(options.get(name) is not None for name in ("max_not_found", "max_truncated"))


def referred_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return the columns that references in specs begin with."""
    return [*columns_of(reference for spec in _readers(verifiers) for reference in spec.references)]


def referred_paths(verifiers: Sequence[VerifierSpec]) -> list[Path]:
    """Return the paths in references of specs."""
    return [path for spec in _readers(verifiers) for reference in spec.references for path in reference.paths]


def unreferred_paths(verifiers: Sequence[VerifierSpec]) -> list[Path]:
    """Return the paths of what checks of Assay read in columns to which no reference leads; without the completion."""
    names = dict.fromkeys(_read_by(filter(is_builtin, _checks(verifiers))))
    others = {COMPLETION, *referred_columns(verifiers)}
    within: dict[str, tuple[str, ...]] = {"metadata": ("metadata", "expectations")}
    return [Path(within.get(name, (name,))) for name in names if name not in others]


def _readers(verifiers: Sequence[VerifierSpec]) -> list[CheckSpec]:
    return [reader for verifier in verifiers for spec in verifier.nodes for reader in spec.readers]


def _checks(verifiers: Sequence[VerifierSpec]) -> list[Check]:
    return [spec.check for spec in _readers(verifiers) if spec.check is not None]


def _read_by(checks: Iterable[Check]) -> Iterator[str]:
    return (name for check in checks for name in (*check.traits.reads, *check.traits.may_read))


def consumed_columns(verifiers: Sequence[VerifierSpec]) -> set[str]:
    """Return the columns that the checks read as text or structure, which do not pass through."""
    return {COMPLETION} | {
        name for check in _checks(verifiers) for name in _read_by([check]) if name not in check.traits.passed_through
    }


def check_columns(verifiers: Sequence[VerifierSpec], schema: pl.Schema, keep: Sequence[str] | None) -> None:
    """Check the columns before a row is read."""
    needed = needed_columns(verifiers)
    columns = not_hidden(schema)
    missing = [name for name in needed if name not in schema and _SPELLED.get(name, name) not in schema]
    problems = _missing_problem(missing, needed, schema) if missing else []
    if COMPLETION in schema:
        try:
            completion_text_expr(COMPLETION, schema[COMPLETION])
        except ColumnsError as error:
            problems.append((error.fact, error.hint))
    for name in STRUCTURED:
        readers = needed.get(OUTPUT_SCHEMA if name == OUTPUT_SCHEMA_CAMEL else name, [])
        if readers and name in schema and not isinstance(schema[name], pl.Struct | pl.String | pl.Null):
            fact = f"`{name}` has type {schema[name]}; it must be a struct or JSON text."
            problems.append((fact, f"`{name}` is read by {', '.join(readers)}."))
    problems += [
        (
            f"`{printable(name)}` has type {schema[name]}; no check can read Python objects.",
            "Convert it to text or numbers.",
        )
        for name in read_columns(verifiers)
        if name in schema and has_type(schema[name], pl.Object)
    ]
    problems += [
        problem
        for check in _checks(verifiers)
        if isinstance(check, RowAwareCheck)
        for problem in check.column_problems(schema)
    ]
    problems += _reference_problems(verifiers, schema)
    problems += _not_kept(kept_columns(keep or (), columns, ()), columns)
    if problems:
        raise ColumnsError(
            "\n".join(fact for fact, _ in problems), "\n".join(dict.fromkeys(hint for _, hint in problems if hint))
        )


def _reference_problems(verifiers: Sequence[VerifierSpec], schema: pl.Schema) -> list[tuple[str, str]]:
    readers: dict[tuple[str, str], list[str]] = {}
    for verifier in verifiers:
        for spec in _readers([verifier]):
            for field, reference in spec.named_references:
                if (problem := reference.problem(schema)) is not None:
                    readers.setdefault(problem, []).append(f"{verifier.id}/{spec.id} ({field})")
    return [(f"{fact}\n  read by {listed(names)}", hint) for (fact, hint), names in readers.items()]


def kept_columns(keep: Sequence[str] | None, columns: Sequence[str], consumed: Collection[str]) -> list[str]:
    """Return the names of the input columns to pass through, in order; some may not exist."""
    known = set(columns)
    default = [name for name in columns if name not in consumed]
    if keep is None:
        return default
    added = [name[1:] for name in keep if name.startswith("+") and name not in known]
    wider = {*default, *added}
    kept: list[str] = []
    for name in keep:
        if name in known or not name.startswith(("*", "+")):
            kept.append(name)
        elif name == "*":
            kept += columns
        else:
            kept += [name for name in columns if name in wider] + added if name.startswith("+") else [name]
    return list(dict.fromkeys(kept))


def named_columns(keep: Sequence[str] | None) -> list[str]:
    """Return the names that columns to keep may have, before it is known which columns there are."""
    return [name for given in keep or () for name in (given, given.removeprefix("+"))]


def _not_kept(keep: Sequence[str], columns: Sequence[str]) -> list[tuple[str, str]]:
    known = set(columns)
    lacking = [name for name in keep if name not in known]
    guessed = {name: did_you_mean(name, columns) or f"Columns: {listed(columns)}." for name in lacking[:_SHOWN]}
    problems = [
        (f"--keep: the rollouts have no column `{printable(name)}`.", guessed.get(name, ""))
        for name in lacking[:_NAMED]
    ]
    more = len(lacking) - _NAMED
    return [*problems, (f"… and {more:,} other{'s' * (more > 1)}", "")] if more > 0 else problems


def _missing_problem(
    missing: Sequence[str], needed: Mapping[str, Sequence[str]], schema: Mapping[str, Any]
) -> list[tuple[str, str]]:
    readers = "\n".join(f"  {printable(name)}: read by {', '.join(needed[name]) or 'every check'}" for name in missing)
    fact = f"The rollouts lack {len(missing)} column{'s' * (len(missing) > 1)}:\n{readers}"
    guesses = [(name, *_guessed_source(name, schema)) for name in missing]
    hints = [
        f"Did you mean `{printable(guess)}` for `{name}`? Rename it with --map {shlex.quote(f'{name}={printable(source)}')}."
        for name, guess, source in guesses
        if guess
    ]
    hints = hints or ["Rename a column with --map NAME=COLUMN."]
    if any(name != COMPLETION for name in missing):
        hints.append("Join a task table with --tasks for columns that the rollouts lack.")
    return [(f"{fact}\nColumns: {listed(not_hidden(schema))}.", "\n".join(hints))]


def refused_rows(problems: Sequence[tuple[str, int, int]]) -> InputError:
    """Return the error for rows whose verifier cannot be used."""
    lines = [f"  {line}" for line in rows_named(problems, "problem")]
    rows = sum(rows for _, _, rows in problems)
    fact = (
        f"{rows:,} row{'s carry verifiers' if rows > 1 else ' carries a verifier'} that cannot be used:\n"
        + "\n".join(lines)
    )
    names = list_fns()
    guesses = (
        did_you_mean(problem.split('"')[1], names) if '"' in problem else "" for problem, _, _ in problems[:_SHOWN]
    )
    hints = [*dict.fromkeys(filter(None, guesses)), f"Registered functions: {', '.join(names)}."]
    return InputError(fact, "\n".join([*hints, _HOW_TO_NAME]))


def check_one_verifier(verifiers: Sequence[VerifierSpec], rollouts: pl.Schema, tasks: pl.Schema) -> None:
    """Reject rollouts and tasks that both name verifiers, in two forms of which only one would be read."""
    parts = [name for name in (FN_NAME, EXPECTED) if name in tasks]
    if (
        any(verifier.kind == IN_PROCESS for verifier in verifiers)
        and VERIFIER in rollouts
        and VERIFIER not in tasks
        and parts
    ):
        fact = f"The rollouts have a column `{VERIFIER}`, and the task table has {' and '.join(f'`{name}`' for name in parts)}."
        raise ColumnsError(
            fact, "Only one of them can be used: drop or rename the other, or give the tasks a `verifier` column."
        )


def rows_named(problems: Sequence[tuple[str, int, int]], noun: str) -> list[str]:
    """Return problems, each with its first row and the number of its rows, as lines."""
    lines = [
        f"row {row}{f' and {rows - 1:,} more' if rows > 1 else ''}: {problem}"
        for problem, row, rows in problems[:_SHOWN]
    ]
    rest = len(problems) - _SHOWN
    return [*lines, f"… and {rest:,} other {noun}{'s' * (rest > 1)}"] if rest > 0 else lines


def _guessed_source(name: str, schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the column that is probably meant by a missing one, of those with a type that can be read; and what ``--map`` takes for it."""
    sources = {column: column for column in not_hidden(schema)}
    if name == COMPLETION:
        sources = {column: source for column in sources if (source := completion_source(column, schema[column]))}
        by_lower = {column.lower(): column for column in sources}
        likely = next((by_lower[column] for column in _LIKELY if column in by_lower), "")
    else:
        if name in STRUCTURED:
            sources = {name: name for name in sources if isinstance(schema[name], pl.Struct | pl.String | pl.Null)}
        likely = ""
    guess = likely or closest(name, [*sources])
    return guess, sources.get(guess, "")


_TEXT = Path((COMPLETION,))
_PROMPT = "prompt"
_SPOKEN = ("role", "reasoning_content", "reasoning", "tool_calls")
"""Fields of messages that checks read besides the content."""


def read_paths(verifiers: Sequence[VerifierSpec]) -> tuple[Path, ...]:
    """Return the paths of the values that checks of Assay read; of the completion, if they read more than its text."""
    return tuple(dict.fromkeys([*referred_paths(verifiers), *unreferred_paths(verifiers)]))


def not_text(place: Path) -> str:
    """Return why a row with such bytes cannot be scored."""
    return f"`{place}` holds bytes that are not UTF-8 text"


def lost_in(row: Mapping[str, Any], paths: Sequence[Path], *, any_role: bool = False) -> str | None:
    """Return why a row cannot be scored, by its values as given: the first bytes that checks read and cannot."""
    places = (_place(row[path.column], path) for path in paths if _has_bytes(row.get(path.column)))
    if (place := next(filter(None, places), None)) is not None:
        return not_text(place)
    return not_text(_TEXT) if _lacks_text(row.get(COMPLETION), any_role=any_role) else None


def _has_bytes(value: Any) -> bool:
    if isinstance(value, str | int | float | None):
        return False
    if isinstance(value, Mapping):
        return BYTES in (value[JSON] or "") if is_typed(value) else any(map(_has_bytes, (*value, *value.values())))
    return any(map(_has_bytes, value)) if isinstance(value, list | tuple) else isinstance(value, bytes)


def _lacks_text(completion: Any, *, any_role: bool) -> bool:
    if not isinstance(completion, list | tuple) or not _has_bytes(completion):
        return False
    texts = (completion_text(readable_value(completion, lost), any_role=any_role) for lost in (None, "\ufffd"))
    return len({*texts}) > 1


def _place(value: Any, path: Path, size: int = 1) -> Path | None:
    value = readable_value(untyped(value, with_bytes=True), LOST)
    for at, step in enumerate(path.steps[size:], size):
        if value is LOST:
            return Path(path.steps[:at])
        value = value_at({path.column: value}, Path((path.column, step)))
    is_chat = path.is_column and path.column in (COMPLETION, _PROMPT) and isinstance(value, list)
    steps = next(_lost_in_chat(value, path.column) if is_chat else _lost_steps(value), None)
    return None if steps is None else Path((*path.steps, *steps))


def _lost_steps(value: Any) -> Iterator[tuple[str | int, ...]]:
    if value is LOST:
        yield ()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from [()] if name is LOST else ((name, *steps) for steps in _lost_steps(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from ((index, *steps) for steps in _lost_steps(inner))


def _lost_in_chat(messages: Sequence[Any], column: str) -> Iterator[tuple[str | int, ...]]:
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or (column == COMPLETION and message.get("role") != "assistant"):
            continue
        said = {name: message.get(name) for name in _SPOKEN}
        content = message.get("content")
        if isinstance(content, list):
            content = [{"text": part.get("text")} if isinstance(part, Mapping) else part for part in content]
        yield from ((index, *steps) for steps in _lost_steps(said | {"content": content}))


def lost_exprs(
    paths: Sequence[Path], schema: pl.Schema, given: Mapping[str, str], *, any_role: bool
) -> Iterator[pl.Expr]:
    """Yield String expressions that say why rows cannot be scored; none for columns that hold no bytes."""
    for path in paths:
        if path.column in schema:
            values = exactly(given.get(path.column, path.column)).alias("value")
            yield from _at_path(path, values, schema[path.column])
    dtype = schema.get(COMPLETION)
    if isinstance(dtype, pl.List | pl.Array) and has_type(dtype, pl.Binary):
        values = exactly(given.get(COMPLETION, COMPLETION))
        yield _reasons(values, is_all_text, lambda value: _TEXT if _lacks_text(value, any_role=any_role) else None)


def _at_path(path: Path, values: pl.Expr, dtype: Any) -> Iterator[pl.Expr]:
    """Yield the expression for a path.

    NOTE: it looks at as little as possible, for what lies beside the path may be large.
    """
    if dtype == TYPED:
        yield _reasons(values, _is_all_json, lambda value: _place(value, path))
        return
    size = len(path.steps)
    while (match := find_expr(pl.Schema(), Path(path.steps[1:size]), (values, dtype))) is None:
        size -= 1
    values, dtype = readable(*match, as_text=False)
    leads_on = size == len(path.steps) or not isinstance(dtype, pl.Struct | pl.List)
    if leads_on and has_type(dtype, pl.Binary):
        yield _reasons(values, is_all_text, lambda value: _place(value, path, size))


def _reasons(values: pl.Expr, is_whole: Callable[[pl.Series], bool], place: Callable[[Any], Path | None]) -> pl.Expr:
    def reasons(series: pl.Series) -> pl.Series:
        if is_whole(series):
            return nulls(series, pl.String)
        places = map(place, series.to_list())
        return pl.Series(series.name, [path and not_text(path) for path in places], dtype=pl.String)

    return values.map_batches(reasons, return_dtype=pl.String, is_elementwise=True)


def _is_all_json(values: pl.Series) -> bool:
    return not values.struct.field(JSON).str.contains(BYTES, literal=True).any()


_GIVEN = HIDDEN + "given/"
"""Prefix of a converted column as it was."""
_OURS = {COMPLETION, TASK_ID, "id", *ARGUMENTS, *VERIFIER_COLUMNS, *STRUCTURED, *OPEN}
"""Columns that Assay reads by their names."""

Conversions = Mapping[str, tuple[pl.Expr, Any]]
"""The columns to convert: their values, and the types of these."""


def conversions(verifiers: Sequence[VerifierSpec], schema: pl.Schema) -> Conversions:
    """Return the columns that are to be converted before checks read them."""
    converted = {}
    for name, as_text in _read(verifiers, schema.names()).items():
        values = exactly(name).alias("value")
        if name in STRUCTURED and isinstance(schema[name], pl.Categorical | pl.Enum):  # JSON text that repeats
            pair = plain(values, schema[name]), plain_type(schema[name])
        else:
            pair = readable(values, schema[name], as_text=as_text)
        if pair[0] is not values:
            converted[name] = pair
    return converted


def _read(verifiers: Sequence[VerifierSpec], names: Iterable[str]) -> dict[str, bool]:
    names = [*names]
    checks = [spec.check for verifier in verifiers for spec in verifier.nodes if spec.check is not None]
    ours = _read_by(filter(is_builtin, checks))
    failures = failure_columns({*names})
    texts = {*_OURS, *failures, *ours, *referred_columns(verifiers)}
    if any(check.traits.reads_all for check in checks):
        read = {*not_hidden(names)}
    else:
        read = {*read_columns(verifiers), *failures, TASK_ID}
    return {name: name in texts for name in names if name in read}


def merged(several: Iterable[Conversions]) -> Conversions:
    """Return the conversions for several plans on the same rows: bytes that one of them reads as text are text."""
    together: dict[str, tuple[pl.Expr, Any]] = {}
    for converted in several:
        for name, pair in converted.items():
            if name not in together or has_type(together[name][1], pl.Binary):
                together[name] = pair
    return together


def opened(frame: pl.LazyFrame, converted: Conversions) -> pl.LazyFrame:
    """Convert columns, and keep them as given in hidden ones."""
    if not converted:
        return frame
    kept = (exactly(name).alias(_GIVEN + name) for name in converted)
    return frame.with_columns(*kept, *(values.alias(name) for name, (values, _) in converted.items()))


def as_given(name: str, converted: Conversions) -> pl.Expr:
    """Return a column of an opened frame as it was."""
    return pl.col(_GIVEN + name).alias(name) if name in converted else exactly(name)


def unreadable_exprs(
    converted: Conversions, schema: pl.Schema, paths: Sequence[Path], *, any_role: bool
) -> list[pl.Expr]:
    """Return why rows of an opened frame cannot be scored, as String expressions."""
    columns = [
        pl.when(pl.col(_GIVEN + name).is_not_null() & exactly(name).is_null()).then(pl.lit(not_text(Path((name,)))))
        for name, (_, dtype) in converted.items()
        if dtype == pl.String
    ]
    given = {name: _GIVEN + name for name in converted}
    return [*columns, *lost_exprs(paths, schema, given, any_role=any_role)]


def text_columns(verifiers: Sequence[VerifierSpec], names: Iterable[str]) -> set[str]:
    """Return the columns that checks read in which bytes are text, of those that there are."""
    return {name for name, as_text in _read(verifiers, names).items() if as_text}


def readable_row(
    row: Mapping[str, Any], texts: Container[str], paths: Sequence[Path], *, any_role: bool
) -> tuple[dict[str, Any], str | None]:
    """Return a row as checks read it, and why it cannot be scored."""
    converted = {name: readable_value(value) if name in texts else value for name, value in row.items()}
    lost = (Path((name,)) for name, value in row.items() if isinstance(value, bytes) and converted[name] is None)
    return converted, next(map(not_text, lost), None) or lost_in(row, paths, any_role=any_role)
