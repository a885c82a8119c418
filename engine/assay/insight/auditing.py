"""Audit a verifier: score texts that deserve no reward on every task, beside what models really wrote.

All probes of all tasks are one frame, scored once; each row has its own task's columns.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from assay.aggregating.columns import check_column, score_column
from assay.compiling.columns import check_one_verifier, exact_columns, read_columns, reading_for
from assay.compiling.plan import Plan
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import InputError, UsageError, counted, did_you_mean, listed, shown_path
from assay.expressions.json import mended
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.documents import audit_document
from assay.insight.probes import (
    CLASSES_OF_TASKS,
    DISGUISES,
    GOLDS,
    MIXED_SCRIPTS,
    PROBES,
    PROMPTS,
    Phrases,
    Probe,
    Task,
    checks_named,
    look_alike,
    phrases_of,
    probes_of,
    task_of,
)
from assay.insight.results import names_of
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.loading.tasks import join_tasks, load_tasks, read_whole
from assay.names import COMPLETION, HIDDEN, NATIVE, TASK_ID
from assay.options import AuditOptions, ScoreOptions, documented, settle
from assay.scoring.in_memory import engine_errors, tell
from assay.spec.verifier import VerifierSource, VerifierSpec
from assay.system.quantities import RowLimit
from assay.system.signals import interruptible
from assay.system.special_files import open_input
from assay.system.spool import spooling
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed
from assay.writing.numbers import number

SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID, _PROBE = tuple(HIDDEN + f"audit/{name}" for name in ("row", "at", "id", "probe"))
"""Columns of ``sampled_tasks``: the number of the row, of its task among those chosen, and the values that name the task."""

_FIELDS = ("probe", "class", "completion", "task_id")


@dataclass(frozen=True, repr=False)
class Audit(Displayed):
    """What probes earn.

    Attributes:
        real: The real rollouts of the tasks: ``tasks``, ``rows``, ``scored``, ``mean_reward``, ``pass_rate``.
        probes: For each probe its ``id`` and ``class``; the ``tasks`` that it was tried on, and how many of these had ``errors``,
            which count for nothing else; its ``mean_reward``; ``pass_share``, the share of tasks on which it passes;
            ``percentile``, the share of real rewards below its rewards in percent, ties counted half; ``beats_real``, the share of
            tasks on which it earns more than the mean real completion; ``gains``, the number of tasks on which it earns more than
            the best real one; ``checks``, the share of tasks on which each check passes; and ``stopped_by``, the checks, but for
            those in groups, that fail where it does not pass, the commonest first.
        checks: For each check the ``hacks`` that pass it wherever they were tried, and whether it is ``free``: all free probes do.
        free_reward: The greatest mean reward of the free probes; None if none was scored.
        bypasses: Disguised phrases that a check let through: ``probe``, ``check``, on how many ``tasks`` ``of`` those tried.
        limits: The limits given, and in ``exceeded`` what is said of those that are exceeded.
        notes: What the user should know.
    """

    real: dict[str, Any]
    probes: tuple[dict[str, Any], ...]
    checks: tuple[dict[str, Any], ...]
    free_reward: float | None
    bypasses: tuple[dict[str, Any], ...]
    limits: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Return what is said of the limits that are exceeded."""
        return tuple(self.limits["exceeded"])

    @property
    def headline(self) -> str:
        """How many tasks were probed, and what nothing earns."""
        return f"{counted(self.real['tasks'], 'task')} · free reward {number(self.free_reward)}"

    def _document(self) -> Document:
        return audit_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = {
            "insight": 1,
            "real": self.real,
            "probes": list(self.probes),
            "checks": list(self.checks),
            "free_reward": self.free_reward,
            "bypasses": list(self.bypasses),
            "limits": self.limits,
            "notes": list(self.notes),
        }
        return dict(json.loads(json.dumps(data, allow_nan=False)))


@frozen
class _UserProbe:
    """A probe of a file: for one task, or for all."""

    id: str
    kind: Any
    text: str
    task: str | None


@frozen
class _Gates:
    """Limits, checked before anything is scored."""

    passing: RowLimit
    free: float | None
    control: RowLimit

    @classmethod
    def of(cls, passing: int | str | None, free: float | None, control: str | None) -> "_Gates":
        if free is not None and not math.isfinite(free):
            raise UsageError(f"--max-free {free}: expected a finite number.")
        if control is not None and not str(control).strip().endswith("%"):
            raise UsageError(f"--min-control {control}: expected a percentage.", "For example --min-control 90%")
        return cls(RowLimit("--max-passing", passing), free, RowLimit("--min-control", control))


