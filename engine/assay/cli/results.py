"""Commands about results: what rewards say, how two of them differ, and whether they can be trusted."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from assay.cli.app import AsData, Overwrite, check_new, command, command_line, names, option, say, to_stderr, write_file
from assay.cli.app import show as on_stdout
from assay.errors import (
    FailedRunError,
    InputError,
    UsageError,
    counted,
    did_you_mean,
    likely_ending,
    listed,
    printable,
    shown_path,
)
from assay.options import DiffLimits, FileOptions, options_of, settle
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.insight.reports.reporting import Report
    from assay.writing.documents import Document

_N = TypeVar("_N", int, float)

ResultPath = Annotated[
    str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
]
ByNames = Annotated[str | None, option("Columns whose values to tell apart. [default: model]", "NAME,…")]
TaskNames = Annotated[str | None, option("Columns that name the task. [default: task_id, else example_id]", "NAME,…")]
GroupNames = Annotated[
    str | None,
    option("Columns that name the group. [default: those of the task, model, step, as far as they exist]", "NAME,…"),
]
LengthColumn = Annotated[
    str | None, option("Column with the length of each text, such as tokens. [default: code points]", "COLUMN")
]

_ENDINGS = (".html", ".md", ".json")
_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


def _checked_out(out: str | None, *, overwrite: bool, others: tuple[str, ...] = ()) -> Path | None:
    if out is None:
        return None
    path, endings = Path(out), (*others, *_ENDINGS)
    if path.suffix.lower() not in endings:
        raise UsageError(
            f"--out {shown_path(out)}: expected a name that ends in {', '.join(endings)}.", likely_ending(out, endings)
        )
    check_new(path, overwrite=overwrite)
    return path


def _json_text(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for char in () if text.isprintable() else {*text}:
        if not char.isprintable():
            text = text.replace(char, json.dumps(char)[1:-1])
    return text


def _deliver(data: dict[str, Any], document: "Document", *, out: Path | None, as_data: bool) -> None:
    as_json = _json_text(data)
    if out is not None:
        suffix = out.suffix.lower()
        text = document.html() if suffix == ".html" else document.markdown() if suffix == ".md" else f"{as_json}\n"
        write_file(out, text)
    if as_data:
        write_data(f"{as_json}\n")
        return
    from assay.cli.terminal import print_document

    print_document(to_stderr(), document)


@command(
    modules=("assay.insight.reports.reporting",),
    epilog="""\b
Examples:
  assay report rewards.parquet --out report.html
  assay report rewards.parquet --format md --no-text""",
)
def report(
    result: ResultPath,
    *,
    out: Annotated[
        str | None, option("Write .html, .md or .json. [default: Markdown on stdout]", "PATH", "--out", "-o")
    ] = None,
    kind: Annotated[
        str | None, option("What to write. [default: as --out ends, else md]", "html|md|json", "--format")
    ] = None,
    as_data: Annotated[bool, option("As --format json.", None, "--json")] = False,
    rollouts: Annotated[
        list[str] | None,
        option(
            "The rollouts that were scored, for the texts of examples. [default: the result's `completion`, else the inputs that it names, if unchanged]",
            "PATH",
        ),
    ] = None,
    by: Annotated[str | None, option("Columns to show rewards by. [default: model, the task, step]", "NAME,…")] = None,
    examples: Annotated[int, option("Most examples of each kind.", "N", min=0)] = 10,
    no_text: Annotated[bool, option("Leave out the texts that were scored.", None, "--no-text")] = False,
    length: LengthColumn = None,
    task: TaskNames = None,
    group: GroupNames = None,
    overwrite: Overwrite = False,
) -> None:
    """Report on rewards: what each check is worth, which say the same, by model, task and step, and rows worth reading."""
    from assay.insight.reports.reporting import report as look

    path = None if out is None else Path(out)
    chosen = _format(path, "json" if as_data else kind)
    if path is not None:
        check_new(path, overwrite=overwrite)
    with to_stderr().status("reading"):
        found = look(
            result,
            rollouts=rollouts or None,
            by=None if by is None else names(by),
            examples=examples,
            text=not no_text,
            length=length,
            task=names(task),
            group=names(group),
        )
        if chosen == "json":
            written = _json_text(found.as_json()) + "\n"
        else:
            written = found.html() if chosen == "html" else found.markdown()
    if path is None:
        write_data(written)
        return
    write_file(path, written)
    _tell(found, path)


def _format(path: Path | None, kind: str | None) -> str:
    if kind is not None and kind not in _FORMATS.values():
        hint = did_you_mean(kind, ("html", "md", "json")) or "Expected html, md or json."
        raise UsageError(f"--format {kind}: unknown.", hint)
    if path is None:
        if kind == "html":
            raise UsageError("--format html needs a file.", "Name one: --out report.html")
        return kind or "md"
    ending = _FORMATS.get(path.suffix.lower())
    if kind is None and ending is None:
        fact = f"--out {shown_path(path)}: expected a name that ends in .html, .md or .json."
        raise UsageError(fact, likely_ending(path, _ENDINGS))
    return kind or ending or ""


def _tell(found: "Report", path: Path) -> None:
    from assay.insight.reports.markdown import concerns
    from assay.writing.numbers import interval, number, percent

    data = found.as_json()
    summary = data["summary"]
    mean = f"mean reward {number(summary['mean'])} {interval(summary['ci95'])}".strip()
    say(
        " · ".join([counted(summary["rows"], "row"), mean, f"pass {percent(summary['pass_rate'])}"]),
        *(f"▲ {concern}" for concern in concerns(data)[:10]),
        *(f"note: {printable(note)}" for note in data["notes"]),
        f"wrote {shown_path(path)}",
    )


@command(
    modules=("assay.cli.views", "assay.insight.reports.showing"),
    epilog="""\b
