"""Whether a result is what its footer says: its content, the files it was made from, its verifiers, and a sample of its rows anew.

A footer can be rewritten together with the file. Evidence needs the root of the content from elsewhere, such as a log of the run.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.checks.graders.provenance import changed_graders
from assay.checks.libraries import changed_versions
from assay.compiling.columns import reading_for
from assay.compiling.plan import Plan
from assay.compiling.verifiers import closing_checks, limits_of_run, verifiers_of_run
from assay.errors import AssayError, InputError, UsageError, counted, listed, printable, shown_path
from assay.expressions.readable import readable
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.documents import verification_document
from assay.insight.pairing import AFTER, BEFORE, changed
from assay.insight.results import ROW, as_data
from assay.insight.stats import splitmix64
from assay.loading.formats.reading import batches
from assay.loading.rollouts import InputFile, Rollouts, open_rollouts
from assay.loading.tasks import content_of_tasks
from assay.names import FUNCTION, IN_PROCESS, MANIFEST, NATIVE
from assay.options import FileOptions, VerifyOptions, documented, settle
from assay.runs.file_run import output_schema, settings_in, stream
from assay.runs.manifest import read_manifest
from assay.scoring.in_memory import engine_errors, prepare
from assay.scoring.summary import Summary
from assay.spec.canonical import forms_of, verifiers_of
from assay.spec.verifier import VerifierSpec, verifier_in_footer
from assay.system.quantities import read_share
from assay.system.signals import interruptible
from assay.system.spool import spool_file, spooling
from assay.thresholds import THRESHOLDS
from assay.writing.documents import Document
from assay.writing.footers import read_provenance, result_files, scan_files
from assay.writing.notebooks import Displayed
from assay.writing.provenance import files_of, is_sealed, provenance_of, sealed, task_files_of
from assay.writing.recorded_files import recorded_files
from assay.writing.seals import seal_of
from assay.writing.writers import open_writer

_CHANCE = 0.05  # with which a sample misses a share of altered rows of ``Verification.misses_up_to``
_CELLS = 5
_ROOT = re.compile("[0-9a-f]{16,64}")
_VERSIONS = {"Assay": "assay_version", "Polars": "polars_version"}


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Displayed):
    """Whether a result is what its footer says.

    Attributes:
        root: Digest of its content as it is; for a folder, of the rows of all parts.
        rows: Number of its rows.
        sealed: Whether the footer has the hashes of all files that it was made from.
        columns_differ: The columns that are not as they were written, of a folder with the part; and entries of a footer that
            contradict each other.
        root_differs: Whether the root is another than the one that was demanded.
        inputs: Each file that it was made from, and ``by`` what it is known to be the same: ``sha256``, or ``size and time``.
        verifiers: Each verifier with its ``sha256``, and whether it is the ``same`` as the footer says.
        sampled: Number of rows that were scored again.
        cells_differ: Number of cells of these rows that are other ones.
        cells: The first of them: ``row``, ``column``, what is ``stored``, and ``rescored``.
        misses_up_to: Share of altered rows that a sample of this size misses with a chance of 5 %; None if none was scored.
        notes: What the user should know.
    """

    root: str
    rows: int
    sealed: bool
    columns_differ: list[str]
    root_differs: bool
    inputs: list[dict[str, Any]] = field(default_factory=list)
    verifiers: list[dict[str, Any]] = field(default_factory=list)
    sampled: int = 0
    cells_differ: int = 0
    cells: list[dict[str, Any]] = field(default_factory=list)
    misses_up_to: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether nothing differs."""
        others = [verifier for verifier in self.verifiers if not verifier["same"]]
        return not (self.columns_differ or self.root_differs or others or self.cells_differ)

    @property
    def headline(self) -> str:
        """Whether the result is what its footer says."""
        return f"{counted(self.rows, 'row')} · {'intact' if self.intact else 'not what the footer says'}"

    def _document(self) -> Document:
        return verification_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return as_data({"intact": self.intact, **vars(self)})


