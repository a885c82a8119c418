"""What labels of few rows say of the verdicts on all of them: metrics with intervals, rows to label next, better thresholds.

Rows that pass and rows that fail are split into strata by the checks that they fail. Within a stratum the labels stand for the other
rows, which is why they have to be chance draws there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from assay.errors import AssayError, InputError, UsageError, counted
from assay.expressions.shared_columns import exactly
from assay.insight.calibration.estimates import METRICS, Cell, allocate, estimate, merged
from assay.insight.calibration.labels import LABEL, read_labels
from assay.insight.calibration.suggesting import FOLDS, Judged, Variant, best_variant, f1_of, held_out, telling
from assay.insight.documents import calibration_document
from assay.insight.results import ROW, Result, as_data, names_of, open_result
from assay.insight.stats import splitmix64
from assay.insight.whatifs import rewards_with
from assay.names import HIDDEN, NATIVE
from assay.options import CalibrateOptions, documented
from assay.system.signals import interruptible
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_STRATUM, _FIRST, _ROWS, _LABELS, _RIGHT = (HIDDEN + name for name in ("stratum", "first", "rows", "labels", "right"))
_NOTHING, _VERDICT, _OTHER = HIDDEN + "nothing", HIDDEN + "verdict", HIDDEN + "other"
_SIGNATURES = 4
"""Signatures of passing and of failing rows that are strata of their own; the others are one."""
_NAMING = ("rollout_id", "task_id", "example_id", "model", "step", "sample_idx")
_LEAST_LABELS, _LEAST_KIND, _MOST_LEFT, _MOST_GAIN = 30, 5, 0.9, 4.0
"""What another judge has to explain of how many labels, and by how much it counts at most."""
_FACTORS = (0.0, 0.5, 2.0, 4.0)


@dataclass(frozen=True, repr=False)
class Calibration(Displayed):
    """What labels say of verdicts.

    Attributes:
        result: The path of the result; ``""`` for a frame.
        rows: The number of rows with a verdict.
        labels: The number of these with a label of any kind.
        metrics: Of the reward and of each check (``of``) each ``metric``, from ``precision`` to ``accuracy``, in [0, 1], kappa in
            [-1, 1]: its ``estimate``, the ends ``low`` and ``high`` of its 95 % interval, and the number of ``labels``. None where it is
            not defined, or rows with a verdict that it counts have no label.
        strata: The strata by which ``next`` is drawn: ``stratum``, ``rows``, ``labels`` and ``right``, how many labels are true.
        next: Rows to label next, in this order: ``row``, ``stratum``, and the columns that identify a row.
        suggestions: Changes of the spec with a greater f1 on the labels: ``change``, a check whose weight goes ``to`` a number, or
            ``passThreshold``; the ``pass_threshold`` that goes with it; f1 ``before``, ``after`` and ``held_out``, on labels that the
            change was not chosen by; and ``flips``, the rows of the result whose verdict changes.
        notes: What the user should know.
    """

    result: str
    rows: int
    labels: int
    metrics: tuple[dict[str, Any], ...]
    strata: tuple[dict[str, Any], ...]
    next: tuple[dict[str, Any], ...]
    suggestions: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """How many rows have labels."""
        return f"{counted(self.labels, 'label')} of {counted(self.rows, 'row')}"

    @property
    def next_table(self) -> pl.DataFrame:
        """The rows to label next as a table with an empty column ``label``."""
        table = (
            pl.DataFrame(self.next, infer_schema_length=None) if self.next else pl.DataFrame({"row": [], "stratum": []})
        )
        return table.select(pl.all().exclude(LABEL), pl.lit(None, dtype=pl.String).alias(LABEL))

    def _document(self) -> Document:
        return calibration_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return as_data(vars(self))


@documented(CalibrateOptions)
def calibrate(
    result: Any,
    labels: Any,
    *,
    on: Sequence[str] | str | None = None,
    next: int = 0,  # noqa: A002  (the name of the option)
    metric: str = "f1",
    predictor: str | None = None,
    suggest: bool = False,
    min_precision: float | None = None,
    pass_threshold: float | None = None,
    seed: int = 0,
) -> Calibration:
    """Estimate from labels of few rows how often the verdicts on all rows are right, with 95 % intervals.

    Labels have to be chance draws within the strata of rows, as those that ``next`` gives.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a frame with ``reward`` and ``passed``.
        labels: A file, a frame or mappings, with ``row``, the number of a row from 0, or the columns of ``on``; and ``label``, whether
            the answer is right: true or false, 1 or 0, yes or no, pass or fail, null where that is not known. ``label/<check>``
            judges that check, which ``label`` does otherwise. None for no labels yet.
        options: Those of ``assay.options.CalibrateOptions``, as the signature lists them.

    Returns:
        The metrics, and what was asked for.

    Raises:
        InputError: The result has no column ``passed``, a labelled row is unknown or there twice, or a label says neither.
        UsageError: There is no such column or check, or the threshold of the result is not known.

    Example:
        >>> import assay, polars as pl
        >>> rows = pl.DataFrame({"reward": [1.0, 1.0, 0.0, 0.0], "passed": [True, True, False, False]})
        >>> labels = [{"row": 0, "label": True}, {"row": 1, "label": False}, {"row": 2, "label": False}, {"row": 3, "label": False}]
        >>> assay.calibrate(rows, labels).metrics[0]["estimate"]
        0.5
    """
    opened = open_result(result)
    if "passed" not in opened.schema:
        raise InputError(f"{opened.name}: no column `passed`, so that it has no verdicts.")
    if min_precision is not None and not 0 <= min_precision <= 1:
        raise UsageError(f"--min-precision {min_precision:g}: expected a number from 0 to 1.")
    with interruptible():
        known = pl.DataFrame({ROW: []}, schema={ROW: pl.UInt32})
        known = known if labels is None else read_labels(labels, opened, names_of(on))
        return _Calibrating(opened, known, predictor, seed).answer(
            names_of(on), next, metric, (min_precision, pass_threshold) if suggest else None
        )


class _Stratum(NamedTuple):
    name: str
    passes: bool


class _Known(NamedTuple):
    """What labels say of a verdict: its cells as they are, those that estimates take, and the rows that a label of a stratum stands for."""

    raw: Sequence[Cell]
    cells: Sequence[Cell]
    weights: Mapping[int, float]


class _Calibrating:
    """A result with its labels: one row of ``table`` for each row with a verdict."""

    def __init__(self, result: Result, labels: pl.DataFrame, predictor: str | None, seed: int) -> None:
        self._result, self._labels, self._seed = result, labels, seed
        self._predictor = HIDDEN + "predictor" if predictor is not None else None
        verdicts = [
            (exactly(check.column).cast(pl.Float64) == 1.0).alias(_VERDICT + check.name) for check in result.checks
        ]
        nothing = (result.outcome == "not_found").fill_null(value=False).alias(_NOTHING)
        others = []
        if predictor is not None:
            result.columns([predictor], "--with")
            dtype = result.schema[predictor]
            if not (dtype.is_numeric() or dtype == pl.Boolean):
                raise UsageError(f"--with {predictor}: expected numbers or Booleans, not {dtype}.")
            values = exactly(predictor).cast(pl.Float64)
            others = [pl.when(values.is_finite()).then(values).alias(HIDDEN + "predictor")]
        frame = result.numbered.filter(pl.col("reward").is_not_null())
        table = result.collect(frame.select(ROW, "passed", nothing, *verdicts, *others))
        labels = labels.rename({name: _LABELS + name for name in labels.columns if name != ROW})
        self._table = self._with_strata(table).join(labels, on=ROW, how="left", maintain_order="left")

    def _with_strata(self, table: pl.DataFrame) -> pl.DataFrame:
        fails = [
            (~pl.col(_VERDICT + check.name)).fill_null(value=False).alias(check.column) for check in self._result.checks
        ]
        table = table.with_columns(fails)
        signature = ["passed", _NOTHING, *(check.column for check in self._result.checks)]
        groups = table.group_by(signature).agg(pl.len().alias(_ROWS), pl.col(ROW).min().alias(_FIRST))
        groups = groups.sort("passed", _ROWS, _FIRST, descending=[True, True, False])
        rank = pl.int_range(pl.len()).over("passed")
        groups = groups.with_columns(pl.min_horizontal(rank, pl.lit(_SIGNATURES)).alias(_OTHER))
        groups = groups.with_columns((pl.struct("passed", _OTHER).rle_id()).alias(_STRATUM))
        firsts = groups.unique(_STRATUM, keep="first", maintain_order=True)
        self._strata = []
        for group in firsts.to_dicts():
            failing = [check.name for check in self._result.checks if group[check.column]]
            facts = ", ".join(failing) + (" (found nothing)" if group[_NOTHING] else "")
            facts = "other" if group[_OTHER] == _SIGNATURES else facts.strip()
            state = "pass" if group["passed"] else "fail"
            self._strata.append(_Stratum(f"{state}: {facts}" if facts else state, group["passed"]))
        table = table.join(groups.select(*signature, _STRATUM), on=signature, how="left", maintain_order="left")
        return table.drop(check.column for check in self._result.checks)

    def answer(
        self, on: Sequence[str], number: int, metric: str, suggest: tuple[float | None, float | None] | None
    ) -> Calibration:
        result, notes = self._result, list(self._result.notes)
        if unscored := result.rows - self._table.height:
            notes.append(f"{counted(unscored, 'row')} without a reward: left out")
        named = [name for name in self._labels.columns if name != ROW]
        has_label = pl.any_horizontal(pl.col([_LABELS + name for name in named]).is_not_null())
        labels = self._table.filter(has_label).height if named else 0
        metrics, known = list[dict[str, Any]](), list[_Known]()
        verdicts = {"reward": "passed"} | {check.name: _VERDICT + check.name for check in result.checks}
        for at, (of, verdict) in enumerate(verdicts.items()):
            own = f"label/{of}" if at else LABEL
            own = own if own in named else f"label/{result.checks[at - 1].id}" if at else LABEL
            own = own if own in named else LABEL
            if own in named or not at:
                known.append(self._known(own, verdict))
                cells = known[-1].cells
                count = sum(cell.labels for cell in cells)
                metrics += [
                    {"of": of, "metric": name, **estimate(name, cells)._asdict(), "labels": count} for name in METRICS
                ]
        of_reward = known[0]
        strata = [
            {"stratum": stratum.name, "rows": cell.rows, "labels": cell.labels, "right": cell.right}
            for stratum, cell in zip(self._strata, of_reward.raw, strict=True)
        ]
        listing = self._next(allocate(metric, of_reward.raw, number), on)
        if len(listing) < number:
            notes.append(f"no more than {counted(len(listing), 'row')} without a label")
        suggestions = [] if suggest is None else self._suggestions(*suggest, of_reward.weights, notes)
        return Calibration(
            result.name if result.files else "",
            self._table.height,
            labels,
            tuple(metrics),
            tuple(strata),
            tuple(listing),
            tuple(suggestions),
            tuple(notes),
        )

    def _known(self, label: str, verdict: str) -> "_Known":
        """Return what labels say of a verdict."""
        column = _LABELS + label
        is_right = pl.col(column) if column in self._table.columns else pl.lit(None, dtype=pl.Boolean)
        table = self._table.filter(pl.col(verdict).is_not_null())
        sums = [pl.len().alias(_ROWS), is_right.count().alias(_LABELS), is_right.sum().fill_null(0).alias(_RIGHT)]
        if self._predictor is not None:
            pair = [is_right.alias("y"), pl.col(self._predictor).alias("f")]
            table = table.with_columns(pair)
            both = pl.struct("y", "f").filter(pl.col("y").is_not_null()).alias("pairs")
            sums += [both, pl.col("f").sum().alias("sum"), pl.col("f").null_count().alias("nulls")]
        keys = (_STRATUM, verdict)
        groups = table.group_by(keys).agg(sums).sort(keys, descending=[False, True]).to_dicts()
        raw = [Cell(group[_ROWS], group[verdict], group[_LABELS], group[_RIGHT]) for group in groups]
        cells, weights = list[Cell](), dict[int, float]()
        for members in merged(raw):
            first = raw[members[0]]
            cell = first._replace(rows=sum(raw[at].rows for at in members))
            if cell.labels:
                weights[groups[members[0]][_STRATUM]] = cell.rows / cell.labels
                if self._predictor is not None and not any(groups[at]["nulls"] for at in members):
                    mean = math.fsum(groups[at]["sum"] for at in members) / cell.rows
                    cell = _adjusted(cell, groups[members[0]]["pairs"], mean)
            cells.append(cell)
        return _Known(raw, cells, weights)

    def _next(self, order: Sequence[int], on: Sequence[str]) -> list[dict[str, Any]]:
        if not order:
            return []
        result, column = self._result, _LABELS + LABEL
        table = self._table
        left = table.filter(pl.col(column).is_null()) if column in table.columns else table
        draws = splitmix64(self._seed, 0, result.rows)
        left = (
            left.select(ROW, _STRATUM).with_columns(draws.gather(left[ROW]).alias("draw")).sort(_STRATUM, "draw", ROW)
        )
        left = left.filter(pl.int_range(pl.len()).over(_STRATUM) < len(order))
        rows = {stratum: iter(own[ROW]) for (stratum,), own in left.group_by(_STRATUM, maintain_order=True)}
        chosen = [(next(rows[at]), at) for at in order]
        names = [name for name in (on or result.present(_NAMING)) if name not in ("row", "stratum", LABEL)]
        keys = [
            pl.when(exactly(name).is_finite()).then(exactly(name)).alias(name)
            if result.schema[name].is_float()
            else exactly(name)
            for name in names
        ]
        wanted = result.numbered.filter(pl.col(ROW).is_in([row for row, _ in chosen])).select(ROW, *keys)
        values = {row.pop(ROW): row for row in result.collect(wanted).to_dicts()}
        return [{"row": row, "stratum": self._strata[at].name} | values[row] for row, at in chosen]

    def _suggestions(
        self,
        min_precision: float | None,
        pass_threshold: float | None,
        weights: Mapping[int, float],
        notes: list[str],
    ) -> list[dict[str, Any]]:
        result, column = self._result, _LABELS + LABEL
        present = self._threshold(pass_threshold)
        table = (
            self._table.filter(pl.col(column).is_not_null()) if column in self._table.columns else self._table.clear()
        )
        if not table.height:
            notes.append("nothing is suggested without a label")
            return []
        required = [
            (exactly(check.column).cast(pl.Float64) >= 1.0).fill_null(value=True)
            for check in result.checks
            if check.required
        ]
        eligible = pl.all_horizontal(pl.lit(value=True), *required).alias("eligible")
        whole = result.collect(result.numbered.select(ROW, "reward", "passed", eligible))
        folds = splitmix64(self._seed, 0, result.rows) % pl.Series([FOLDS], dtype=pl.UInt64)
        own = table[ROW]
        facts = [
            *(
                whole["eligible"].gather(own),
                table[column],
                table[_STRATUM].replace_strict(weights, return_dtype=pl.Float64),
            ),
            folds.gather(own),
        ]

        def judged(rewards: pl.Series) -> list[Judged]:
            rows = zip(rewards, *facts, strict=True)
            return [Judged(*row) for row in rows if row[0] is not None]

        plain = judged(whole["reward"].gather(own))
        thresholds = telling(whole["reward"].drop_nulls().unique().to_list(), plain, present)
        before = f1_of(zip(table["passed"], table[column], facts[2], strict=True))
        kinds = [[Variant("", None, plain, thresholds)], self._other_weights(own, judged, present, notes)]
        suggestions = list[dict[str, Any]]()
        for variants in kinds:
            found = best_variant(variants, present, min_precision) if variants else None
            if found is None or (suggestions and found[1].f1 <= suggestions[0]["after"] + 1e-12):
                continue
            variant, choice = found
            if not variant.check and choice.threshold == present:
                continue
            rewards = (
                whole["reward"] if not variant.check else rewards_with(result, {variant.check: variant.weight or 0.0})
            )
            passes = (rewards >= choice.threshold).fill_null(value=False) & whole["eligible"]
            suggestions.append(
                {
                    "change": variant.check or "passThreshold",
                    "to": choice.threshold if variant.weight is None else variant.weight,
                    "pass_threshold": choice.threshold,
                    "before": before,
                    "after": choice.f1,
                    "held_out": held_out(variants, present, min_precision),
                    "flips": int((passes != whole["passed"]).filter(whole["reward"].is_not_null()).sum()),
                }
            )
        for found_one in suggestions:
            if found_one["held_out"] is None or found_one["held_out"] <= (before or 0.0):
                name = found_one["change"]
                notes.append(f"{name}: on labels that it was not chosen by, it is not better than the present verdicts")
        if not suggestions:
            notes.append("no threshold or weight has a greater f1 on these labels")
        return suggestions

    def _other_weights(
        self, own: pl.Series, judged: Callable[[pl.Series], list[Judged]], present: float, notes: list[str]
    ) -> list[Variant]:
        """Return the labelled rows with each other weight."""
        result, variants = self._result, list[Variant]()
        frame = result.collect(result.numbered.filter(pl.col(ROW).is_in(own.implode())).drop(ROW)).lazy()
        for check, weight in self._weights(notes):
            try:
                rows = judged(rewards_with(result, {check: weight}, frame))
            except AssayError as error:  # such as no weight that is left
                notes.append(f"weight of {check} {weight:g}: not tried ({str(error).splitlines()[0]})")
                continue
            variants.append(Variant(check, weight, rows, telling([row.reward for row in rows], rows, present)))
        return variants

    def _threshold(self, given: float | None) -> float:
        if given is not None:
            return given
        forms = self._result.forms if self._result.provenance else []
        if len(forms) != 1 or self._result.verifiers[0].get("weight") is not None:
            fact = f"{self._result.name}: does not say which reward passes, as a result of one verifier does."
            raise UsageError(fact, "Name the reward: --pass-threshold X")
        return float(forms[0].get("passThreshold", 1.0))

    def _weights(self, notes: list[str]) -> list[tuple[str, float]]:
        """Return the other weights to try, by check."""
        forms = self._result.forms if self._result.provenance else []
        if len(forms) != 1 or forms[0].get("kind") != NATIVE:
            notes.append("other weights are tried on results of one verifier only")
            return []
        weighted = [
            check for check in self._result.checks if check.role == "weight" and not check.group and check.weight
        ]
        if len(weighted) < 2:  # noqa: PLR2004  (the weight of one changes nothing)
            return []
        return [(check.name, factor * float(check.weight or 0)) for check in weighted for factor in _FACTORS]


def _adjusted(cell: Cell, pairs: Sequence[dict[str, Any]], mean: float) -> Cell:
    """Return a cell whose share takes into account how another judge sees its other rows (PPI++, arXiv:2311.01453)."""
    n = cell.labels
    if n < _LEAST_LABELS or min(cell.right, n - cell.right) < _LEAST_KIND:
        return cell
    y = [float(pair["y"]) for pair in pairs]
    f = [float(pair["f"]) for pair in pairs]
    mean_y, mean_f = math.fsum(y) / n, math.fsum(f) / n

    def products(one: Sequence[float], other: Sequence[float]) -> float:
        return math.fsum(
            (a - mean_y if one is y else a - mean_f) * (b - mean_y if other is y else b - mean_f)
            for a, b in zip(one, other, strict=True)
        )

    yy, yf, ff = products(y, y), products(y, f), products(f, f)
    if not ff:
        return cell
    factor = min(1.0, max(0.0, yf / ff))
    rest = yy - 2 * factor * yf + factor**2 * ff
    if rest > _MOST_LEFT * yy:
        return cell
    share = min(1.0, max(0.0, cell.estimate + factor * (mean - mean_f)))
    return cell._replace(share=share, gain=min(_MOST_GAIN, yy / rest) if rest > 0 else _MOST_GAIN)