@documented(AuditOptions, ScoreOptions)
def audit(
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | None,
    rollouts: Any,
    *,
    sample: int = 1000,
    probes: str | Path | Iterable[Mapping[str, Any]] = (),
    task: Sequence[str] | str = (),
    max_passing: int | str | None = None,
    max_free: float | None = None,
    min_control: str | None = None,
    **options: Unpack[ScoreOptions],
) -> Audit:
    """Score probes on every task: empty texts, echoes of the prompt, phrases of the spec, other tasks' answers, disguises.

    Args:
        verifiers: As for ``assay.score``.
        rollouts: As for ``assay.score``; the first row of each task has the columns that its probes get.
        options: Those of ``assay.options.AuditOptions``, and how the rollouts are read and scored.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts, tasks or probes cannot be read, or there is no task.
        UsageError: An option cannot be used.

    Example:
        >>> import assay
        >>> spec = {"checks": [{"type": "max_length", "value": 900}]}
        >>> assay.audit(spec, [{"task_id": "t-1", "completion": "A refund is on its way."}]).free_reward
        1.0
    """
    settled = settle(ScoreOptions, options, "audit")
    gates, own = _Gates.of(max_passing, max_free, min_control), _user_probes(probes)
    with interruptible() as stop, spooling():
        limits = limits_of_run(verifiers, settled, stop=stop)
        loaded = verifiers_of_run(verifiers, settled, limits=limits)
        source = joined_tasks(open_rollouts(rollouts, reading_for(settled, loaded)), loaded, settled)
        warn(loaded)
        with engine_errors(source.files):
            rows, tasks = sampled_tasks(source, names_of(task), sample)
            plan = Plan(
                loaded,
                tuple(rows.drop(SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID).schema.items()),
                (),
                any_role=settled["any_role"],
            )
            tell(plan.refuse(rows.drop(SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID).lazy()))
            with closing_checks(loaded):
                found = _probed(plan, rows, own)
    notes = [] if tasks == found.tasks else [f"{found.tasks:,} of {counted(tasks, 'task')}, evenly spaced"]
    return _audited(found, gates, (*source.notes, *plan.notes, *notes))


def _columns(verifiers: Sequence[VerifierSpec], present: Iterable[str] = ()) -> list[str]:
    return list(dict.fromkeys((*read_columns(verifiers, [*present]), *PROMPTS, *GOLDS)))


def joined_tasks(source: Rollouts, verifiers: tuple[VerifierSpec, ...], options: ScoreOptions) -> Rollouts:
    """Return rollouts with the columns of their tasks, if there is a table of these."""
    if options["tasks"] is None:
        return source
    exact = exact_columns(verifiers)
    table, notes = load_tasks(options["tasks"], options["storage_options"], exact)
    schema, columns = source.frame.collect_schema(), table.collect_schema()
    check_one_verifier(verifiers, schema, columns)
    wanted = _columns(verifiers, {*schema, *columns})
    joined = [name for name in columns if name in (TASK_ID, *wanted)]
    whole = read_whole(table.select(map(exactly, joined)), options["tasks"], options["storage_options"]).lazy()
    return source.then(partial(join_tasks, tasks=whole, wanted=wanted, exact=exact), *notes)