@documented(VerifyOptions)
def verify(
    result: str | Path,
    *,
    rollouts: Any = None,
    tasks: Any = None,
    sample: int | str = 10_000,
    seed: int = 0,
    root: str | None = None,
    any_version: bool = False,
    checks: Sequence[type[Any]] = (),
) -> Verification:
    """Check a result against its footer: the digests of its columns, its inputs, its verifiers, and rows that are scored again.

    Args:
        result: A parquet file of ``assay score``, or a folder of parts.
        options: Those of ``assay.options.VerifyOptions``, as the signature lists them.

    Returns:
        What differs, if anything does.

    Raises:
        InputError: It cannot be checked: it has no digests, its inputs are gone or were written to, another version made it, or code
            that is not here. Not raised if something differs already; then a note says so.
        UsageError: An option cannot be used.

    Example:
        >>> import assay, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> spec = {"checks": [{"type": "contains", "value": "refund"}]}
        >>> with open(f"{folder.name}/rows.jsonl", "w") as file:
        ...     _ = file.write('{"completion": "A refund."}')
        >>> _ = assay.score_file(f"{folder.name}/rows.jsonl", spec, f"{folder.name}/rewards.parquet")
        >>> assay.verify(f"{folder.name}/rewards.parquet").intact
        True
    """
    if not isinstance(result, str | Path):
        fact = f"A result to verify is a path, not {type(result).__name__}."
        raise UsageError(fact, "A frame has no footer.")
    if root is not None and not _ROOT.fullmatch(root.lower()):
        raise UsageError(
            f"--root {printable(root)}: expected the 64 hexadecimal digits of a root, or 16 and more of them."
        )
    path = Path(result)
    files, footer = result_files(path), read_provenance(path)
    seal = seal_of(path, files)
    differ = [*seal.differ, *_contradictions(path, files, footer)]
    differ += ["the number of rows"] if path.is_dir() and footer.get("rows") != seal.rows else []
    is_other = root is not None and not seal.root.startswith(root.lower())
    first = Verification(seal.root, seal.rows, is_sealed(footer), differ, is_other)
    size = _sample_size(sample, seal.rows)
    made = _Made(shown_path(path), files, footer, seal.rows, any_version)
    try:
        with interruptible(), spooling():
            return _made_again(made, first, size, rollouts, tasks, seed, checks)
    except AssayError as error:
        if first.intact:
            raise
        return replace(first, notes=(*first.notes, f"what made it is not checked: {error.fact}"))


def _contradictions(path: Path, files: Sequence[Path], footer: Mapping[str, Any]) -> Iterator[str]:
    for entry in footer.get("verifiers", ()):
        try:
            forms_of({"verifiers": [entry]}, "")
            same = hashlib.sha256(entry["canonical"].encode()).hexdigest() == entry["sha256"]
        except InputError:
            same = False
        if not same:
            yield f"the verifier {printable(entry['id'])} in the footer"
    if not path.is_dir():
        return
    manifest = read_manifest(path)
    run = footer.get("run")
    if manifest is not None and manifest.run != run:
        yield MANIFEST
    for number, file in enumerate(files):
        own = read_provenance(file)
        if (own.get("run"), own.get("part")) != (run, number):
            yield f"{file.name}: is a part of another run"


def _sample_size(sample: int | str, rows: int) -> int:
    text = str(sample)
    if text == "all":
        return rows
    if text.endswith("%"):
        return math.ceil(rows * read_share("--sample", text))
    if not text.isdecimal() or not text.isascii() or int(text[:20]) < 1:
        raise UsageError(f"--sample {text[:60]}: expected a number of rows, a percentage, or all.")
    return min(rows, int(text[:20]))


