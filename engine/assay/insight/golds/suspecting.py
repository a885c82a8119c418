"""Golds to read first: answers that the models together make likelier than the gold, by the log-likelihood ratio of independent models.

Of a model's rows on a task, ``share(a)`` is the share that answers ``a``. A row that passes, or answers as one that does, gives the
gold. With α the share of a model's rows that give it, over its tasks, and s the chance that two wrong answers are the same, a model
weighs ``ln(α / ((1 − α) s))``, and an answer scores the weighted sum of ``share(a) − share(gold)``.
"""

import math
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.errors import InputError, UsageError, counted, did_you_mean, listed
from assay.expressions.shared_columns import exactly
from assay.insight.documents import suspects_document
from assay.insight.evidence.answers import ANSWER, answers_of, check_compares
from assay.insight.evidence.reader import readers_of
from assay.insight.originals import HOW, whole_rows
from assay.insight.results import ROW, Result, as_data, open_result
from assay.names import COMPLETION
from assay.options import SuspectsOptions, documented
from assay.system.signals import interruptible
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_TASK, _MODEL = "task", "model"
_BITS = 36
"""Bits behind the point of shares, which are summed as whole numbers: no order of the rows shows, and equal scores are equal."""


@dataclass(frozen=True, repr=False)
class Suspects(Displayed):
    """Golds to read first. No proof: models err alike.

    Attributes:
        result: The path of the result; ``""`` for a frame.
        answer: The column or the check that the answers are of.
        tasks: The suspects, the likeliest first: ``task_id``, ``score``, the log-likelihood ratio of ``answer`` against the gold;
            ``rows`` that answer so, how many rows of the task ``passes`` counts, and ``row``, the first that answers so.
        found: The number of tasks with an answer that is likelier than the gold, of which ``tasks`` has the first.
        of: The number of tasks.
        weights: The weight of each model; of all rows, as ``""``, where the result has one model or no column ``model``.
        chance: The chance that two wrong answers are the same.
        notes: What the user should know.
    """

    result: str
    answer: str
    tasks: tuple[dict[str, Any], ...]
    found: int
    of: int
    weights: dict[str, float]
    chance: float
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """How many golds are suspects."""
        return f"{self.found:,} of {counted(self.of, 'task')} with an answer that is likelier than the gold"

    def _document(self) -> Document:
        return suspects_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return as_data(vars(self))


@documented(SuspectsOptions)
def suspects(result: Any, answer: str, *, limit: int = 50, rollouts: Any = None) -> Suspects:
    """Find golds to read first: tasks whose models agree on an answer that does not pass.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a frame with ``reward``, ``passed`` and a column of tasks.
        answer: The column with what each row answers, null where it gives no answer; or a check of the result's spec that compares
            what it reads, such as ``number``: its steps read the answers.
        options: Those of ``assay.options.SuspectsOptions``, as the signature lists them.

    Returns:
        The suspects.

    Raises:
        InputError: The result has no column ``passed`` or of tasks, no task has two rows, or texts that a check reads cannot be had.
        UsageError: There is no such column or check, or it has no answers that can be compared.

    Example:
        >>> import assay, polars as pl
        >>> rows = {"task_id": ["a", "a", "a", "b", "b"], "said": [4, 4, 5, 1, 2], "passed": [False, False, True, True, False]}
        >>> assay.suspects(pl.DataFrame(rows).with_columns(reward=pl.col("passed").cast(float)), "said").tasks[0]["answer"]
        4
    """
    opened = open_result(result)
    if "passed" not in opened.schema:
        raise InputError(f"{opened.name}: no column `passed`, without which no answer is right.")
    if not (tasks := opened.tasks()):
        raise InputError(f"{opened.name}: no column `task_id` or `example_id`.", "Score the rollouts with one of them.")
    with interruptible():
        rows = _rows(opened, tasks[0], answer, rollouts)
        return _suspects(opened, rows, answer, limit)


def _rows(result: Result, task: str, answer: str, rollouts: Any) -> pl.DataFrame:
    """Return the task, model, answer and verdict of each row with a task."""
    model = exactly("model") if result.present(("model",)) else pl.lit(None)
    own = [exactly(task).alias(_TASK), pl.col("passed").fill_null(value=False), model.cast(pl.String).alias(_MODEL)]
    if result.schema[task].is_nested():
        raise InputError(f"{result.name}: `{task}` is {result.schema[task]}; expected texts or numbers.")
    if answer in result.schema:
        rows = result.collect(result.numbered.select(ROW, *own, _plain(result, answer)))
    else:
        rows = result.collect(result.numbered.select(ROW, *own)).with_columns(_read(result, answer, rollouts))
    return rows.filter(pl.col(_TASK).is_not_null())


