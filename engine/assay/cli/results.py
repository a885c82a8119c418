"""Commands about results: what rewards say, how two of them differ, and whether they can be trusted."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import AsData, Overwrite, check_new, command, command_line, option, say, to_stderr, write_file
from assay.cli.app import show as on_stdout
from assay.errors import (
    FailedRunError,
    InputError,
    UsageError,
    counted,
    did_you_mean,
    likely_ending,
    listed,
    shown_path,
)
from assay.options import (
    AuditOptions,
    CalibrateOptions,
    DiffLimits,
    DiffOptions,
    FileOptions,
    ForgeOptions,
    GroupsLimits,
    GroupsOptions,
    PageOptions,
    ReportOptions,
    ShowOptions,
    SuspectsOptions,
    TripwireOptions,
    VerifyOptions,
    WhatIfOptions,
    options_of,
    settle,
)
from assay.system.documents import FORMATS
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.insight.diffing import Diff
    from assay.insight.results import Result
    from assay.writing.documents import Document

ResultPath = Annotated[
    str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
]
AlsoWrite = Annotated[str | None, option("Also write what is shown: .html, .md or .json.", "PATH", "--out", "-o")]

_ENDINGS = (".html", ".md", ".json")
_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


def _checked_out(
    out: str | None, endings: Sequence[str] = _ENDINGS, *, option: str = "--out", overwrite: bool
) -> Path | None:
    if out is None:
        return None
    path = Path(out)
    if path.suffix.lower() not in endings:
        raise UsageError(
            f"{option} {shown_path(out)}: expected a name that ends in {', '.join(endings)}.",
            likely_ending(out, endings),
        )
    check_new(path, overwrite=overwrite)
    return path


def _json_text(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for char in () if text.isprintable() else {*text}:
        if not char.isprintable():
            text = text.replace(char, json.dumps(char)[1:-1])
    return text


def deliver(
    data: dict[str, Any], document: "Document", *, out: Path | None, as_data: bool, failed: bool = False
) -> None:
    """Print an answer, as a document or as JSON, and write it; exit with 3 if it ``failed``."""
    as_json = _json_text(data)
    if out is not None:
        suffix = out.suffix.lower()
        text = document.html() if suffix == ".html" else document.markdown() if suffix == ".md" else f"{as_json}\n"
        write_file(out, text)
    if as_data:
        write_data(f"{as_json}\n")
    else:
        from assay.cli.terminal import print_document

        print_document(to_stderr(), document)
    if failed:
        raise typer.Exit(FailedRunError.exit_code)


@command(
    {ReportOptions: (), PageOptions: ()},
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
        str | None,
        option(
            "Write .html, .md or .json. [default: Markdown on stdout; at a terminal, what matters most]",
            "PATH",
            "--out",
            "-o",
        ),
    ] = None,
    kind: Annotated[
        str | None, option("What to write. [default: as --out ends, else md]", "html|md|json", "--format")
    ] = None,
    as_data: Annotated[bool, option("As --format json.", None, "--json")] = False,
    overwrite: Overwrite = False,
    **options: Any,
) -> None:
    """Report on rewards: what each check is worth, which say the same, by model, task and step, and rows worth reading."""
    from assay.cli.terminal import print_document
    from assay.insight.reports.document import brief_document
    from assay.insight.reports.reporting import report as look

    path = None if out is None else Path(out)
    chosen = _format(path, "json" if as_data else kind)
    if path is not None:
        check_new(path, overwrite=overwrite)
    page = _taken(PageOptions, options)
    with to_stderr().status("reading"):
        found = look(result, **options)
        data = found.as_json()
        if chosen == "json":
            written = _json_text(data) + "\n"
        elif chosen:
            written = found.html(**page) if chosen == "html" else found.markdown()
    if not chosen:
        on_stdout(partial(print_document, document=brief_document(data, found.shown)))
    elif path is None:
        write_data(written)
    else:
        write_file(path, written)
        print_document(to_stderr(), brief_document(data, found.shown, tables=False))
        say(f"wrote {shown_path(path)}")


def _format(path: Path | None, kind: str | None) -> str:
    """Return what to write; ``""`` for what a terminal shows."""
    if kind is not None and kind not in _FORMATS.values():
        hint = did_you_mean(kind, ("html", "md", "json")) or "Expected html, md or json."
        raise UsageError(f"--format {kind}: unknown.", hint)
    if path is None:
        if kind == "html":
            raise UsageError("--format html needs a file.", "Name one: --out report.html")
        return kind or ("" if sys.stdout is not None and sys.stdout.isatty() else "md")
    ending = _FORMATS.get(path.suffix.lower())
    if kind is None and ending is None:
        fact = f"--out {shown_path(path)}: expected a name that ends in .html, .md or .json."
        raise UsageError(fact, likely_ending(path, _ENDINGS))
    return kind or ending or ""


@command(
    {ShowOptions: ()},
    modules=("assay.cli.views", "assay.insight.reports.showing"),
    epilog="""\b
