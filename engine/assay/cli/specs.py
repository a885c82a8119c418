"""Commands about specs: write, check, explain, import and register verifiers."""

import contextlib
import json
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import RubricName, check_new, command, option, say, show_document, to_stderr, write_file
from assay.cli.modules import import_checks, import_modules, import_rubric
from assay.errors import ColumnsError, SpecError, UsageError, counted, likely_ending, printable, quoted, shown_path
from assay.names import COMPLETION
from assay.options import STRICT_HELP, CompileOptions, FileOptions, ScoreOptions, settle
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.checks.base import Check
    from assay.insight.testing.registry import Registry
    from assay.spec.importers.imported import Imported
    from assay.spec.verifier import VerifierSpec
    from assay.testing import DifferenceError

_STARTER = """\
# A verifier: the reward of a rollout is the weighted mean of its checks, each between 0.0 and 1.0.
# `assay checks` lists the check types and steps with their params; `assay check {name}` validates this file.
id: {id}

# A rollout passes if its reward is at least this.
passThreshold: 0.8

checks:
  # Text that must occur. `caseSensitive: true` compares letters as they are.
  - id: mentions-refund
    type: contains
    value: refund
    weight: 2

  # Text that must not occur.
  - id: no-robot-talk
    type: not_contains
    value: as an AI language model

  # A pattern of Python's `re`, searched anywhere in the text.
  - id: names-a-date
    type: regex
    pattern: '\\d{{4}}-\\d{{2}}-\\d{{2}}'

  # Characters of the text. A rollout cannot pass while a `required` check scores below 1.0.
  - id: not-empty
    type: min_length
    value: 20
    required: true

  # A gold answer, from the column `answer` of the rollouts: the number after the last "Answer:", thoughts left out.
  # - id: answer
  #   type: number
  #   value: {{column: answer}}
  #   on: [afterThink, {{after: "Answer:"}}]

  # A group: one of its checks has to pass. `gate: true` in place of a weight makes the reward 0.0 if none does.
  # - id: polite
  #   type: any_of
  #   gate: true
  #   checks:
  #     - {{type: contains, value: sorry}}
  #     - {{type: contains, value: thank}}

# Rollouts with what is expected of them: `assay test {name}` runs these, and with --mutants tells what they miss.
tests:
  - given: {{completion: "Thanks, your refund was sent on 2026-11-22. Answer: 3", answer: 3}}
    expect: pass
  - given: {{completion: "No.", answer: 3}}
    expect: fail
"""
"""A commented spec; ``init`` fills in ``{id}`` and ``{name}``."""

_SCHEMA = "assay.schema.json"
"""Name of the JSON Schema beside a verifier: relative, so that it holds for everybody who has the folder."""


@command()
def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File to write, ending in .yaml.")] = Path(
        "verifier.yaml"
    ),
    *,
    rollouts: Annotated[
        str | None,
        option(
            "Look at these rollouts: write a verifier with their gold, and the command to score them.",
            "ROLLOUTS",
            "--from",
        ),
    ] = None,
) -> None:
    """Write a commented verifier to start from, and beside it the JSON Schema that its first line names for editors."""
    _check_is_yaml(path)
    check_new(path, overwrite=True)
    if path.exists():
        raise UsageError(f"{shown_path(path)}: already exists.", "Name another file: assay init NAME.yaml")
    text = _STARTER.format(id=json.dumps(path.stem), name=json.dumps(path.name))
    has_tests, name = True, shlex.quote(str(path))
    next_command = f"assay score rollouts.jsonl --spec {name} --out rewards.parquet"
    if rollouts is not None:
        from assay.cli.drafting import draft

        drafted = draft(rollouts, path.stem)
        text, has_tests = drafted.text, drafted.has_tests
        mapped = "".join(f" --map {shlex.quote(f'{name}={column}')}" for name, column in drafted.mapping.items())
        next_command = f"assay score {shlex.quote(rollouts)} --spec {name}{mapped} --out rewards.parquet"
    write_file(path, f"# yaml-language-server: $schema={_SCHEMA}\n{text}")
    say(f"wrote {shown_path(path)}")
    schema = path.with_name(_SCHEMA)
    if not schema.exists():  # it may describe check types of the user's, too
        from assay.spec.json_schema import schema_text

        write_file(schema, schema_text())
        say(f"wrote {shown_path(schema)}, with which editors complete and check verifiers")
    commands = [f"assay check {name}", *([f"assay test {name}"] if has_tests else []), next_command]
    say("next:", *(f"  {printable(command)}" for command in commands))