@frozen(eq=False)
class _Made:
    """A result with its footer, and whether another version than ours may have made it."""

    name: str
    files: Sequence[Path]
    footer: Mapping[str, Any]
    rows: int
    any_version: bool

    def check_versions(self, others: Sequence[str]) -> list[str]:
        """Return notes on versions that made it and are not those that are here; refuse them if it was not asked to go on."""
        if others and not self.any_version:
            fact = f"{self.name}: was made with {' and '.join(map(printable, others))}."
            raise InputError(fact, "Verify it with those versions, or with these: --any-version")
        return [f"it was made with {printable(other)}" for other in others]


def _made_again(
    made: _Made, first: Verification, size: int, rollouts: Any, tasks: Any, seed: int, checks: Sequence[type[Any]]
) -> Verification:
    now = provenance_of((), (), (), ())
    versions = {f"{noun} {made.footer.get(key)}, this is {now[key]}": key for noun, key in _VERSIONS.items()}
    notes = made.check_versions([words for words, key in versions.items() if made.footer.get(key) != now[key]])
    options = _options(made, rollouts, tasks, checks)
    loaded, same = _verifiers(made, options)
    names = (name for verifier in loaded for name in verifier.libraries)
    graders = (name for verifier in loaded for name in verifier.graders)
    changed = [*changed_versions(made.footer.get("libraries"), names).values()]
    notes += made.check_versions([*changed, *changed_graders(made.footer.get("graders"), graders)])
    source, inputs, added = _inputs(made, rollouts, options, loaded)
    notes += added
    source, plan = prepare(source, loaded, options)
    inputs += _task_inputs(made, source, options, given=tasks is not None)
    if any(check.traits.sees_all for check in plan.readers) and size < made.rows:
        size, notes = made.rows, [*notes, "all rows are scored again: functions see several of them together"]
    problems, number, cells = _rescored(made, source, plan, options, size, seed)
    misses = None if not size else 0.0 if size == made.rows else 1 - _CHANCE ** (1 / size)
    return replace(
        first,
        columns_differ=[*first.columns_differ, *problems],
        inputs=inputs,
        verifiers=same,
        sampled=0 if problems else size,
        cells_differ=number,
        cells=cells,
        misses_up_to=None if problems else misses,
        notes=(*first.notes, *notes),
    )


def _options(made: _Made, rollouts: Any, tasks: Any, checks: Sequence[type[Any]]) -> Any:
    if made.footer.get("settings") is None:
        fact = f"{made.name}: its footer does not say with which options it was made."
        raise InputError(fact, "Score the rollouts again.")
    if tasks is None and files_of(made.footer, "tasks"):
        is_hashed = "task_table" in made.footer
        tasks = recorded_files(made.footer, "tasks", made.files[0].parent, made.name, rollouts, by_content=is_hashed)
        tasks = tasks[0] if len(tasks) == 1 else tasks
    if tasks is None and "task_table" in made.footer:
        raise InputError(f"{made.name}: its tasks were not read from a file.", "Name them: --tasks PATH")
    settings = settings_in(made.footer, made.name)
    return settle(FileOptions, {**settings, "tasks": tasks, "checks": checks, "max_bad_rows": "100%"}, "verify")


def _inputs(
    made: _Made, rollouts: Any, options: Any, verifiers: Sequence[VerifierSpec]
) -> tuple[Rollouts, list[dict[str, Any]], list[str]]:
    """Open the rollouts that a result was made from; return them with what each file is known by, and notes."""
    entries, names, notes = files_of(made.footer), rollouts, list[str]()
    then = [entry["name"] for entry in entries]
    if rollouts is None:
        names = recorded_files(made.footer, "inputs", made.files[0].parent, made.name)
    reading = reading_for(options, verifiers)
    source = open_rollouts(names, reading)
    now = {file.name for file in source.inputs if file.skipped is None}
    if {*then} < now:
        added = [printable(file.name) for file in source.inputs if file.name in now - {*then}]
        notes = [f"{counted(len(added), 'file')} not scored yet: {listed(added)}"]
        source = open_rollouts(then, reading)
    source = sealed(source) if any(entry.get("sha256") for entry in entries) else source
    files = [file for file in source.inputs if file.skipped is None]
    if len(files) != len(entries):
        fact = f"{made.name}: was made from {counted(len(entries), 'file')}, and there are {len(files):,}."
        raise InputError(fact, "Name all of them, in the order of the run: --rollouts PATH")
    moved = rollouts is not None
    return source, [_same_input(entry, file, moved=moved) for entry, file in zip(entries, files, strict=True)], notes