Examples:
  assay show rewards.parquet --failed policy --limit 5
  assay show rewards.parquet --where 'reward < 0.5 and model == "elm"' --sort -reward""",
)
def show(
    result: ResultPath,
    *,
    check: Annotated[
        str | None, option("Show the evidence of this check; by default, of those that fail.", "CHECK", "--check")
    ] = None,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Show rows of a result: key columns, reward, each check with feedback, and the text with what it read and missed."""
    from assay.cli.views import print_cards
    from assay.insight.reports.showing import show as look
    from assay.insight.results import open_result

    name = open_result(result).check(check).name if check else ""
    cards = look(result, **options)
    if as_data:
        write_data(json.dumps(cards.as_json(), allow_nan=False, default=str) + "\n")
    else:
        on_stdout(partial(print_cards, cards=cards, check=name), width=None)


@command(
    {GroupsOptions: (), GroupsLimits: ()},
    modules=("assay.insight.grouping",),
    epilog="""\b
Examples:
  assay groups rewards.parquet --k 1,4,8
  assay groups rewards.parquet --integrity --max-mixed 0 --max-duplicates 20%
  assay groups rewards.parquet --advantages grpo --out groups.parquet""",
)
def groups(
    result: ResultPath,
    *,
    out: Annotated[
        str | None, option("Write the table of groups: .parquet, .jsonl or .csv.", "PATH", "--out", "-o")
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Look at the rollouts of each task together: pass@k, best of k, intervals over tasks, models in pairs, advantages."""
    from assay._version import __version__
    from assay.cli.terminal import print_notes
    from assay.insight.grouping import groups as look
    from assay.writing.writers import ENDINGS, open_writer

    path = _checked_out(out, ENDINGS, overwrite=overwrite)
    limits = settle(GroupsLimits, _taken(GroupsLimits, options), "groups")
    options["integrity"] |= any(limit is not None for limit in limits.values())
    with to_stderr().status("reading"):
        found = look(result, **options).within(**limits)
    table = found.whole_table
    with open_writer(path, table.schema) as writer:
        if writer is not None:
            writer.write(table)
            writer.close({"assay_version": __version__, "command": command_line(), "rows": table.height})
    deliver(found.as_json(), found.document(), out=None, as_data=as_data, failed=found.exceeds)
    if options["advantages"] is not None and path is None and not as_data:
        print_notes(to_stderr(), ["--out NAME.parquet writes the advantages"])


@command(
    {SuspectsOptions: ()},
    modules=("assay.insight.golds.suspecting",),
    epilog="""\b
Examples:
  assay suspects rewards.parquet --answer right
  assay suspects rewards.parquet --answer said --limit 20 --json""",
)
def suspects(
    result: ResultPath,
    *,
    answer: Annotated[
        str, option("Column with what each row answers, or a check whose steps read it.", "COLUMN|CHECK", "--answer")
    ],
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """List golds to read first: tasks on which models agree on an answer that fails, more than they would by chance."""
    from assay.insight.golds.suspecting import suspects as look

    path = _checked_out(out, overwrite=overwrite)
    with only_data(), to_stderr().status("reading"):
        found = look(result, answer, **options)
    deliver(found.as_json(), found.document(), out=path, as_data=as_data)


@command(
    {CalibrateOptions: ()},
    modules=("assay.insight.calibration.calibrating",),
    epilog="""\b
Examples:
  assay calibrate rewards.parquet --next 100 --out next.csv
  assay calibrate rewards.parquet --labels next.csv --suggest --min-precision 0.9""",
)
def calibrate(
    result: ResultPath,
    *,
    labels: Annotated[
        str | None,
        option("Table with row (or --on) and label; label/CHECK judges a check.", "FILE", "--labels"),
    ] = None,
    out: Annotated[
        str | None,
        option("Write the rows to label next as .csv, or what is shown as .html, .md or .json.", "PATH", "--out", "-o"),
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Estimate from labels of few rows how often verdicts are right, with intervals, and list the rows to label next."""
    from assay.insight.calibration.calibrating import calibrate as estimate
    from assay.writing.writers import open_writer

    path = _checked_out(out, (".csv", *_ENDINGS), overwrite=overwrite)
    if labels is None and not options["next"]:
        raise UsageError("calibrate: no labels.", "Name them with --labels FILE, or list rows to label with --next 100")
    is_table = path is not None and path.suffix.lower() == ".csv"
    if is_table and not options["next"]:
        raise UsageError(f"--out {out}: a table of rows to label next, of which none are listed.", "Add --next 50")
    with only_data(), to_stderr().status("reading"):
        found = estimate(result, labels, **options)
    table = found.next_table
    with open_writer(path if is_table else None, table.schema) as writer:
        if writer is not None:
            writer.write(table)
    deliver(found.as_json(), found.document(), out=None if is_table else path, as_data=as_data)


@command(
    {TripwireOptions: ()},
    modules=("assay.insight.wires",),
    epilog="""\b
Examples:
  assay tripwire rewards.parquet
  assay tripwire rewards.parquet --limits limits.yaml --warn-only""",
)
def tripwire(
    result: ResultPath,
    *,
    warn_only: Annotated[bool, option("End with exit code 0 in spite of alerts.", None, "--warn-only")] = False,
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Look for steps at which rewards need a look: all 0 or 1, flat groups, errors, length, drift, jumps, stuck checks."""
    from assay.insight.documents import alerts_document
    from assay.insight.results import open_result
    from assay.insight.wires import Tripwires

    path = _checked_out(out, overwrite=overwrite)
    wires, by = Tripwires(**options), options["by"]
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
    failed = bool(alerts) and not warn_only
    deliver(data, alerts_document(data), out=path, as_data=as_data, failed=failed)


@command(
    {VerifyOptions: ()},
    modules=("assay.insight.sealing",),
    epilog="""\b
Examples:
  assay verify rewards.parquet
  assay verify rewards.parquet --sample all --root 9f0c… --rollouts moved.parquet""",
)
def verify(
    result: ResultPath,
    *,
    modules: Annotated[
        list[str] | None, option("Python module with the code that scored; may be repeated.", "MODULE", "--import")
    ] = None,
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Check a result against its footer: digests, inputs, verifiers, and rows that are scored again. Exits with 3 if anything differs."""
    from assay.cli.modules import import_checks, import_modules
    from assay.insight import sealing

    path = _checked_out(out, overwrite=overwrite)
    with only_data(), to_stderr().status("verifying"):
        import_modules(modules)
        options["checks"] = import_checks(options["checks"])
        found = sealing.verify(result, **options)
    deliver(found.as_json(), found.document(), out=path, as_data=as_data, failed=not found.intact)


@command(
    {ReportOptions: ("rollouts",)},
    modules=("assay.insight.viewer.server",),
    epilog="""\b
Examples:
  assay view rewards.parquet
  assay view before.parquet after.parquet --port 8080""",
)
def view(
    results: Annotated[
        list[str],
        typer.Argument(
            help="Rewards that assay score wrote: parquet files, or folders of parts; the first is compared with the others."
        ),
    ],
    *,
    port: Annotated[int, option("Port to listen on; 0 for a free one.", min=0, max=65535)] = 0,
    **options: Any,
) -> None:
    """Look at results in a browser: findings, charts, and every row with what its checks read. Serves this machine only, until Ctrl-C."""
    from assay.insight.viewer import server
    from assay.writing.progress import progress

    def tell(address: str) -> None:
        write_data(f"{address}\n")

    try:
        server.view(results, port=port, tell=tell, progress=partial(progress, "reading"), **options)
    except KeyboardInterrupt:  # the end that is meant
        raise typer.Exit(130) from None


@command(
    {WhatIfOptions: (), DiffLimits: ()},
    modules=("assay.insight.whatifs",),
    epilog="""\b
Examples:
  assay whatif rewards.parquet --set policy=2 --drop curt --rank model
  assay whatif rewards.parquet --set robot.required=true --threshold 0.9 --out new.parquet --max-flips 1%""",
)
def whatif(
    result: ResultPath,
    *,
    out: Annotated[
        str | None,
        option("Write the rewards as .parquet, or what is shown as .html, .md or .json.", "PATH", "--out", "-o"),
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Try other weights, thresholds and required checks on a result, without its rollouts."""
    from assay.insight import whatifs

    path = _checked_out(out, (".parquet", *_ENDINGS), overwrite=overwrite)
    limits = settle(DiffLimits, _taken(DiffLimits, options), "whatif")
    options["weights"], options["required"] = _weights(options["weights"] or [])
    with only_data(), to_stderr().status("computing"):
        found = whatifs.whatif(result, **options).within(**limits)
        if path is not None and path.suffix.lower() == ".parquet":
            if path.exists() and Path(result).exists() and path.resolve() == Path(result).resolve():
                raise UsageError(f"--out {path}: is the result itself.", "Name another file.")
            change = {name: options[name] for name in ("weights", "required", "drop", "pass_threshold")}
            whatifs.write_rewards(result, path, **change, command=command_line())
            path = None
    deliver(found.as_json(), found.document(), out=path, as_data=as_data, failed=found.diff.exceeds)


def _taken(kind: Any, options: dict[str, Any]) -> dict[str, Any]:
    names = [name for name, (_, option) in options_of(kind).items() if option.cli is not False]
    return {name: value for name in names if (value := options.pop(name)) is not None}


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
        DiffOptions: (),
        DiffLimits: (),
        PageOptions: (),
        FileOptions: (
            *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "any_role"),
            *("checks", "modules", "function_timeout", "regex_timeout"),
        ),
    },
    modules=("assay.insight.diffing",),
    epilog="""\b
Examples:
  assay diff before.parquet after.parquet --max-flips 1%
  assay diff rollouts.jsonl --before old.yaml --after new.yaml
  assay diff refund@1 refund@2 --rollouts rollouts.jsonl
  assay diff rewards.parquet --rescore""",
)
def diff(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULTS",
            help="Two results; two verifiers, with --rollouts; with --before and --after, rollouts; with --rescore, one result.",
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
        option(
            "Rollouts to score with two verifiers; with --rescore those of the result, if they are elsewhere now. May be repeated.",
            "PATH",
        ),
    ] = None,
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Compare two results of the same rollouts: which rows flipped, why, and what that says of new tasks."""
    from assay.cli.modules import import_checks, import_modules
    from assay.insight import diffing

    path = _checked_out(out, overwrite=overwrite)
    limits, columns = settle(DiffLimits, _taken(DiffLimits, options), "diff"), _taken(DiffOptions, options)
    page = settle(PageOptions, _taken(PageOptions, options), "diff")
    modules, known = options.pop("modules"), options_of(FileOptions)
    scoring = {name: value for name, value in options.items() if value not in (None, [], {}, known[name][1].default)}
    if rollouts and not (rescore or before or after or _has_result(sources)):  # the other order of the same
        if len(sources) != 2:  # noqa: PLR2004
            hint = "For example: assay diff refund@1 refund@2 --rollouts rollouts.jsonl"
            raise UsageError(f"--rollouts: {counted(len(sources), 'verifier')} named, and two are compared.", hint)
        before, after, sources, rollouts = sources[:1], sources[1:], rollouts, None
    if bool(before) != bool(after):
        missing = "--before" if after else "--after"
        raise UsageError(f"{missing}: is missing.", "Rollouts are scored with both: --before OLD.yaml --after NEW.yaml")
    if rescore and (before or "on" in columns or len(sources) != 1):
        raise UsageError("--rescore takes one result.", "For example: assay diff rewards.parquet --rescore")
    if rollouts and not rescore:
        fact = "--rollouts applies to --rescore, and to two verifiers."
        raise UsageError(fact, "Name rollouts as arguments, with --before and --after.")
    if not (rescore or before):
        _check_results(sources, scoring)
    with only_data(), to_stderr().status("comparing"):
        import_modules(modules)
        if "checks" in scoring:
            scoring["checks"] = import_checks(scoring["checks"])
        if rescore:
            columns.pop("allow_missing", None)
            names = [sources[0], f"{sources[0]}, scored again"]
            comparison = diffing.comparing_again(sources[0], rollouts=rollouts or None, **columns, **scoring)
        else:
            one, other = (before, after) if before else sources
            names = [", ".join(before or ()), ", ".join(after or ())] if before else sources
            comparison = diffing.comparing(one, other, rollouts=sources if before else None, **columns, **scoring)
        with comparison as (compared, second):
            found = compared.within(**limits)
            if path is not None and path.suffix.lower() == ".html":
                write_file(path, _page_of_two(names, found, second, page))
                path = None
    deliver(found.as_json(), found.document(), out=path, as_data=as_data, failed=found.exceeds)


def _page_of_two(names: list[str], found: "Diff", after: "Result", page: PageOptions) -> str:
    from assay.insight.reports.offline import page_in_file
    from assay.insight.reports.reporting import report as look

    overview = look(after, examples=0).as_json()
    return page_in_file(after, overview, compare=found.as_json(), results=names, max_size=int(page["max_size"]))


def _has_result(sources: list[str]) -> bool:
    from assay.spec.named import is_registered

    files = (Path(name) for name in sources if not is_registered(name))
    return any(file.is_dir() or file.suffix.lower() == ".parquet" for file in files)


def _check_results(results: list[str], scoring: dict[str, Any]) -> None:
    from assay.spec.named import is_registered

    if all(Path(name).suffix.lower() in FORMATS or is_registered(name) for name in results):
        fact = f"{', '.join(map(shown_path, results))}: verifiers are compared on rollouts, and there are none."
        raise UsageError(fact, "Name them: --rollouts PATH")
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
        AuditOptions: (),
        FileOptions: (
            *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "max_ratio"),
            *("max_uncompressed", "verify_checksums", "skip_bad_files", "any_role", "verifier_name", "pass_threshold"),
            *("checks", "modules", "function_timeout", "regex_timeout", "max_concurrent"),
        ),
    },
    modules=("assay.insight.auditing",),
    epilog="""\b
Examples:
  assay audit verifier.yaml rollouts.jsonl
  assay audit verifier.yaml rollouts.jsonl --max-passing 0 --max-free 0.2 --min-control 90%""",
)
def audit(
    spec: Annotated[str, typer.Argument(help="A verifier file; - for the functions that rows name.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Probe a verifier: what empty, copied, disguised and swapped texts earn on each task, and which check stops them."""
    from assay.cli.modules import import_checks, import_modules
    from assay.insight.auditing import audit as question

    path = _checked_out(out, overwrite=overwrite)
    with only_data(), to_stderr().status("auditing"):
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options["checks"])
        result = question(None if spec == "-" else spec, rollouts, **options)
    deliver(result.as_json(), result.document(), out=path, as_data=as_data, failed=bool(result.exceeded))


@command(
    {
        ForgeOptions: (),
        FileOptions: (
            *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "any_role"),
            *("checks", "modules", "function_timeout", "regex_timeout"),
        ),
    },
    modules=("assay.insight.forging.forging",),
    epilog="""\b
Examples:
  assay forge verifier.yaml --golds tasks.jsonl
  assay forge verifier.yaml --rollouts rollouts.jsonl --skip bold,code --max-accepted 0 --tests-out tests.yaml""",
)
def forge(
    specs: Annotated[list[str], typer.Argument(help="Verifiers: files, or registered names.")],
    *,
    golds: Annotated[str | None, option("Rows with the golds, a task each.", "FILE")] = None,
    rollouts: Annotated[
        list[str] | None, option("Rollouts to take the golds from, as in score; may be repeated.", "PATH")
    ] = None,
    tests_out: Annotated[
        str | None,
        option("Write the smallest wrong case of each form, with what should be, as tests: of the spec.", "PATH"),
    ] = None,
    out: AlsoWrite = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Forge answers from golds: forms that each check has to take, and near misses that it has to refuse, and score them."""
    from assay.cli.modules import import_checks, import_modules
    from assay.insight.forging.forging import forge as look
    from assay.spec.importers.files import yaml_text

    path = _checked_out(out, overwrite=overwrite)
    tests = _checked_out(tests_out, (".yaml", ".yml", ".json"), option="--tests-out", overwrite=overwrite)
    if tests is not None and len(specs) > 1:
        raise UsageError("--tests-out takes one spec: tests are of one.", "Name one spec.")
    with only_data(), to_stderr().status("forging"):
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options["checks"])
        found = look(specs, golds, rollouts=rollouts or None, **options)
    if tests is not None:
        cases = {"tests": [*found.tests]}
        write_file(tests, f"{_json_text(cases)}\n" if tests.suffix.lower() == ".json" else yaml_text(cases))
    deliver(found.as_json(), found.document(), out=path, as_data=as_data, failed=bool(found.exceeded))