def _check_is_yaml(path: Path) -> None:
    if path.suffix.lower() not in (".yaml", ".yml"):
        hint = likely_ending(path, (".yaml", ".yml")) or "Use a name that ends in .yaml"
        raise UsageError(f"{shown_path(path)}: the verifier is written as YAML.", hint)


_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


@command(
    {FileOptions: ("tasks", "mapping", "preset", "any_role", "modules", "checks")},
    modules=("assay.cli.terminal", "assay.testing"),
)
def check(
    specs: Annotated[list[str], typer.Argument(help="Verifiers: files, or registered names.")],
    *,
    against: Annotated[
        str | None,
        option(
            f"Rollouts to try the verifiers on, besides sample rows: the first {_SAMPLES} show which values, golds and "
            "parts of the output they have.",
            "ROLLOUTS",
        ),
    ] = None,
    rollouts: Annotated[str | None, option("The former name of --against.", hidden=True)] = None,
    strict: Annotated[bool, option(STRICT_HELP)] = True,
    **options: Any,
) -> None:
    """Validate verifiers: list all problems, and try them on sample rows, or against rollouts."""
    from assay.cli.terminal import print_error, print_warning
    from assay.testing import DifferenceError

    import_modules(options.pop("modules"))
    checks = import_checks(options.pop("checks"))
    console = to_stderr()
    refused = False
    for path in specs:
        try:
            verifier = _loaded(path, checks, strict=strict)
            for spec in verifier.warned:
                print_warning(console, f"{shown_path(path)}: {spec.id}: {spec.warning}")
            try:
                result = _dry_run(verifier)
            except DifferenceError as error:
                raise _difference(verifier, error, path) from None
            if (against := against or rollouts) is not None:
                try:
                    result += f"; {_tried(verifier, against, options)}"
                except ColumnsError as error:
                    raise ColumnsError(f"{shown_path(path)}: {error.fact}", error.hint) from None
        except (SpecError, ColumnsError) as error:
            print_error(console, error)
            refused = True
            continue
        say(f"ok: {shown_path(path)}: {result}")
    if refused:
        raise typer.Exit(2)


def _loaded(path: str, checks: "Sequence[type[Check]]", *, strict: bool) -> "VerifierSpec":
    from assay.spec.verifier import load_verifier

    if not strict:
        with contextlib.suppress(SpecError):
            verifier = load_verifier(path, checks=checks)
            if not any(spec.broken for spec in verifier.warned):
                return verifier
    return load_verifier(path, checks=checks, strict=True)


def _difference(verifier: "VerifierSpec", error: "DifferenceError", path: str) -> SpecError:
    from assay.checks.base import deciding_code

    name, (by_expr, by_row) = next(
        (item for item in error.differing.items() if item[0].startswith("check/")), next(iter(error.differing.items()))
    )
    ident = name.removeprefix(f"check/{verifier.id}/")
    kinds = [
        deciding_code(spec.check).__name__ for spec in verifier.nodes if spec.id == ident and spec.check is not None
    ]
    kind = kinds[0] if kinds else "a check"
    text = error.row.get(COMPLETION)
    return SpecError(
        f"{shown_path(path)}: {ident}: row() and expr() of {kind} differ: {by_row} and {by_expr}"
        f", on {'null' if text is None else quoted(str(text))}.",
        f"Make expr() give what row() gives, or leave it out: row() alone is right, and slower.\n"
        f"assay.testing.assert_check_conforms({kind}) compares them on thousands of texts.",
    )


def _dry_run(verifier: "VerifierSpec") -> str:
    from assay.insight.samples import sample_rows
    from assay.rewards.check import RewardCheck
    from assay.testing import assert_plan_conforms

    checks = counted(len([spec for spec in verifier.nodes if not spec.parts]), "check")
    readers = (reader for spec in verifier.nodes for reader in spec.readers)
    rewards = [spec.id for spec in readers if isinstance(spec.check, RewardCheck)]
    if rewards:  # they may be slow, or cost money
        return (
            f"{checks}, not tried on sample texts because of the reward functions {', '.join(map(printable, rewards))}"
        )
    rows = sample_rows(verifier, _SAMPLES)
    assert_plan_conforms([verifier], rows)
    return f"{checks}, {counted(len(rows), 'sample text')} scored the same by columns and by rows"