def _same_input(then: Mapping[str, Any], now: InputFile, *, moved: bool) -> dict[str, Any]:
    if then.get("sha256"):
        by, same = "sha256", then["sha256"] == now.sha256
    else:
        by = "size" if moved else "size and time"
        same = then.get("size") == now.size and (moved or then.get("modified") == now.modified)
    if not same:
        fact = f"{printable(now.name)}: is not the file that was scored: another {by}."
        raise InputError(fact, "Name the file: --rollouts PATH, --tasks PATH")
    if then.get("read_as") != now.read_as:
        fact = f"{printable(now.name)}: was read in another way: {printable(str(then.get('read_as') or 'as it is'))}."
        raise InputError(fact, "Score the rollouts again.")
    return {"name": now.name, "by": by}


def _task_inputs(made: _Made, source: Rollouts, options: Any, *, given: bool) -> list[dict[str, Any]]:
    then = files_of(made.footer, "tasks")
    seal = any(entry.get("sha256") for entry in then)
    now = provenance_of((), (), (), task_files_of(options["tasks"]), seal=seal)["tasks"]
    result = [
        _same_input(before, InputFile(**after), moved=given or before.get("modified") is None)
        for before, after in zip(then, now, strict=False)
    ]
    is_hashed = "task_table" in made.footer
    if is_hashed and content_of_tasks(source.steps) != made.footer["task_table"]:
        raise InputError(f"{made.name}: was made with other tasks.", "Name the task table: --tasks PATH")
    if len(then) > len(now) and not is_hashed:
        raise InputError(f"{made.name}: was made with {counted(len(then), 'task file')}.", "Name all: --tasks PATH")
    return result


def _verifiers(made: _Made, options: Any) -> tuple[tuple[VerifierSpec, ...], list[dict[str, Any]]]:
    """Make the verifiers of a result again; return them, and whether each is what the footer says."""
    forms, sources, same = forms_of(made.footer, made.name), list[VerifierSpec](), []
    for entry, form in zip(made.footer["verifiers"], forms, strict=True):
        if form.get("kind") == NATIVE:
            sources += verifiers_of({"verifiers": [entry]}, made.name, options["checks"])
        elif form.get("kind") == FUNCTION:
            fact = f"{made.name}: `{printable(str(form.get('id')))}` is a reward function of a rubric."
            hint = "A footer does not hold rubrics: score the rollouts again, and compare with assay diff."
            raise InputError(fact, hint)
        elif form.get("kind") != IN_PROCESS:
            sources.append(verifier_in_footer(form, checks=options["checks"]))
    by_rows = any(form.get("kind") == IN_PROCESS for form in forms)
    if not by_rows or not sources:
        options = {**options, "verifier_name": options["verifier_name"] if by_rows else None}
    loaded = verifiers_of_run(sources or None, options, limits=limits_of_run(None, options))
    for entry, verifier in zip(made.footer["verifiers"], loaded, strict=True):
        used = [str(code["name"]) for code in entry.get("code") or () if code.get("name")]
        (now,) = json.loads(json.dumps(provenance_of([verifier], used, (), ())["verifiers"]))
        if now["code"] != entry.get("code"):
            fact = f"{made.name}: the code of `{printable(verifier.id)}` is not what it was."
            raise InputError(fact, "Import the code that scored the rollouts: --import MODULE, --checks MODULE:CLASS")
        is_same = all(now[key] == entry.get(key) for key in ("id", "sha256", "canonical", "kind", "checks"))
        same.append({"id": verifier.id, "sha256": now["sha256"], "same": is_same})
    return loaded, same


