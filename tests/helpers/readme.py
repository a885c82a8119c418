"""Write the generated parts of README.md and docs/ anew: ``make readme``.

Tables of checks, presets and commands and the JSON Schema in specs/ come from the code, printed output from running the page, the tables of the benchmarks
and of the stages from what ``make bench`` measured.
"""

import contextlib
import inspect
import re
import tempfile
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer.main
from charts import CHARTS, as_svg, rate, rounded
from notebooks import NOTEBOOKS, written
from pages import DOCS, PAGES, ROOT, comparable, name_of, run_page

from assay.cli.app import argument_of
from assay.cli.main import app
from assay.insight.training.estimators import ESTIMATORS
from assay.insight.training.filtering import FILTERS
from assay.loading.presets.preset import as_markdown as presets_as_markdown
from assay.loading.presets.preset import presets
from assay.options import PANELS
from assay.spec.graders_listing import as_markdown as graders_as_markdown
from assay.spec.json_schema import schema_text
from assay.spec.listing import as_markdown

MEASURED = ROOT / "benchmarks" / "measured.md"
"""The table that ``make bench`` writes, and that the pages show."""

SCHEMA = ROOT / "specs" / "assay.schema.json"
"""The JSON Schema that samples name for editors, and that the wheel and the site have."""

STAGES = ROOT / "benchmarks" / "stages.md"

TABLES = {
    "docs/performance/files.md": (
        "ten checks, file to file",
        "ten checks, JSON lines",
        "20 drawn specs",
        "peak of memory",
        "ten checks, 250,000 rows",
        "a regex check",
        "ten specs",
        "from start to end",
        "a result of",
    ),
    "docs/performance/packages.md": ("similarity", "tool calls", "instructions", "math", "JSON"),
    "docs/performance/training.md": ("a batch of", "1,000 requests"),
    "docs/performance/loops.md": ("",),
}
"""The pages with parts of the table: how the names of what they show begin. A line is on the first page that takes it."""

SPEED = {
    "Assay's plan": "Assay, with the reason of each failure",
    "a plain loop, with reasons": "a plain Python loop, with reasons",
    "verifiers": "a rubric of verifiers",
    "inspect_ai": "scorers of Inspect",
    "promptfoo": "assertions of promptfoo",
}
"""The contenders of the benchmark table that README.md shows, and what it calls them: how their names begin, the scores of ten checks in memory."""

BESIDE_GOLDS = ("assay", "a plain loop", "a plain loop with reasons")
"""The contenders of ``bench_golds``, in the order of its lines."""

COMMANDS = tuple(typer.main.get_command(app).list_commands(None))
"""The commands, in the order of the help."""


def part(text: str, name: str) -> str:
    """What a page has between the marks of a generated part."""
    return text.partition(f"<!-- {name}:begin -->\n")[2].partition(f"<!-- {name}:end -->")[0]


def replaced(text: str, name: str, table: str) -> str:
    """A page with another text between the marks of a generated part."""
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    before, _, rest = text.partition(begin)
    return before + begin + table + end + rest.partition(end)[2]


def few_of_benchmarks() -> str:
    """The lines of the benchmark table that README.md shows: rows a second."""
    cold = [line for line in lines_of_benchmarks() if line["state"] != "warm"]
    lines = [(shown, _line_of(cold, "ten checks, texts in memory", name)) for name, shown in SPEED.items()]
    ours = rate(lines[0][1])
    rows = [[shown, rounded(rate(line)), f"{rounded(ours / rate(line))} ×"] for shown, line in lines]
    *_, day = re.findall(r"\d+-\d\d-\d\d", lines[0][1]["run"])
    return _table(["scored by", f"rows a second on one core, {day}", "time beside Assay"], rows)


def lines_of_benchmarks() -> list[dict[str, str]]:
    """The lines of the benchmark table, by the names of its columns."""
    heads, _, *rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in MEASURED.read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def benchmarks_of(page: str) -> str:
    """The part of the benchmark table that a page shows: a table for each thing that was measured, with the columns that it fills."""
    pages = {begin: name for name, begins in TABLES.items() for begin in begins}
    lines = [
        line
        for line in lines_of_benchmarks()
        if pages["" if line["measured"].endswith(" golds") else next(filter(line["measured"].startswith, pages))]
        == page
    ]
    runs: dict[str, list[str]] = {}
    for run, where in re.findall("^\\* (.*?): (.*)$", MEASURED.read_text("utf-8"), re.MULTILINE):
        if any(line["run"] == run for line in lines):
            runs.setdefault(where, []).append(run)
    text = "".join(f"* {' · '.join(names)}: {where}\n" for where, names in runs.items())
    tables: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        tables.setdefault(line["measured"], []).append(line)
    golds = {name: rows for name, rows in tables.items() if tuple(row["contender"] for row in rows) == BESIDE_GOLDS}
    for measured, rows in tables.items():
        if measured in golds:
            continue
        one_run = len({row["run"] for row in rows}) == 1
        hidden = {"measured", "run"} if one_run else {"measured"}
        shown = [name for name in rows[0] if name not in hidden and any(row[name] for row in rows)]
        table = _table(shown, [[row[name] for name in shown] for row in rows])
        text += f"\n### {measured}\n\n" + (f"{rows[0]['run']}\n\n" if one_run else "") + table
    return text + (_golds(golds) if golds else "")