def _tried(verifier: "VerifierSpec", rollouts: str, options: dict[str, Any]) -> str:
    from assay.cli.terminal import print_warning
    from assay.compiling.columns import reading_for
    from assay.insight.explanation import findings
    from assay.loading.rollouts import open_rollouts
    from assay.scoring.in_memory import engine_errors, prepare
    from assay.writing.numbers import number

    settled = settle(ScoreOptions, options, "check")
    opened = open_rollouts(rollouts, reading_for(settled, [verifier]))
    source, plan = prepare(replace(opened, frame=opened.frame.head(_SAMPLES)), (verifier,), settled)
    with engine_errors(opened.files, plan):
        frame = source.frame.collect()
        rewards = plan.score(frame)["reward"]
    for finding in findings(verifier, frame.to_dicts(), any_role=settled["any_role"]):
        if finding.is_doubtful:
            print_warning(to_stderr(), str(finding))
        else:
            say(printable(str(finding)))
    unscored = rewards.null_count()
    scored = len(rewards) - unscored
    mean = number(float(rewards.sum()) / scored if scored else None)
    rest = f", {unscored:,} unscored" if unscored else ""
    return f"mean reward {mean} on {counted(len(rewards), 'row')} of {shown_path(rollouts)}{rest}"


@command({FileOptions: ("modules", "checks")}, modules=("assay.cli.views", "assay.compiling.verifiers"))
def explain(
    specs: Annotated[list[str] | None, typer.Argument(help="Verifiers: files, or registered names.")] = None,
    *,
    rubric: RubricName = None,
    as_data: Annotated[bool, option("Print JSON, with the canonical form.", None, "--json")] = False,
    **options: Any,
) -> None:
    """Show what each check with its steps and golds, or each member of a rubric, compiles to: which engine runs it, and why."""
    from assay.cli.views import explanation_document
    from assay.compiling.verifiers import verifiers_of_run

    with only_data():
        import_modules(options["modules"])
        settled = settle(CompileOptions, {"checks": import_checks(options["checks"])}, "explain")
        imported = None if rubric is None else import_rubric(rubric)
    if (imported is None) == (not specs):
        raise UsageError("Name verifier files, or a rubric with --rubric module:attribute.")
    loaded = verifiers_of_run(imported or specs, settled)
    if as_data:
        write_data(json.dumps([_explained(verifier) for verifier in loaded]) + "\n")
        return
    for verifier in loaded:
        show_document(explanation_document(verifier))


_DEFAULTS: dict[str, Any] = {"role": "weight", "weight": 1.0, "depth": 0, "required": False, "negate": False}


def _explained(verifier: "VerifierSpec") -> dict[str, Any]:
    from assay.insight.explanation import explanation, results_of

    checks = [
        {name: value for name, value in entry.items() if value not in (None, [], "", _DEFAULTS.get(name))}
        for entry in explanation(verifier)
    ]
    data = {"id": verifier.id, "sha256": verifier.sha256, "canonical": json.loads(verifier.canonical), "checks": checks}
    data |= {"results": results} if (results := results_of(verifier)) else {}
    return data if verifier.share is None else data | {"weight": verifier.share.weight}


@command()
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A promptfoo configuration, or OpenAI graders; YAML or JSON. No other file is read."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        option(
            "Verifier to write, ending in .yaml; what differs between tests goes into SPEC.tasks.jsonl beside it, for --tasks. "
            "[default: the verifier on stdout]",
            "SPEC",
            *("--out", "-o"),
        ),
    ] = None,
    overwrite: Annotated[bool, option("Replace existing files.", None, "--overwrite")] = False,
    lenient: Annotated[bool, option("Exit with 0, not 3, if something has no counterpart.", None, "--lenient")] = False,
) -> None:
    """Turn a promptfoo configuration or OpenAI graders into a verifier, and name what has no counterpart."""
    from assay.cli.terminal import print_warning
    from assay.spec.importers.files import import_file, yaml_text

    imported = import_file(path)
    text = f"# From {printable(path.name)}, by assay import.\n{yaml_text(imported.spec)}"
    if out is not None:
        written = _write_import(out, text, imported, overwrite=overwrite)
    elif imported.tasks:
        fact = f"{shown_path(path)}: what differs between its tests goes into a table beside the verifier."
        raise UsageError(fact, "Name a file for the verifier: --out verifier.yaml")
    else:
        write_data(text)
        written = ""
    console = to_stderr()
    for line in imported.left_out:
        print_warning(console, f"left out: {line}")
    for line in imported.differences:
        print_warning(console, f"may differ: {line}")
    if written:
        say(written)
    if imported.left_out and not lenient:
        raise typer.Exit(3)