Examples:
  assay show rewards.parquet --failed policy --limit 5
  assay show rewards.parquet --where 'reward < 0.5 and model == "elm"' --sort -reward""",
)
def show(
    result: ResultPath,
    *,
    failed: Annotated[list[str] | None, option("Rows on which this check fails. May be repeated.", "CHECK")] = None,
    passed: Annotated[list[str] | None, option("Rows on which this check passes. May be repeated.", "CHECK")] = None,
    where: Annotated[
        list[str] | None,
        option("Rows for which this SQL expression over the columns holds. May be repeated.", "SQL"),
    ] = None,
    sort: Annotated[list[str] | None, option("Columns to sort by; -NAME for the largest first.", "NAME,…")] = None,
    limit: Annotated[int, option("Rows to show.", "N")] = 10,
    random: Annotated[int | None, option("Choose the rows at random; the same seed chooses the same.", "SEED")] = None,
    row: Annotated[list[int] | None, option("Number of a row, from 0. May be repeated.", "N")] = None,
    columns: Annotated[
        list[str] | None,
        option(
            "Columns to show of each row. [default: those of the task, model, step, as far as they exist]", "NAME,…"
        ),
    ] = None,
    rollouts: Annotated[
        list[str] | None,
        option(
            "The rollouts that were scored, to show their texts. [default: the result's own, else those it names]",
            "FILE",
        ),
    ] = None,
    as_data: AsData = False,
) -> None:
    """Show rows of a result: key columns, reward, each check with its feedback, the gold, and the text with what matched."""
    from assay.cli.views import print_cards
    from assay.insight.reports.showing import show as look

    cards = look(
        result,
        failed=failed or (),
        passed=passed or (),
        where=where or (),
        sort=names(sort),
        limit=limit,
        random=random,
        row=row or (),
        columns=names(columns),
        rollouts=rollouts or None,
    )
    if as_data:
        write_data(json.dumps(cards.as_json(), allow_nan=False, default=str) + "\n")
    else:
        on_stdout(partial(print_cards, cards=cards), width=None)


@command(
    modules=("assay.cli.documents", "assay.insight.grouping"),
    epilog="""\b