def _golds(cases: dict[str, list[dict[str, str]]]) -> str:
    """One table of all check types and steps with a gold for each row, instead of one for each of a hundred."""
    rows = [
        [name, ours["time"], loop["time"], loop["ratio"], reasons["time"], reasons["ratio"], ours["run"]]
        for name, (ours, loop, reasons) in cases.items()
    ]
    _, plain, with_reasons = BESIDE_GOLDS
    return "\n### a gold for each row\n\n" + _table(["case", "assay", plain, "", with_reasons, "", "run"], rows)


def charts() -> dict[Path, str]:
    """The charts of the benchmark table, by their files."""
    table = lines_of_benchmarks()
    return {DOCS / "performance" / f"{name}.svg": as_svg(chart, table) for name, chart in CHARTS.items()}


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "".join(
        [f"| {' | '.join(heads)} |\n", f"{'|---' * len(heads)}|\n", *(f"| {' | '.join(row)} |\n" for row in rows)]
    )


def _line_of(lines: list[dict[str, str]], measured: str, contender: str) -> dict[str, str]:
    """The first line of what is measured whose contender's name begins with a text.

    Raises:
        LookupError: There is none.
    """
    for line in lines:
        if line["measured"] == measured and line["contender"].startswith(contender):
            return line
    raise LookupError(f"{measured}: {contender}")


def commands_as_markdown() -> str:
    """Every command with its arguments and options, in groups."""
    commands = typer.main.get_command(app).commands
    return "\n".join(_command(name, commands[name]) for name in COMMANDS)