def _write_import(out: Path, text: str, imported: "Imported", *, overwrite: bool) -> str:
    from assay.spec.importers.files import tasks_text

    _check_is_yaml(out)
    files = {out: text}
    if imported.tasks:
        files[out.with_suffix(".tasks.jsonl")] = tasks_text(imported)
    for target in files:
        check_new(target, overwrite=overwrite)
    for target, content in files.items():
        write_file(target, content)
    names = " and ".join(map(shown_path, files))
    tasks = f" --tasks {shown_path([*files][1])}" if imported.tasks else ""
    of = f", for {counted(len(imported.tasks), 'test')}" if imported.tasks else ""
    return f"wrote {names}{of}\nnext:\n  assay score ROLLOUTS --spec {shown_path(out)}{tasks} --out rewards.parquet"


class Action(StrEnum):
    """What to do."""

    create = "create"
    list = "list"
    show = "show"
    check = "check"


@command(
    {FileOptions: ("modules", "checks")},
    modules=("assay.insight.testing.registry",),
    epilog="""\b
Examples:
  assay verifiers create refund.yaml
  assay score rollouts.jsonl --spec refund@2
  assay diff refund@1 refund@2 --rollouts rollouts.jsonl""",
)
def verifiers(
    action: Annotated[
        Action,
        typer.Argument(
            metavar="create|list|show|check",
            help="Register spec files, list what is registered, show specs, or check all copies.",
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(help="For create, spec files; for show, names: ID is the latest version, or ID@N."),
    ] = None,
    *,
    registry: Annotated[
        str | None,
        option("Folder of the registry. [default: the nearest verifiers/ with an assay.lock, else ./verifiers]", "DIR"),
    ] = None,
    as_data: Annotated[bool, option("Print JSON, for list.", None, "--json")] = False,
    **options: Any,
) -> None:
    """Register specs under their ids: commands and Python take a registered name in place of a spec's file.

    A spec is registered if its tests pass. A changed spec is a new version: ID is the latest, ID@N that one. The lock says what each
    version means: a copy that was changed is refused wherever it is named.
    """
    from assay.insight.testing.registry import Registry

    import_modules(options["modules"])
    checks = import_checks(options["checks"])
    known = Registry(registry)
    if (action in (Action.list, Action.check)) == bool(names):
        raise UsageError(f"assay verifiers {action}: {'takes no names' if names else 'name at least one'}.")
    if action is Action.list:
        _list(known, as_data=as_data)
    elif action is Action.check:
        _check_all(known, checks)
    for name in names or ():
        if action is Action.create:
            _create(known, name, checks)
        else:
            known.load(name, checks=checks)
            write_data(known.path(name).read_bytes().decode("utf-8-sig"))


def _create(registry: "Registry", path: str, checks: "Sequence[type[Check]]") -> None:
    created = registry.create(path, checks=checks)
    specs = registry.list()
    spec = next(spec for spec in specs if spec.name == created)
    say(printable(f"{created}: {shown_path(spec.path)}"))
    older = (other for other in specs if other.id == spec.id and other.version < spec.version)
    equal = [other.name for other in older if (other.sha256, other.code) == (spec.sha256, spec.code)]
    if equal:
        say(f"note: {created} means what {' and '.join(equal)} mean{'s' * (len(equal) == 1)}, which is not the latest")


def _list(registry: "Registry", *, as_data: bool) -> None:
    specs = registry.list()
    data = [{"id": spec.id, "version": spec.version, "file": str(spec.path), "sha256": spec.sha256} for spec in specs]
    lines = [f"{spec.name}  {spec.sha256[:12]}  {shown_path(spec.path)}\n" for spec in specs]
    write_data(json.dumps(data) + "\n" if as_data else "".join(lines))
    if not specs:
        say(f"note: nothing is registered in {shown_path(registry.folder)}")


def _check_all(registry: "Registry", checks: "Sequence[type[Check]]") -> None:
    from assay.cli.terminal import print_error

    specs, console = registry.list(), to_stderr()
    problems = [*registry.problems(checks=checks)]
    if not specs and not problems:
        fact = f"Nothing is registered in {shown_path(registry.folder)}."
        raise UsageError(fact, "Name its folder, --registry DIR, or register a spec: assay verifiers create FILE")
    for problem in problems:
        print_error(console, problem)
    if problems:
        raise typer.Exit(2)
    say(f"ok: {shown_path(registry.folder)}: {counted(len(specs), 'version')} as locked")
