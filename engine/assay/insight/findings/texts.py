"""What texts add to findings: what checks read on a sample of the failing rows, and which texts are duplicates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from assay.errors import AssayError, counted
from assay.insight import stats
from assay.insight.evidence.reader import CheckReader, readers_of
from assay.insight.findings.columns import ResultColumns
from assay.insight.findings.facts import Tally
from assay.insight.findings.limits import LIMITS
from assay.insight.integrity.groups import is_repeated
from assay.insight.originals import bytes_in_footers, originals
from assay.insight.results import ROW, Result
from assay.names import COMPLETION, TEXT
from assay.writing.provenance import files_of

_OF_A_STRATUM, _IN_ALL = 1_000, 20_000
"""Failing rows of a check and model that are read, and rows in all; also the rows that are searched for duplicates."""

_MOST_BYTES = 64_000_000
"""Bytes of texts that are read for what checks read, and for duplicates, about."""

_PROBED = 50
"""Texts from which the length of all is known well enough."""

_SAMPLE = {"check": pl.UInt32, "row": pl.UInt32, "model": pl.UInt32, "weight": pl.Float64, "nothing": pl.Boolean}
_READ: dict[str, Any] = {
    "read": pl.String,
    "expected": pl.List(pl.String),
    "near": pl.String,
    "here": pl.Boolean,
    "there": pl.Boolean,
}
_DUPLICATES = {"row": pl.UInt32, "model": pl.UInt32, "weight": pl.Float64, "cause": pl.String}


class Texts(NamedTuple):
    """What the texts of a result say; None where they cannot be had.

    Attributes:
        readings: What checks read on failing rows, each row standing for ``weight`` rows: ``read``, the golds ``expected``, how
            they are ``near``; where the steps find ``nothing``, whether the gold is ``here``, and that of the next such row with
            another one ``there``.
        duplicates: Rows whose text is ``blank``, ``repeated`` in several tasks, or one of several ``copies`` in its group, each standing
            for ``weight`` rows.
        in_groups: Rows with long texts, not repeated, in groups of two or more of these.
        searched: Rows that were searched for duplicates.
        shown: The texts of the rows that are shown.
        note: Why there are no texts, or ``""``.
        less: Why fewer rows were read than else, or ``""``.
    """

    readings: pl.DataFrame | None = None
    duplicates: pl.DataFrame | None = None
    in_groups: float = 0.0
    searched: int = 0
    shown: Mapping[int, str | None] = {}
    note: str = ""
    less: str = ""


def texts_of(
    columns: ResultColumns, tallies: Sequence[Tally], model: pl.Series, rollouts: Any, shown: Sequence[int]
) -> Texts:
    """Read the texts of failing rows as their checks do, search for duplicates, and keep those that are shown; in one scan."""
    result, readers = columns.result, _readers(columns.result, tallies)
    draws = stats.splitmix64(0, 0, columns.rows)
    most = _most_texts(columns, rollouts)
    sample = sample_of([tally for tally in tallies if tally.place in readers], model, draws, most)
    compared, share = _in_groups(columns, draws, most)
    rows = pl.concat([sample["row"], compared, pl.Series(shown, dtype=pl.UInt32)]).unique().sort()
    needed = dict.fromkeys(column for reader in readers.values() for column in reader.columns)
    names = [name for name in needed if name != COMPLETION]
    try:
        texts, why = originals(result, rows.to_list(), names, rollouts)
    except AssayError as error:
        if rollouts is not None:
            raise
        texts, why = pl.DataFrame(), error.fact
    if why:
        return Texts(note=why)
    frame = texts.join(compared.alias(ROW).to_frame(), on=ROW, how="semi").select(ROW, TEXT)
    duplicates, in_groups = duplicates_in(columns, frame, model, share)
    kept = texts.filter(pl.col(ROW).is_in({*shown})).select(ROW, TEXT)
    is_less = most < min(columns.rows, _IN_ALL)
    return Texts(
        _readings(sample, texts, readers),
        *(duplicates, in_groups, len(compared), dict(kept.iter_rows())),
        less=f"texts are long: findings are made from those of {counted(len(rows), 'row')}" if is_less else "",
    )


def _most_texts(columns: ResultColumns, rollouts: Any) -> int:
    """Return how many texts are read at most, by the lengths in the result, else by a few of the texts."""
    if columns.rows <= _OF_A_STRATUM or (rollouts is None and _has_short_lines(columns)):
        return _IN_ALL
    length = columns.length if columns.result.length_column is None else None
    try:
        if length is None and _are_short(columns, rollouts):
            return _IN_ALL
        if length is None:
            length = _sizes(columns, rollouts, range(0, columns.rows, columns.rows // _PROBED))
    except AssayError:  # told when texts are read
        return _IN_ALL
    mean = float(length.mean() or 1.0)  # type: ignore[arg-type]
    return min(_IN_ALL, 1 + int(_MOST_BYTES / max(1.0, mean)))


def _are_short(columns: ResultColumns, rollouts: Any) -> bool:
    """Return whether footers say that all texts may be read, and the first rows, which cost little, that these are no few long ones."""
    size = bytes_in_footers(columns.result, rollouts)
    if size is None or size * _IN_ALL > _MOST_BYTES * columns.rows:
        return False
    first = _sizes(columns, rollouts, range(_PROBED)).sum()
    return first * _IN_ALL <= _MOST_BYTES * _PROBED


def _sizes(columns: ResultColumns, rollouts: Any, rows: range) -> pl.Series:
    return originals(columns.result, rows, (), rollouts)[0][TEXT].str.len_bytes()


def _has_short_lines(columns: ResultColumns) -> bool:
    """Return whether the texts are in files of lines which are so short that all are read: a look at a few costs a scan."""
    sources = files_of(columns.result.provenance)
    if COMPLETION in columns.result.schema or not all(str(source["name"]).endswith(".jsonl") for source in sources):
        return False
    sizes = [size for source in sources if isinstance(size := source.get("size"), int)]
    return len(sizes) == len(sources) and sum(sizes) * _IN_ALL <= _MOST_BYTES * columns.rows


def _readers(result: Result, tallies: Sequence[Tally]) -> dict[int, CheckReader]:
    """Return what reads as the checks do of which findings compare what they read with the gold, by their place."""
    known = readers_of(result.forms) if result.verifiers else {}
    readers = {tally: known.get((tally.check.verifier, tally.check.id)) for tally in tallies if tally.failures}
    return {
        tally.place: reader
        for tally, reader in readers.items()
        if reader is not None and reader.has_golds and (reader.may_be_near or tally.nothing is not None)
    }


def sample_of(tallies: Sequence[Tally], model: pl.Series, draws: pl.Series, most: int) -> pl.DataFrame:
    """Choose failing rows of each check and model: those of the least draws, about ``most`` in all."""
    size = min(_OF_A_STRATUM, max(1, most // max(1, len(tallies) * model.n_unique())))
    parts = [pl.DataFrame(schema=_SAMPLE)]
    for tally in tallies:
        assert tally.failing is not None  # noqa: S101  (of a result)
        row = tally.failing.arg_true()
        rows = pl.DataFrame({"row": row, "model": model.gather(row), "draw": draws.gather(row)})
        least = rows.group_by("model").agg(pl.len().alias("n"), pl.col("row").bottom_k_by("draw", size))
        weight = pl.col("n") / pl.min_horizontal("n", pl.lit(size))
        chosen = least.with_columns(weight=weight, check=tally.place).explode("row").sort("row")
        nothing = pl.lit(value=False) if tally.nothing is None else tally.nothing.gather(chosen["row"])
        chosen = chosen.with_columns(nothing=nothing)
        parts.append(chosen.select(pl.col(name).cast(dtype) for name, dtype in _SAMPLE.items()))
    return pl.concat(parts)


def _in_groups(columns: ResultColumns, draws: pl.Series, most: int) -> tuple[pl.Series, float]:
    """Choose the rows that are searched for duplicates: all, or those of whole groups; and how many rows each stands for."""
    rows = pl.int_range(columns.rows, dtype=pl.UInt32, eager=True)
    if columns.rows <= most:
        return rows, 1.0
    if columns.group is None:
        return rows.filter(draws.rank("ordinal") <= most), columns.rows / most
    numbers = columns.group.drop_nulls().unique().sort()
    least = draws.head(len(numbers)).bottom_k(most).max()  # a group has a row at least
    drawn = pl.DataFrame({"group": numbers, "draw": draws.head(len(numbers))}).filter(pl.col("draw") <= least)
    row = columns.group.is_in(drawn["group"].implode()).arg_true()
    frame = pl.DataFrame({"row": row, "group": columns.group.gather(row)}, {"row": pl.UInt32, "group": pl.UInt32})
    groups = frame.group_by("group").len("n").join(drawn, on="group").sort("draw").filter(pl.col("n").cum_sum() <= most)
    chosen = frame.join(groups, on="group", how="semi", maintain_order="left")["row"]
    return chosen, columns.rows / max(1, len(chosen))


def duplicates_in(
    columns: ResultColumns, texts: pl.DataFrame, model: pl.Series, weight: float
) -> tuple[pl.DataFrame, float]:
    """Return rows whose text is a duplicate, and how many could be copies in their group; each row stands for ``weight`` rows."""
    limits, row, task = LIMITS["duplicates"], texts[ROW], columns.task
    codes = {
        name: pl.lit(None, pl.UInt32) if numbers is None else numbers.gather(row)
        for name, numbers in (("task", task if task is None else task.codes), ("group", columns.group))
    }
    text = pl.col(TEXT).str.strip_chars()
    frame = texts.select(pl.col(ROW).alias("row"), model.gather(row).alias("model"), text, **codes).drop_nulls(TEXT)
    blank, is_long = pl.col(TEXT) == "", pl.col(TEXT).str.len_chars() >= limits["length"]
    several = pl.len() * weight >= max(limits["rows"], limits["share"] * columns.rows)
    repeated = is_long & (several & (pl.col("task").drop_nulls().n_unique() >= limits["tasks"])).over(TEXT)
    frame = frame.with_columns(
        pl.when(blank).then(pl.lit("blank")).when(repeated).then(pl.lit("repeated")).alias("cause"),
    )
    copies = is_long & pl.col("group").is_not_null() & is_repeated("group", TEXT)
    cause = pl.coalesce("cause", pl.when(copies).then(pl.lit("copies"))).alias("cause")
    found = frame.with_columns(cause).drop_nulls("cause")
    others = frame.filter(is_long & pl.col("cause").is_null()).drop_nulls("group")
    compared = others.filter(pl.len().over("group") > 1).height * weight
    return found.select("row", "model", weight=pl.lit(weight), cause="cause").cast(_DUPLICATES), compared  # type: ignore[arg-type]


def _readings(sample: pl.DataFrame, texts: pl.DataFrame, readers: Mapping[int, CheckReader]) -> pl.DataFrame:
    by_row = {row[ROW]: row | {COMPLETION: row[TEXT]} for row in texts.iter_rows(named=True)}
    parts = [pl.DataFrame(schema=_SAMPLE | _READ)]
    for place, reader in readers.items():
        own = sample.filter(pl.col("check") == place, pl.col("row").is_in(list(by_row))).sort("row")
        parts.append(own.hstack(_read(reader, [by_row[row] for row in own["row"]], own["nothing"].to_list())))
    return pl.concat(parts)


def _read(reader: CheckReader, rows: Sequence[Mapping[str, Any]], nothing: Sequence[bool]) -> pl.DataFrame:
    readings = [*map(reader.read, rows)]
    without = [at for at, is_nothing in enumerate(nothing) if is_nothing]
    others = dict(zip(without, _next_other([readings[at].expected for at in without]), strict=True))
    found = list[tuple[Any, ...]]()
    for at, (row, reading) in enumerate(zip(rows, readings, strict=True)):
        sides = (reading.expected, others[at]) if at in others else (None, None)
        present = [None if golds is None else any(reader.occurs(row, gold) for gold in golds) for golds in sides]
        found.append((reading.read, list(reading.expected), reading.near, *present))
    return pl.DataFrame(found, schema=_READ, orient="row")


def _next_other(golds: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the golds of the next row that has others, going round; none if all are equal."""
    others: list[tuple[str, ...]] = [()] * len(golds)
    for at in reversed(range(2 * len(golds))):
        here, after = at % len(golds), (at + 1) % len(golds)
        others[here] = golds[after] if golds[after] != golds[here] else others[after]
    return others