def _plain(result: Result, name: str) -> pl.Expr:
    dtype = result.schema[name]
    if dtype.is_nested() or dtype == pl.Object:
        fact = f"--answer {name}: expected texts, numbers or Booleans, not {dtype}."
        raise UsageError(fact, "Write the answers as JSON text, or name a check that reads them.")
    result.keys([name], "--answer")
    values = exactly(name).cast(pl.String) if dtype.is_temporal() or dtype == pl.Binary else exactly(name)
    values = pl.when(values.is_finite()).then(values) if dtype.is_float() else values
    return values.alias(ANSWER)


def _read(result: Result, name: str, rollouts: Any) -> pl.Series:
    """Return what the steps of a check read on each row."""
    names = [check.name for check in result.checks]
    if name not in names and name not in {check.id for check in result.checks}:
        known = [*result.passed_through, *names]
        hint = did_you_mean(name, known) or f"Columns: {listed(list(result.passed_through))}\nChecks: {listed(names)}"
        raise UsageError(f"--answer {name}: {result.name} has no such column or check.", hint)
    check = result.check(name)
    reader = check_compares(readers_of(result.forms).get((check.verifier, check.id)), name)
    wanted = dict.fromkeys((COMPLETION, *reader.columns))
    whole, why = whole_rows(result, [*wanted], rollouts)
    if COMPLETION not in whole.schema:
        fact = f"--answer {name}: the texts that it reads cannot be had: {why}."
        raise InputError(fact, f"{HOW.capitalize()}, or a column with the answers.")
    needed = [exactly(column) for column in wanted if column in whole.schema]
    text = result.text_of(whole.schema[COMPLETION])
    parts = [answers_of(reader, batch) for batch in whole.batches(pl.col(ROW), text, *needed, check=True)]
    return pl.concat(parts)


def _suspects(result: Result, rows: pl.DataFrame, answer: str, limit: int) -> Suspects:
    one_model = rows[_MODEL].n_unique() <= 1
    values = rows.select(ROW, pl.col(_TASK).alias("task_id"), ANSWER)
    rows = rows.with_columns(pl.lit("").alias(_MODEL) if one_model else pl.col(_MODEL).fill_null("–"))
    models = rows[_MODEL].unique().sort()
    rows = rows.with_columns(
        _numbers(rows[_TASK], rows[_TASK].unique()),
        _numbers(rows[_MODEL], models),
        _numbers(rows[ANSWER], rows[ANSWER].unique()),
    )
    notes = list(result.notes)
    if one_model:
        notes.append("there is one model: the chance of equal wrong answers is that of two of its rows")
    tasks = rows.group_by(_TASK).agg(
        pl.len().alias("size"),
        pl.col("passed").sum().alias("passes"),
        (pl.col(ANSWER).min() == pl.col(ANSWER).max()).alias("is_same"),
    )
    if not tasks.height or tasks["size"].max() == 1:
        raise InputError(
            f"{result.name}: no task has two rows.", "Suspects are found where several rollouts of a task agree."
        )
    cells = _cells(rows, tasks)
    if tasks["is_same"].fill_null(value=False).all():
        notes.append(
            f"all rows of each task have the same `{answer}`: name the column of what models answer, not that of the golds"
        )
    wrong = cells.filter("is_wrong")
    chance = _chance(wrong.filter(pl.col("passes") > 0), one_model=one_model)
    weights = _weights(cells, chance)
    weight = pl.col(_MODEL).replace_strict(weights, return_dtype=pl.Float64)
    gold = _fixed(weight * pl.col("gold") / pl.col("of")).sum().alias("for")
    against = cells.filter(pl.col("gold") > 0).group_by(_TASK).agg(gold)
    answers = wrong.group_by(_TASK, ANSWER).agg(
        _fixed(weight * pl.col("n") / pl.col("of")).sum().alias("score"),
        pl.col("n").sum().alias("rows"),
        pl.col(ROW).min(),
        pl.col("passes").first(),
    )
    likelier = answers.join(against, on=_TASK, how="left").with_columns(pl.col("score") - pl.col("for").fill_null(0))
    order = ["score", "rows", ROW]
    greatest = likelier.filter(pl.col("score") > 0).sort(order, descending=[True, True, False])
    greatest = greatest.unique(_TASK, keep="first", maintain_order=True)
    listing = greatest.head(limit).drop(_TASK, ANSWER).join(values, on=ROW, how="left", maintain_order="left")
    listing = listing.select(
        "task_id", pl.col("score") / 2.0**_BITS, ANSWER, "rows", "passes", pl.col(ROW).alias("row")
    )
    return Suspects(
        result.name if result.files else "",
        answer,
        tuple(listing.to_dicts()),
        greatest.height,
        tasks.height,
        {models[number]: weight for number, weight in weights.items()},
        chance,
        tuple(notes),
    )