Examples:
  assay groups rewards.parquet --k 1,4,8
  assay groups rewards.parquet --advantages grpo --out groups.parquet""",
)
def groups(
    result: ResultPath,
    *,
    by: Annotated[
        str | None,
        option(
            "Columns whose values are summarised and compared; none for all groups together. [default: model]",
            "NAME,…",
        ),
    ] = None,
    k: Annotated[
        str | None, option("Sizes of subsets, as in pass@k. [default: 1,4,8 as far as there are rows]", "N,…")
    ] = None,
    thresholds: Annotated[
        str | None, option("Also compute G-Pass@k: shares of k rows that must pass, such as 0.5,0.75.", "X,…")
    ] = None,
    vote: Annotated[str | None, option("Column with the answer of each row, for maj@k.", "COLUMN")] = None,
    unscored: Annotated[
        str, option("Rows without a reward: skip them, or count them as failures.", "skip|fail")
    ] = "skip",
    advantages: Annotated[
        str | None,
        option(
            "Also compute the advantage of each row in its group: grpo, dr_grpo, rloo, or as a trainer does: trl-grpo, "
            "verl-rloo, … (see docs/advantages.md).",
            "NAME",
        ),
    ] = None,
    advantage_option: Annotated[
        list[str] | None,
        option("An option of the trainer, by its own name: norm_adv_by_std_in_grpo=false. Repeatable.", "NAME=VALUE"),
    ] = None,
    length: LengthColumn = None,
    baseline: Annotated[str | None, option("Column with the reward of a greedy response, for ReMax.", "COLUMN")] = None,
    eps: Annotated[float, option("Added to the standard deviation of grpo.", "X")] = 1e-6,
    ci: Annotated[str, option("Intervals: by Student's t, or by 2,000 resamples of the tasks.", "t|bootstrap")] = "t",
    seed: Annotated[int, option("Seed of the resamples.", "N")] = 0,
    task: TaskNames = None,
    group: GroupNames = None,
    out: Annotated[
        str | None, option("Write the table of groups: .parquet, .jsonl or .csv.", "PATH", "--out", "-o")
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
) -> None:
    """Look at the rollouts of each task together: pass@k, best of k, intervals over tasks, models in pairs, advantages."""
    from assay._version import __version__
    from assay.cli.documents import print_groups
    from assay.cli.terminal import print_notes
    from assay.insight.grouping import groups as look
    from assay.writing.writers import ENDINGS, open_writer

    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix.lower() not in ENDINGS:
            fact = f"--out {out}: expected a name that ends in {', '.join(ENDINGS)}."
            raise UsageError(fact, likely_ending(path, ENDINGS))
        check_new(path, overwrite=overwrite)
    kinds: dict[str, Any] = {"unscored": unscored, "advantages": advantages, "ci": ci}
    with to_stderr().status("reading"):
        found = look(
            result,
            by=by if by in (None, "none") else names(by),
            k=None if k is None else _listed("--k", k, int, "numbers of rows", "1,4,8"),
            thresholds=_listed("--thresholds", thresholds, float, "shares from 0 to 1", "0.5,0.75"),
            vote=vote,
            advantage_options=dict(map(_advantage_option, advantage_option or ())),
            length=length,
            baseline=baseline,
            eps=eps,
            seed=seed,
            task=names(task),
            group=names(group),
            **kinds,
        )
    with open_writer(path, found.table.schema) as writer:
        if writer is not None:
            writer.write(found.table)
            writer.close({"assay_version": __version__, "command": command_line(), "rows": found.table.height})
    if as_data:
        write_data(_json_text(found.as_json()) + "\n")
    else:
        print_groups(to_stderr(), found)
        if advantages is not None and path is None:
            print_notes(to_stderr(), ["--out NAME.parquet writes the advantages"])


def _listed(flag: str, value: str | None, kind: type[_N], expected: str, example: str) -> list[_N]:
    try:
        return [] if value is None else [kind(item) for item in value.split(",")]
    except ValueError:
        raise UsageError(f"{flag} {value}: expected {expected}.", f"For example {flag} {example}") from None


def _advantage_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        fact = f"--advantage-option {text}: expected NAME=VALUE."
        raise UsageError(fact, "For example --advantage-option norm_adv_by_std_in_grpo=false")
    try:
        return name, json.loads(value)
    except ValueError:  # a word, as of scale_rewards
        return name, value


@command(
    modules=("assay.cli.documents", "assay.insight.wires"),
    epilog="""\b