def _rescored(
    made: _Made, source: Rollouts, plan: Plan, options: Any, size: int, seed: int
) -> tuple[list[str], int, list[dict[str, Any]]]:
    """Score rows again; return what cannot be compared, how many cells differ, and the first of them."""
    limit, sample = options["limit"], None
    frame = source.frame if limit is None else source.frame.head(limit)
    if size < made.rows:  # the rows with the least draws
        draws = splitmix64(seed, 0, made.rows).to_frame("draw").with_row_index(ROW)
        sample = draws.bottom_k(size, by="draw")[ROW].sort().implode()

    def some(frame: pl.LazyFrame) -> pl.LazyFrame:
        numbered = frame.with_row_index(ROW)
        return numbered if sample is None else numbered.filter(pl.col(ROW).is_in(sample))

    path, summary, schema = spool_file(made.name, ".parquet"), Summary.of(plan), output_schema(plan, frame)
    with engine_errors(source.files, plan):
        rows = source.rows if limit is None or source.rows is None else min(source.rows, limit)
        if rows is None:
            rows = int(frame.select(pl.len()).collect(engine="streaming").item())
        with closing_checks(plan.verifiers), open_writer(path, schema, alone=False) as writer:
            stream(plan, some(frame), writer, summary, None, source.read)
            if writer is not None:
                writer.close({})
        then, now = scan_files(made.files), scan_files([path])
        types = then.collect_schema(), now.collect_schema()
        problems = [name for name in {**types[0], **types[1]} if types[0].get(name) != types[1].get(name)]
        problems = [f"{name}: is not what the verifiers make" for name in problems]
        if rows != made.rows:
            problems.append(f"the rollouts have {counted(rows, 'row')}, the result {made.rows:,}")
        number, cells = (0, []) if problems else _compared(some(then), now)
    return problems, number, cells


def _compared(stored: pl.LazyFrame, rescored: pl.LazyFrame) -> tuple[int, list[dict[str, Any]]]:
    number, cells, schema = 0, list[dict[str, Any]](), rescored.collect_schema()
    sides = {"stored": (stored, BEFORE), "rescored": (rescored, AFTER)}
    both = [frame.select(exactly(name).alias(prefix + name) for name in schema) for frame, prefix in sides.values()]
    for batch in batches(pl.concat([stored.select(ROW), *both], how="horizontal"), THRESHOLDS.batch):
        for mask in batch.select(_differs(name, dtype).alias(name) for name, dtype in schema.items()):
            number += int(mask.sum() or 0)
            for row in mask.alias("mask").arg_true().head(max(0, _CELLS - len(cells))):
                values = {key: _plain(batch[row, side + mask.name]) for key, (_, side) in sides.items()}
                cells.append({"row": batch[row, ROW], "column": mask.name, **values})
    return number, cells


def _differs(name: str, dtype: Any) -> pl.Expr:
    """Return whether two cells have not the same bits."""

    def texts(values: pl.Series) -> pl.Series:
        return pl.Series(values.name, [repr(value) for value in values.to_list()], dtype=pl.String)

    one, other = BEFORE + name, AFTER + name
    if dtype.is_nested():  # NOTE: Polars takes 0.0 and -0.0 in a list for equal
        cells = (readable(exactly(side), dtype, as_text=False)[0].alias("cells") for side in (one, other))
        left, right = (side.map_batches(texts, return_dtype=pl.String) for side in cells)
        return left != right
    return changed(one, other) if dtype.is_float() else exactly(one).ne_missing(exactly(other))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: itself, or its text."""
    is_plain = value is None or isinstance(value, bool | int | str)
    return value if is_plain or (isinstance(value, float) and math.isfinite(value)) else str(value)