def _numbers(values: pl.Series, known: pl.Series) -> pl.Series:
    """Return which of the known values each value is, null for null: numbers are grouped several times as fast as texts."""
    table = known.to_frame("value").with_row_index("number")
    numbered = values.to_frame("value").join(table, on="value", how="left", maintain_order="left")
    return numbered["number"].alias(values.name)


def _cells(rows: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return how often each model gives each answer on each task, how many of these rows give the gold, and ``of`` how many rows."""
    counts = rows.group_by(_TASK, _MODEL, ANSWER).agg(
        pl.len().alias("n"), pl.col("passed").sum().alias("right"), pl.col(ROW).min()
    )
    golds = counts.filter(pl.col(ANSWER).is_not_null() & (pl.col("right") > 0))
    golds = golds.select(_TASK, ANSWER, pl.lit(value=True).alias("is_gold")).unique()
    sizes = counts.group_by(_TASK, _MODEL).agg(pl.col("n").sum().alias("of"))
    cells = counts.join(golds, on=[_TASK, ANSWER], how="left").join(sizes, on=[_TASK, _MODEL])
    cells = cells.join(tasks.select(_TASK, "passes"), on=_TASK)
    is_gold = pl.col("is_gold").fill_null(value=False)
    return cells.with_columns(
        pl.when(is_gold).then("n").otherwise("right").alias("gold"),
        (pl.col(ANSWER).is_not_null() & is_gold.not_()).alias("is_wrong"),
    ).sort(ROW)


def _fixed(values: pl.Expr) -> pl.Expr:
    return (values * 2.0**_BITS).round().cast(pl.Int64)


def _chance(wrong: pl.DataFrame, *, one_model: bool) -> float:
    """Return the chance that wrong answers of two models to one task are the same; of one model, of two of its rows."""
    share = pl.lit(1.0) if one_model else pl.col("n") / pl.col("of")
    count = pl.col("n") if one_model else pl.lit(1)  # rows of one model each stand for themselves

    def pairs(of: pl.DataFrame) -> float:
        sums = of.select(((pl.col("sum") ** 2 - pl.col("squares")) / 2).alias("pairs"))
        return math.fsum(sums["pairs"])

    shares = wrong.with_columns((share * count).alias("share"), (share**2 * count).alias("square"))
    same = shares.group_by(_TASK, ANSWER, maintain_order=True).agg(
        pl.col("share").sum().alias("sum"), pl.col("square").sum().alias("squares")
    )
    of_model = shares.group_by(_TASK, _MODEL, maintain_order=True).agg(pl.col("share").sum(), pl.col("square").sum())
    square = pl.col("square") if one_model else pl.col("share") ** 2
    any_two = of_model.group_by(_TASK, maintain_order=True).agg(
        pl.col("share").sum().alias("sum"), square.sum().alias("squares")
    )
    return (pairs(same) + 1) / (pairs(any_two) + 2)


def _weights(cells: pl.DataFrame, chance: float) -> dict[int, float]:
    """Return the weight of each model, by its number."""
    of_task = cells.group_by(_TASK, _MODEL).agg(pl.col("gold").sum() / pl.col("of").first())
    right = of_task.group_by(_MODEL).agg(_fixed(pl.col("gold")).sum(), pl.len().alias("tasks")).sort(_MODEL)
    weights = {}
    for model, gold, tasks in right.iter_rows():
        share = (gold / 2**_BITS + 1) / (tasks + 2)
        weights[model] = max(0.0, math.log(share / ((1 - share) * chance)))
    return weights