def sampled_tasks(source: Rollouts, names: tuple[str, ...], sample: int) -> tuple[pl.DataFrame, int]:
    """Return the rows of so many tasks, evenly spaced, with ``SAMPLED_ROW``, ``SAMPLED_TASK`` and ``SAMPLED_ID``; and the number of tasks."""
    frame, schema = source.frame, source.frame.collect_schema()
    for name in names:
        if name not in schema:
            hint = did_you_mean(name, schema) or f"Columns: {listed(list(schema))}"
            raise UsageError(f"--task {name}: the rollouts have no such column.", hint)
    names = names or tuple(name for name in (TASK_ID, "example_id") if name in schema)[:1]
    if not names:
        hint = f"Name the columns that tell tasks apart with --task. Columns: {listed(list(schema))}"
        raise InputError("The rollouts have no column `task_id` or `example_id`.", hint)
    keys = [HIDDEN + f"key{at}" for at in range(len(names))]
    keyed = frame.with_columns(exactly(name).alias(key) for name, key in zip(names, keys, strict=True))
    numbered = keyed.with_row_index(SAMPLED_ROW).filter(pl.col(key).is_not_null() for key in keys)
    firsts = (
        numbered.group_by(keys)
        .agg(pl.col(SAMPLED_ROW).min())
        .sort(SAMPLED_ROW)
        .select(keys)
        .collect(engine="streaming")
    )
    if not (total := firsts.height):
        raise InputError("The rollouts have no task.", f"No row has a value in {' and '.join(names)}.")
    number = min(sample, total)
    chosen = firsts[[at * total // number for at in range(number)]].with_row_index(SAMPLED_TASK)
    ident = pl.concat_str([pl.col(key).cast(pl.String) for key in keys], separator=",").alias(SAMPLED_ID)
    rows = numbered.join(chosen.lazy(), on=keys).sort(SAMPLED_ROW).with_columns(ident).drop(keys).collect()
    kind = rows.schema.get(COMPLETION)
    is_text = kind in (pl.String, pl.Null) or isinstance(kind, pl.Categorical | pl.Enum)
    return rows.cast({COMPLETION: pl.String}) if is_text else rows, total


def _user_probes(given: str | Path | Iterable[Mapping[str, Any]]) -> list[_UserProbe]:
    if not isinstance(given, str | Path):
        return [_user_probe(fields, f"probes[{at}]") for at, fields in enumerate(given)]
    name = shown_path(given)
    try:
        with open_input(Path(given)) as file:
            lines = file.read().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 (byte {error.start}).") from None
    probes = []
    for at, line in enumerate(lines, 1):
        if line.strip():
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{name}:{at}: not JSON.", "Each line is a probe.") from None
            probes.append(_user_probe(fields, f"{name}:{at}"))
    return probes


def _user_probe(fields: Any, place: str) -> _UserProbe:
    form = 'A probe is {"probe": "thanks", "class": "hack", "completion": "Thank you!"}, maybe with "task_id".'
    if not isinstance(fields, Mapping) or not {*_FIELDS[:3]} <= {*fields} <= {*_FIELDS}:
        raise InputError(f"{place}: not a probe.", form)
    name, kind, text, task = (fields.get(field) for field in _FIELDS)
    if not (isinstance(name, str) and name and isinstance(text, str)):
        raise InputError(f"{place}: probe and completion must be texts.", form)
    if kind not in CLASSES_OF_TASKS:
        raise InputError(f"{place}: class is {kind!r}; expected {', '.join(CLASSES_OF_TASKS)}.")
    if any(name in PROBES[own] for own in CLASSES_OF_TASKS):
        raise InputError(f"{place}: `{name}` is a probe of Assay's.", "Give yours another name.")
    return _UserProbe(name, kind, text, None if task is None else str(task))


@frozen
class _Probed:
    """Probes and real rollouts, scored."""

    verifiers: tuple[VerifierSpec, ...]
    phrases: Phrases
    briefs: tuple[Task, ...]
    real: pl.DataFrame
    scored: pl.DataFrame
    probes: dict[str, Any]
    unknown: tuple[str, ...]

    @property
    def tasks(self) -> int:
        """The number of tasks that were probed."""
        return len(self.briefs)


def _probed(plan: Plan, rows: pl.DataFrame, own: Sequence[_UserProbe]) -> _Probed:
    inputs = rows.drop(SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID)
    results = plan.score(inputs).with_columns(rows[SAMPLED_TASK], rows[SAMPLED_ROW])
    ranked = (
        results.filter(pl.col("reward").is_finite())
        .with_row_index("place")
        .sort(["reward", SAMPLED_ROW], descending=[True, False])
    )
    places = rows.select(SAMPLED_ROW).with_row_index("place")
    best = ranked.drop("place").group_by(SAMPLED_TASK, maintain_order=True).first().join(places, on=SAMPLED_ROW)
    place_of = dict(best.select(SAMPLED_TASK, "place").iter_rows())
    firsts = (
        rows.with_row_index("place").group_by(SAMPLED_TASK, maintain_order=True).first().sort(SAMPLED_TASK)["place"]
    )
    briefs = tuple(
        task_of(row, None if at not in place_of else rows[COMPLETION][place_of[at]])
        for at, row in enumerate(inputs[firsts].iter_rows(named=True))
    )
    phrases = phrases_of(plan.verifiers)
    probes = [*probes_of(briefs, phrases)]
    at_of = {name: at for at, name in enumerate(rows[firsts][SAMPLED_ID])}
    for item in own:
        places_of = range(len(briefs)) if item.task is None else [at_of[item.task]] if item.task in at_of else []
        probes += [Probe(item.id, item.kind, at, item.text) for at in places_of]
    kinds = {probe.id: probe.kind for probe in probes}
    # by class; Assay's own first, users' as they come
    names = [
        name for kind in CLASSES_OF_TASKS for name in dict.fromkeys((*PROBES[kind], *kinds)) if kinds.get(name) == kind
    ]
    order = {name: at for at, name in enumerate(names)}
    frame = inputs[firsts.gather([probe.task for probe in probes])]
    frame = frame.with_columns(_completions(probes, inputs[COMPLETION], firsts, place_of))
    scored = plan.score(frame).with_columns(
        pl.Series(_PROBE, [order[probe.id] for probe in probes], dtype=pl.UInt32),
        pl.Series(SAMPLED_TASK, [probe.task for probe in probes], dtype=pl.UInt32),
    )
    unknown = tuple(item.task for item in own if item.task is not None and item.task not in at_of)
    return _Probed(plan.verifiers, phrases, briefs, results, scored, {name: kinds[name] for name in order}, unknown)


def _completions(probes: Sequence[Probe], real: pl.Series, firsts: pl.Series, best: Mapping[int, int]) -> pl.Series:
    texts = [probe for probe in probes if probe.text is not None]
    values: list[Any] = [mended(probe.text or "") for probe in texts]  # a phrase of a spec may have lone surrogates
    if real.dtype != pl.String:
        openings = {probe.task: _opening(real[firsts[probe.task]]) for probe in texts}
        values = [
            [*openings[probe.task], _message(text, real.dtype)] for probe, text in zip(texts, values, strict=True)
        ]
    made = pl.concat([pl.Series(real.name, values, dtype=real.dtype), real])
    numbers = iter(range(len(texts)))
    places = [len(texts) + best[probe.real] if probe.text is None else next(numbers) for probe in probes]
    return made.gather(pl.Series(places, dtype=pl.UInt32))


def _opening(messages: Any) -> list[Any]:
    opening = []
    for message in messages if messages is not None else ():
        if (message or {}).get("role") == "assistant":
            break
        opening.append(message)
    return opening


def _message(text: str, dtype: Any) -> dict[str, Any]:
    content = dtype.inner.to_schema().get("content") if isinstance(dtype.inner, pl.Struct) else None
    parts = isinstance(content, pl.List | pl.Array) and isinstance(content.inner, pl.Struct)
    return {"role": "assistant", "content": [{"type": "text", "text": text}] if parts else text}


def _audited(found: _Probed, gates: _Gates, notes: Sequence[str]) -> Audit:
    columns = {
        name: check_column(verifier, spec) if verifier.kind == NATIVE else score_column(verifier)
        for name, verifier, spec in checks_named(found.verifiers)
    }
    columns = {name: column if column in found.scored else "reward" for name, column in columns.items()}
    rewards = found.real["reward"].drop_nulls().sort()
    real = {
        "tasks": found.tasks,
        "rows": found.real.height,
        "scored": len(rewards),
        "mean_reward": _mean(rewards),
        "pass_rate": _mean(found.real.filter(pl.col("reward").is_not_null())["passed"]),
    }
    reward = pl.col("reward")
    # the mean of three 0.1 is not 0.1, and 0.1 does not beat it
    mean = reward.mean().clip(reward.min(), reward.max())
    by_task = found.real.group_by(SAMPLED_TASK).agg(real_mean=mean, real_best=reward.max())
    scored = found.scored.join(by_task, on=SAMPLED_TASK, how="left", maintain_order="left")
    outer = {id(spec) for verifier in found.verifiers for spec in verifier.checks}
    deciding = [name for name, _, spec in checks_named(found.verifiers) if id(spec) in outer]
    probes = tuple(
        _earned(name, kind, scored.filter(pl.col(_PROBE) == at), columns, deciding, rewards)
        for at, (name, kind) in enumerate(found.probes.items())
    )
    free = [probe for probe in probes if probe["class"] == "free" and probe["mean_reward"] is not None]
    hacks = [probe for probe in probes if probe["class"] in ("free", "hack")]
    checks = tuple(
        {
            "check": name,
            "hacks": [probe["id"] for probe in hacks if probe["checks"][name] == 1.0],
            "free": bool(free) and all(probe["checks"][name] == 1.0 for probe in free),
        }
        for name in columns
    )
    free_reward = max((probe["mean_reward"] for probe in free), default=None)
    unknown = [f"user probes of {counted(len(found.unknown), 'task')} not among those probed"] if found.unknown else []
    bypasses = tuple(_bypasses(found, columns))
    seen = {item["probe"] for item in bypasses} & {probe["id"] for probe in probes if probe["pass_share"]}
    hints = [_LOOK_ALIKES] if look_alike.__name__ in seen else []
    return Audit(
        real,
        probes,
        checks,
        free_reward,
        bypasses,
        {
            "max_passing": gates.passing.given,
            "max_free": gates.free,
            "min_control": gates.control.given,
            "exceeded": [*_exceeded(gates, probes, free_reward)],
        },
        (*notes, *unknown, *hints),
    )


_LOOK_ALIKES = (
    "look-alikes pass; this check refuses words that mix Latin and Cyrillic letters: "
    f"{{type: regex, flavor: regex, negate: true, gate: true, pattern: '{MIXED_SCRIPTS}'}}"
)


def _mean(values: pl.Series) -> float | None:
    return stats.mean(values.drop_nulls().to_list())


def _earned(
    name: str, kind: str, rows: pl.DataFrame, columns: Mapping[str, str], deciding: Sequence[str], real: pl.Series
) -> dict[str, Any]:
    clean = rows.filter(pl.col("reward").is_not_null() & pl.col("error").is_null())
    below = real.search_sorted(clean["reward"], "left") + real.search_sorted(clean["reward"], "right")
    stopped = clean.filter(~pl.col("passed"))
    fails = {check: int((stopped[columns[check]] < 1.0).sum()) for check in deciding}
    return {
        "id": name,
        "class": kind,
        "tasks": rows.height,
        "errors": rows.height - clean.height,
        "mean_reward": _mean(clean["reward"]),
        "pass_share": _mean(clean["passed"]),
        "percentile": _mean(below.cast(pl.Float64) * (50.0 / len(real))) if len(real) and clean.height else None,
        "beats_real": _mean(clean.select(pl.col("reward") > pl.col("real_mean")).to_series()),
        "gains": int((clean["reward"] > clean["real_best"]).sum()),
        "checks": {check: _mean(clean[column].drop_nulls() == 1.0) for check, column in columns.items()},
        "stopped_by": sorted((check for check in fails if fails[check]), key=lambda check: -fails[check]),
    }


def _bypasses(found: _Probed, columns: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    names = [*found.probes]
    fixed = dict(found.phrases.forbidden)
    for probe, hide in DISGUISES.items():
        rows = found.scored.filter(pl.col(_PROBE) == names.index(probe)) if probe in names else found.scored.clear()
        rows = rows.filter(pl.col("error").is_null())
        for check in (*fixed, *found.phrases.by_task):
            hidden = [
                any(hide(phrase) != phrase for phrase in fixed.get(check, found.briefs[at].forbidden))
                for at in rows[SAMPLED_TASK]
            ]
            tried = rows.filter(pl.Series(hidden, dtype=pl.Boolean))[columns[check]].drop_nulls()
            if through := int((tried == 1.0).sum()):
                yield {"probe": probe, "check": check, "tasks": through, "of": len(tried)}


def _exceeded(gates: _Gates, probes: Sequence[Mapping[str, Any]], free_reward: float | None) -> Iterable[str]:
    for probe in probes:
        scored = probe["tasks"] - probe["errors"]
        passing = round((probe["pass_share"] or 0.0) * scored)
        tasks = f"passes on {passing:,} of {counted(scored, 'task')}"
        if probe["class"] in ("free", "hack") and gates.passing.exceeded(passing, scored):
            yield f"--max-passing {gates.passing.given}: {probe['id']} {tasks}"
        least = 0.0 if gates.control.given is None else float(str(gates.control.given).strip()[:-1]) / 100
        if probe["class"] == "control" and scored and passing < least * scored:
            yield f"--min-control {gates.control.given}: {probe['id']} {tasks}"
    if gates.free is not None and free_reward is not None and free_reward > gates.free:
        yield f"--max-free {gates.free:g}: a free probe earns {number(free_reward)}"