Examples:
  assay tripwire rewards.parquet
  assay tripwire rewards.parquet --limits limits.yaml --warn-only""",
)
def tripwire(
    result: ResultPath,
    *,
    by: Annotated[str, option("Column with the training step.", "COLUMN")] = "step",
    length: LengthColumn = None,
    limits: Annotated[
        str | None, option("YAML, JSON or TOML: for each wire a number, several by name, or false.", "FILE")
    ] = None,
    warn_only: Annotated[bool, option("End with exit code 0 in spite of alerts.", None, "--warn-only")] = False,
    out: Annotated[str | None, option("Also write the alerts: .html, .md or .json.", "PATH", "--out", "-o")] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
) -> None:
    """Look for steps at which rewards need a look: all 0 or 1, flat groups, errors, length, drift, jumps, stuck checks."""
    from assay.cli.documents import alerts_document
    from assay.insight.results import open_result
    from assay.insight.wires import Tripwires

    path = _checked_out(out, overwrite=overwrite)
    wires = Tripwires(limits, by=by, length=length)
    opened = open_result(result)
    if by not in opened.schema:
        hint = did_you_mean(by, opened.schema) or f"Columns: {listed(list(opened.schema))}"
        raise InputError(f"{result}: no column `{by}` with the step of each row.", hint)
    alerts = wires.update(opened)
    data = {
        "insight": 1,
        "by": by,
        "steps": wires.steps,
        "alerts": [alert.as_json() for alert in alerts],
        "limits": wires.limits,
        "notes": list(wires.notes),
    }
    _deliver(data, alerts_document(alerts, wires.steps, by, wires.notes), out=path, as_data=as_data)
    if alerts and not warn_only:
        raise typer.Exit(FailedRunError.exit_code)


@command(
    modules=("assay.cli.documents", "assay.insight.sealing"),
    epilog="""\b
Examples:
  assay verify rewards.parquet
  assay verify rewards.parquet --sample all --root 9f0c… --rollouts moved.parquet""",
)
def verify(
    result: ResultPath,
    *,
    rollouts: Annotated[
        list[str] | None,
        option("The rollouts, if they are elsewhere now; may be repeated, in the order of the run.", "PATH"),
    ] = None,
    tasks: Annotated[str | None, option("The task table, if it is elsewhere now.", "PATH")] = None,
    sample: Annotated[str, option("Rows to score again: a number, a percentage, or all.", "N|P%|all")] = "10000",
    seed: Annotated[int, option("Seed of the sample.", "N")] = 0,
    root: Annotated[
        str | None, option("The root that the content has to have, as assay score printed it.", "HEX")
    ] = None,
    any_version: Annotated[
        bool, option("Go on if other versions of Assay or of its libraries made the result.", None, "--any-version")
    ] = False,
    modules: Annotated[
        list[str] | None, option("Python module with the code that scored; may be repeated.", "MODULE", "--import")
    ] = None,
    checks: Annotated[
        list[str] | None, option("Check class that the result was made with; may be repeated.", "MODULE:CLASS")
    ] = None,
    out: Annotated[str | None, option("Also write the findings: .html, .md or .json.", "PATH", "--out", "-o")] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
) -> None:
    """Check a result against its footer: digests, inputs, verifiers, and rows that are scored again. Exits with 3 if anything differs."""
    from assay.cli.documents import verification_document
    from assay.cli.modules import import_checks, import_modules
    from assay.insight import sealing

    path = _checked_out(out, overwrite=overwrite)
    options: dict[str, Any] = {"tasks": tasks, "sample": sample, "seed": seed, "root": root, "any_version": any_version}
    with only_data(), to_stderr().status("verifying"):
        import_modules(modules)
        found = sealing.verify(result, rollouts=rollouts or None, checks=import_checks(checks), **options)
    _deliver(found.as_json(), verification_document(found), out=path, as_data=as_data)
    if not found.intact:
        raise typer.Exit(FailedRunError.exit_code)


@command(
    {DiffLimits: ()},
    modules=("assay.cli.documents", "assay.insight.whatifs"),
    epilog="""\b