def _command(name: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join(["assay", name, *map(argument_of, arguments), "[OPTIONS]"])
    lines = [f"## assay {name}", "", inspect.cleandoc(command.help or ""), "", "```text", usage, "```", ""]
    groups: dict[str, list[Any]] = {"Arguments": arguments} if arguments else {}
    for panel in PANELS:
        groups[panel] = []
    for param in command.params:
        if param not in arguments and not param.hidden:
            groups.setdefault(param.rich_help_panel or "Options", []).append(param)
    types = {key: value.annotation for key, value in inspect.signature(command.callback).parameters.items()}
    for group, params in groups.items():
        if not params:
            continue
        lines += [f"| {group.lower()} | meaning |", "|---|---|"]
        lines += [f"| {_names(param, types.get(param.name))} | {_meaning(param)} |" for param in params]
        lines.append("")
    return "\n".join(lines)


def _names(param: Any, annotation: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{argument_of(param)}`".replace("|", "\\|")
    kinds = _kinds(annotation)
    value = "" if param.is_flag else f" {param.metavar or ('N' if int in kinds else 'X' if float in kinds else 'TEXT')}"
    return ", ".join(f"`{name}{value}`" for name in [*param.opts, *param.secondary_opts]).replace("|", "\\|")


def _kinds(annotation: Any) -> set[Any]:
    """The plain types that an annotation is made of."""
    within = get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
    return set().union(*map(_kinds, within)) if within else {annotation}


def _meaning(param: Any) -> str:
    text = (param.help or "").replace("|", "\\|").replace("<", "&lt;")
    plain = isinstance(param.default, str | int | float) and not isinstance(param.default, bool) and param.default != ""
    return f"{text} [default: {param.default}]" if plain and "[default" not in text else text


def estimators_as_markdown() -> str:
    """The estimators of advantages."""
    lines = [
        f"| `{name}` | {made.formula} | {', '.join(f'`{option}`' for option in made.options)} | {made.source} |\n"
        for name, made in ESTIMATORS.items()
    ]
    return "".join(["| name | formula | options | source |\n|---|---|---|---|\n", *lines])


def filters_as_markdown() -> str:
    """The filters of dynamic sampling."""
    lines = [f"| `{name}` | {made.rule} | {made.source} |\n" for name, made in FILTERS.items()]
    return "".join(["| name | kept | source |\n|---|---|---|\n", *lines])


TRIED = {
    **{name: f"trainers/{name}.md" for name in ("trl", "verl", "openrlhf", "verifiers")},
    "skyrl-gym": "trainers/skyrl.md",
    "nemo-gym": "trainers/nemo.md",
    "openenv": "trainers/row.md",
    **dict.fromkeys(("llamafactory", "axolotl"), "training-sets.md"),
    **{
        name: f"trainers/{name}.md"
        for name in ("gepa", "dspy", "lm-eval", "lighteval", "evaluate", "evals", "promptfoo")
    },
    "inspect_ai": "trainers/inspect.md",
    **dict.fromkeys(
        ("mlflow", "langsmith", "langfuse", "braintrust", "pydantic-evals", "opik", "deepeval"), "trainers/row.md"
    ),
    "yaml-language-server": "specs.md",
}
"""Packages that ``make peers-test`` runs (nemo-gym, on a later Python, only its own test), each with the page about it."""


def pins() -> dict[str, list[str]]:
    """The versions of each package that ``make peers-test`` installs, without what only loaders of data and graders import."""
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    lines += re.findall("pip install nemo-gym==.*", (ROOT / "tests/peers/test_nemo_gym.py").read_text("utf-8"))
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith(("LLAMA_FACTORY", "AXOLOTL", "GRADERS")):
            for name, version in re.findall(r"([\w-]+)(?:==|@)(\d[\w.]*\w)", line):
                found.setdefault(name, []).append(version)
    return found


def versions_as_markdown() -> str:
    """The packages that adapters are for: the versions that were tried, and what the extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {
        re.split("[^\\w-]", needed)[0]: (extra, needed)
        for extra, (needed, *others) in project["optional-dependencies"].items()
        if not others
    }
    rows = []
    for name, page in TRIED.items():
        extra, needed = asked.get(name, ("", ""))
        rows.append([f"[{name}]({page})", ", ".join(pins()[name]), f"`{extra}`: `{needed}`" if extra else ""])
    return _table(["package", "tried with", "extra, and what it asks for"], rows)


PARTS: dict[str, tuple[tuple[str, Callable[[], str]], ...]] = {
    "README.md": (("few", few_of_benchmarks),),
    "docs/spec/check-types.md": tuple((f"{kind}s", partial(as_markdown, kind)) for kind in ("check", "normalizer")),
    "docs/spec/score.md": (("groups", partial(as_markdown, "group")),),
    "docs/steps.md": (("steps", partial(as_markdown, "step")),),
    "docs/inputs.md": (("presets", lambda: presets_as_markdown(presets())),),
    "docs/from-other-tools.md": (("graders", graders_as_markdown),),
    "docs/install.md": (("versions", versions_as_markdown),),
    "docs/cli.md": (("commands", commands_as_markdown),),
    "docs/advantages.md": (("advantages", estimators_as_markdown), ("filters", filters_as_markdown)),
    **{page: (("bench", partial(benchmarks_of, page)),) for page in TABLES},
}
"""The generated parts of each page, by its path: the name between the marks, and what makes it."""


def generated(path: Path) -> str:
    """A page with its generated parts as the code has them."""
    text = path.read_text("utf-8")
    for name, make in PARTS.get(name_of(path), ()):
        text = replaced(text, name, make())
    return text


def with_output(path: Path) -> str:
    """A page with what its programs and commands print, where that is shown and has changed."""
    text = path.read_text("utf-8")
    results = run_page(path)
    for result in reversed([result for result in results if result.shown is not None]):
        if comparable(result.printed) != comparable(result.shown.text):
            begin, end = result.shown.span
            lines = (line.rstrip() for line in result.printed.strip("\n").splitlines())
            text = text[:begin] + "\n".join(lines) + "\n" + text[end:]
    for result in results:
        if result.failure:
            raise SystemExit(f"{path.name}:{result.line}: {result.failure}")
    return text


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), "utf-8")  # before programs of the pages register classes
    if STAGES.exists():
        page = DOCS / "stages.md"
        page.write_text(replaced(page.read_text("utf-8"), "stages", STAGES.read_text("utf-8")), "utf-8")
    for notebook in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            notebook.write_text(written(notebook), "utf-8")
    for chart, svg in charts().items():
        chart.write_text(svg, "utf-8")
    for page in PAGES:
        page.write_text(generated(page), "utf-8")
        page.write_text(with_output(page), "utf-8")