Examples:
  assay whatif rewards.parquet --set policy=2 --drop curt --rank model
  assay whatif rewards.parquet --set robot.required=true --threshold 0.9 --out new.parquet --max-flips 1%""",
)
def whatif(
    result: ResultPath,
    *,
    values: Annotated[
        list[str] | None,
        option(
            "Weight of a check or of a rubric's member; NAME.required=true or false. May be repeated.",
            "NAME=WEIGHT",
            "--set",
        ),
    ] = None,
    drop: Annotated[list[str] | None, option("Leave a check out; may be repeated.", "NAME")] = None,
    threshold: Annotated[
        float | None, option("Minimum reward to pass, of each verifier or of the rubric.", "REWARD")
    ] = None,
    rank: Annotated[str | None, option("Column of the models: how they rank, and what reverses two.", "NAME")] = None,
    by: ByNames = None,
    task: TaskNames = None,
    examples: Annotated[int, option("Rows that flip to show.", "N")] = 3,
    out: Annotated[
        str | None,
        option("Write the rewards as .parquet, or what is shown as .html, .md or .json.", "PATH", "--out", "-o"),
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **limits: Any,
) -> None:
    """Try other weights, thresholds and required checks on a result, without its rollouts."""
    from assay.cli.documents import whatif_document
    from assay.insight import whatifs

    path = _checked_out(out, overwrite=overwrite, others=(".parquet",))
    settle(DiffLimits, limits, "whatif")
    weights, required = _weights(values or [])
    change: dict[str, Any] = {"weights": weights, "required": required, "drop": drop or ()}
    change["pass_threshold"] = threshold
    columns: dict[str, Any] = {"by": names("model" if by is None else by), "task": names(task)}
    with only_data(), to_stderr().status("computing"):
        found = whatifs.whatif(result, **change, **columns, rank=rank, examples=examples).within(**limits)
        if path is not None and path.suffix.lower() == ".parquet":
            if path.exists() and Path(result).exists() and path.resolve() == Path(result).resolve():
                raise UsageError(f"--out {path}: is the result itself.", "Name another file.")
            whatifs.write_rewards(result, path, **change, command=command_line())
            path = None
    _deliver(found.as_json(), whatif_document(found), out=path, as_data=as_data)
    if found.diff.exceeds:
        raise typer.Exit(FailedRunError.exit_code)


def _weights(values: list[str]) -> tuple[dict[str, float], dict[str, bool]]:
    weights: dict[str, float] = {}
    required: dict[str, bool] = {}
    for value in values:
        name, equals, given = value.rpartition("=")
        word = given.strip().lower()
        if name.endswith(".required") and word in ("true", "false"):
            required[name.removesuffix(".required")] = word == "true"
            continue
        try:
            weights[name] = float(given)
        except ValueError:
            equals = ""
        if not (equals and name):
            hint = "For example --set policy=2 or --set robot.required=true"
            raise UsageError(f"--set {value}: expected NAME=WEIGHT or NAME.required=true.", hint)
    return weights, required


@command(
    {
        DiffLimits: (),
        FileOptions: (
            *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "any_role"),
            *("checks", "modules", "function_timeout", "regex_timeout"),
        ),
    },
    modules=("assay.cli.documents", "assay.insight.diffing"),
    epilog="""\b
Examples:
  assay diff before.parquet after.parquet --max-flips 1%
  assay diff rollouts.jsonl --before old.yaml --after new.yaml
  assay diff rewards.parquet --rescore""",
)
def diff(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULTS", help="Two results; with --before and --after, rollouts; with --rescore, one result."
        ),
    ],
    *,
    before: Annotated[list[str] | None, option("Verifier to score the rollouts with; may be repeated.", "FILE")] = None,
    after: Annotated[list[str] | None, option("Verifier to compare with it; may be repeated.", "FILE")] = None,
    rescore: Annotated[
        bool, option("Compare a result with what this version of Assay makes of its inputs.", None, "--rescore")
    ] = False,
    rollouts: Annotated[
        list[str] | None,
        option("With --rescore: the rollouts, if they are elsewhere now; may be repeated.", "PATH"),
    ] = None,
    on: Annotated[str | None, option("Columns that tell a rollout. [default: the order of the rows]", "NAME,…")] = None,
    allow_missing: Annotated[
        str | None, option("With --on: leave out up to N (or P%) rows on one side only.", "N|P%")
    ] = None,
    by: ByNames = None,
    task: TaskNames = None,
    examples: Annotated[int, option("Rows that flipped to show.", "N")] = 10,
    out: Annotated[str | None, option("Also write the diff: .html, .md or .json.", "PATH", "--out", "-o")] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Compare two rewards of the same rollouts: which rows flipped, why, and what that says of new tasks."""
    from assay.cli.documents import diff_document
    from assay.cli.modules import import_checks, import_modules
    from assay.insight import diffing

    path = _checked_out(out, overwrite=overwrite)
    limits: Any = settle(DiffLimits, {name: options.pop(name) for name in options_of(DiffLimits)}, "diff")
    modules, known = options.pop("modules"), options_of(FileOptions)
    scoring = {name: value for name, value in options.items() if value not in (None, [], {}, known[name][1].default)}
    common: dict[str, Any] = {
        "by": names("model" if by is None else by),
        "examples": examples,
        "task": names(task),
    }
    if bool(before) != bool(after):
        missing = "--before" if after else "--after"
        raise UsageError(f"{missing}: is missing.", "Rollouts are scored with both: --before OLD.yaml --after NEW.yaml")
    if rescore and (before or on is not None or len(sources) != 1):
        raise UsageError("--rescore takes one result.", "For example: assay diff rewards.parquet --rescore")
    if rollouts and not rescore:
        raise UsageError("--rollouts applies to --rescore.", "Name rollouts as arguments, with --before and --after.")
    if not (rescore or before):
        _check_results(sources, scoring)
    with only_data(), to_stderr().status("comparing"):
        import_modules(modules)
        if "checks" in scoring:
            scoring["checks"] = import_checks(scoring["checks"])
        if rescore:
            found = diffing.rescored(sources[0], rollouts=rollouts or None, **common, **scoring)
        else:
            one, other = (before, after) if before else sources
            common |= {"on": names(on), "allow_missing": allow_missing}
            found = diffing.diff(one, other, rollouts=sources if before else None, **common, **scoring)
        found = found.within(**limits)
    _deliver(found.as_json(), diff_document(found), out=path, as_data=as_data)
    if found.exceeds:
        raise typer.Exit(FailedRunError.exit_code)


def _check_results(results: list[str], scoring: dict[str, Any]) -> None:
    if len(results) != 2:  # noqa: PLR2004
        hint = "For example: assay diff before.parquet after.parquet\nOr: assay diff rollouts.jsonl --before old.yaml --after new.yaml"
        raise UsageError(
            f"Two results are compared, and there {'is' if len(results) == 1 else 'are'} {len(results)}.", hint
        )
    if scoring:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in scoring)
        raise UsageError(
            f"{flags}: results are not scored again.", "Name verifiers: --before OLD.yaml --after NEW.yaml"
        )


@command(
    {
        FileOptions: (
            *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "max_ratio"),
            *("max_uncompressed", "verify_checksums", "skip_bad_files", "any_role", "verifier_name", "pass_threshold"),
            *("checks", "modules", "function_timeout", "regex_timeout", "max_concurrent"),
        )
    },
    modules=("assay.cli.documents", "assay.insight.auditing"),
    epilog="""\b
Examples:
  assay audit verifier.yaml rollouts.jsonl
  assay audit verifier.yaml rollouts.jsonl --max-passing 0 --max-free 0.2 --min-control 90%""",
)
def audit(
    spec: Annotated[str, typer.Argument(help="A verifier file; - for the functions that rows name.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    sample: Annotated[int, option("Probe at most N tasks, evenly spaced.", "N")] = 1000,
    probe: Annotated[
        str | None, option("JSONL with more probes: probe, class, completion, maybe task_id.", "FILE")
    ] = None,
    task: TaskNames = None,
    max_passing: Annotated[
        str | None, option("Exit with 3 if a hack passes on more than N (or P%) of its tasks.", "N|P%")
    ] = None,
    max_free: Annotated[float | None, option("Exit with 3 if a free probe earns more than X on average.", "X")] = None,
    min_control: Annotated[
        str | None, option("Exit with 3 if a control passes on less than P% of its tasks.", "P%")
    ] = None,
    out: Annotated[str | None, option("Also write the audit: .html, .md or .json.", "PATH", "--out", "-o")] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Question a verifier: what empty, copied, disguised and swapped texts earn on each task, and which check stops them."""
    from assay.cli.documents import audit_document
    from assay.cli.modules import import_checks, import_modules
    from assay.insight.auditing import audit as question

    path = _checked_out(out, overwrite=overwrite)
    with only_data(), to_stderr().status("auditing"):
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options["checks"])
        result = question(
            None if spec == "-" else spec,
            rollouts,
            sample=sample,
            probes=probe or (),
            task=names(task),
            max_passing=max_passing,
            max_free=max_free,
            min_control=min_control,
            **options,
        )
    _deliver(result.as_json(), audit_document(result), out=path, as_data=as_data)
    if result.exceeded:
        raise typer.Exit(FailedRunError.exit_code)
