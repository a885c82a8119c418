"""Reports and rows of results as documents, from their JSON data: all of a report, and what a terminal shows of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.aggregating.outcomes import OUTCOMES
from assay.errors import counted, printable
from assay.insight.documents import in_shell
from assay.insight.evidence.documents import checks_table, quotes
from assay.writing.documents import Document, Lines, Quote, Table, cut, label, with_names
from assay.writing.numbers import count, interval, number, percent, plain

KINDS = {"worst": "Worst", "best": "Best", "errors": "Errors"}
"""The kinds of examples, with their headings."""

_DIGEST = 12
_TEXT, _REASON = 2_000, 300
_FAILING, _SOURCES, _ROWS = 20, 20, 10
_SPARE = ("within r", "within", "separates", "rest r", "variance", "errors", "effect", "mean", "status")
"""Columns of checks that a narrow terminal leaves out."""

_Blocks = list[Lines | Table | Quote]


def report_document(report: Mapping[str, Any], findings: int) -> Document:
    """Return a report with so many findings: facts, what needs a look, checks with their reasons, pairs, groups, examples, and what made it."""
    by = [_by(name, values) for name, values in report["by"].items() if values["entries"]]
    blocks = [
        *(*_head(report, findings), *_histogram(report["histogram"]), *_checks(report), *_reasons(report["checks"])),
        *(*_pairs(report["pairs"]), *_outcomes(report), *(block for blocks in by for block in blocks)),
        *(block for kind, rows in report["examples"].items() for row in rows for block in _example(kind, row)),
        *(_provenance(report["provenance"]), *_notes(report, "Notes")),
    ]
    return Document(title(report), blocks)


def brief_document(
    report: Mapping[str, Any], findings: int = 8, *, tables: bool = True, in_notebook: bool = False
) -> Document:
    """Return what a terminal shows of a report: facts, what needs a look, with the commands that show the rows, and checks."""
    checks = [*_checks(report), *_outcomes(report)] if tables else []
    return Document(
        title(report),
        [Lines([title(report)]), *_head(report, findings, in_notebook=in_notebook), *checks, *_notes(report)],
    )


def multiline(text: str, most: int | None) -> str:
    """Return a text with its line breaks, cut, with what cannot be seen as escapes."""
    return printable(text if most is None else cut(text, most), lines=True)


def title(report: Mapping[str, Any]) -> str:
    """Return what a report is on: the verifiers, else the file."""
    verifiers = [
        f"{verifier['id']}{f' {version}' if (version := verifier['version']) else ''}"
        for verifier in report["provenance"]["verifiers"]
    ]
    return label(", ".join(verifiers) or report["provenance"]["name"])


def headline(report: Mapping[str, Any]) -> list[str]:
    """Return the facts about a result that come first."""
    summary, provenance = report["summary"], report["provenance"]
    facts = [counted(summary["rows"], "row")]
    digests = [str(verifier["sha256"])[:_DIGEST] for verifier in provenance["verifiers"] if verifier["sha256"]]
    facts += [f"spec {label(' '.join(digests))}"] if digests else []
    facts += [f"assay {label(provenance['assay_version'])}"] if provenance["assay_version"] else []
    facts += [f"root {label(str(provenance['root'])[:_DIGEST])}"] if provenance["root"] else []
    return [*facts, "✓ inputs sealed"] if provenance["sealed"] else facts


def command_of(finding: Mapping[str, Any], result: str) -> str:
    """Return the command that shows the rows of a finding; of rows by number the first ten, as many as it shows."""
    words = [
        f"--{name}{'=' if str(value).startswith('-') else ' '}{in_shell(str(value))}"
        for name, values in finding["filter"].items()
        for value in values[:_ROWS]
    ]
    return " ".join(["assay show", in_shell(result), *words])


def call_of(finding: Mapping[str, Any]) -> str:
    """Return the call in Python that shows the rows of a finding."""
    words = [f"{name}={values[:_ROWS]!r}" for name, values in finding["filter"].items()]
    return f"assay.show({', '.join(['result', *words])})"


def _head(report: Mapping[str, Any], findings: int, *, in_notebook: bool = False) -> Iterator[Lines | Quote]:
    summary = report["summary"]
    facts = [f"mean reward {number(summary['mean'])} {interval(summary['ci95'])}".rstrip()]
    facts.append(f"pass {percent(summary['pass_rate'])} {interval(summary['pass_rate_ci95'], of_shares=True)}".rstrip())
    facts += [f"unscored {count(summary['unscored'])}", f"errors {count(summary['errors'])}"]
    facts += [] if summary["flat"] is None else [f"flat groups {percent(summary['flat'])}"]
    yield Lines([" · ".join(headline(report)), " · ".join(facts)])
    for finding in report["findings"][:findings]:
        yield Lines([finding["text"]], f"▲ {finding['title']}")
        yield Quote(call_of(finding) if in_notebook else command_of(finding, report["provenance"]["name"]))
    if (more := len(report["findings"]) - findings) > 0:
        how = "findings=" if in_notebook else "--findings "
        yield Lines([f"… {counted(more, 'more finding')}: {how}{len(report['findings'])}"])


def _filled(columns: Mapping[str, bool], rows: Sequence[Sequence[str]], **options: Any) -> list[Table]:
    """Return a table without columns in which nothing is known; none without rows."""
    return [Table(columns, rows, **options).filled()] if rows else []


def _histogram(histogram: Mapping[str, Any]) -> Iterator[Lines | Table]:
    bins, (low, high) = histogram["bins"], histogram["range"]
    width, most = (high - low) / len(bins), max(bins) or 1
    rows = [
        [
            f"{number(low + at * width)} – {number(low + (at + 1) * width)}",
            *(count(rows), "█" * max(round(20 * rows / most), rows > 0)),
        ]
        for at, rows in enumerate(bins)
    ]
    exact = f"exactly 0: {count(histogram['zeros'])} · exactly 1: {count(histogram['ones'])}"
    yield Lines([f"{exact} · unscored: {count(histogram['unscored'])}"], "Rewards")
    yield Table({"reward": False, "rows": True, "": False}, rows)


def _checks(report: Mapping[str, Any]) -> list[Table]:
    columns = {"check": False, "status": False}
    columns |= dict.fromkeys(("weight", "effect", "mean", "pass", "fails", "errors", "loss", "variance"), True)
    columns |= dict.fromkeys(("rest r", "separates", "within", "within r"), True)
    rows = [
        [
            label(check["name"]) + (f"\n{cut(check['title'], _REASON)}" if check["title"] else ""),
            f"{'' if check['status'] in ('ok', 'few rows') else '▲ '}{check['status']}",
            *(_weight(check), percent(check["effect"]), number(check["mean"]), percent(check["pass_rate"])),
            *(count(check["failures"]), count(check["errors"]), number(check["loss"])),
            *(percent(check["share_of_reward_variance"]), number(check["rest_correlation"])),
            *(percent(check["separates"]), percent(check["within_variance_share"])),
            number(check["within_rest_correlation"]),
        ]
        for check in report["checks"]
    ]
    return _filled(columns, rows, heading="Checks", spare=_SPARE)


def _weight(check: Mapping[str, Any]) -> str:
    roles = {"gate": "gate", "penalty": f"penalty {plain(check['penalty'])}"}
    return roles.get(check["role"], plain(check["weight"]))


def _reasons(checks: Sequence[Mapping[str, Any]]) -> list[Table]:
    rows = [
        [label(check["name"]), "\n".join(_reason(reason)), count(reason["rows"]), f"{reason['row']:,}"]
        for check in checks
        for reason in check["reasons"]
    ]
    columns = {"check": False, "reason": False, "rows": True, "first row": True}
    return [Table(columns, rows, "Reasons", spare=("first row",))] if rows else []


def _reason(reason: Mapping[str, Any]) -> Iterator[str]:
    yield printable(cut(reason["template"], _REASON))
    for example in reason["examples"][:3]:
        near = f" ({example['near']})" if example["near"] else ""
        expected = ", ".join(map(label, example["expected"]))
        yield f"{count(example['rows'])}× {label(example['read'])} → {expected}{near}"


def _pairs(pairs: Sequence[Mapping[str, Any]]) -> list[Table]:
    words = {"redundant": "▲ redundant", "a_implies_b": "a implies b", "b_implies_a": "b implies a"}
    rows = [
        [
            *(label(pair["a"]), label(pair["b"]), ", ".join(word for name, word in words.items() if pair[name])),
            *(number(pair["phi"]), number(pair["jaccard"])),
            *(count(pair[name]) for name in ("n11", "n10", "n01", "n00")),
        ]
        for pair in pairs
    ]
    columns = {"a": False, "b": False, "relation": False}
    columns |= dict.fromkeys(("phi", "Jaccard", "both fail", "only a", "only b", "neither"), True)
    return _filled(columns, rows, heading="Pairs of checks")


def _by(name: str, values: Mapping[str, Any]) -> list[Lines | Table]:
    numbers = ("rows", "mean", "95 %", "pass", "errors", "length")
    columns = with_names([label(name)], dict.fromkeys(numbers, True))
    rows = [
        [
            *(_of(entry), count(entry["rows"]), number(entry["mean"]), interval(entry["ci95"])),
            *(percent(entry["pass_rate"]), count(entry["errors"]), count(entry["length"])),
        ]
        for entry in values["entries"]
    ]
    left_out = values["values"] - len(rows)
    more = [Lines([f"… {count(left_out)} more"])] if left_out > 0 else []
    return [*_filled(columns, rows, heading=f"By {label(name)}"), *more]


def _outcomes(report: Mapping[str, Any]) -> list[Lines | Table]:
    if (found := report.get("outcomes")) is None:
        return []
    columns = with_names([label(name) for name in found["columns"]], dict.fromkeys(("rows", *OUTCOMES), True))
    rows = [
        [*map(label, entry["of"].values()), count(entry["rows"])]
        + [percent(rows / entry["rows"]) for rows in entry["outcomes"].values()]
        for entry in found["entries"]
    ]
    left_out = found["values"] - len(rows)
    more = [Lines([f"… {count(left_out)} more"])] if left_out > 0 else []
    return [*_filled(columns, rows, heading="Outcomes"), *more]


def _of(entry: Mapping[str, Any]) -> str:
    first = ", ".join(map(label, entry["of"].values()))
    return f"{first} – {', '.join(map(label, entry['to'].values()))}" if "to" in entry else first


def _example(kind: str, example: Mapping[str, Any]) -> Iterator[Lines | Quote]:
    failing = [name for name, score in example["checks"].items() if score is not None and score != 1]
    facts = [f"row {example['row']:,}", *(f"{label(name)} {label(value)}" for name, value in example["key"].items())]
    facts += [f"reward {number(example['reward'])}", *(f"✗ {label(name)}" for name in failing[:_FAILING])]
    facts += [f"and {count(len(failing) - _FAILING)} more"] if len(failing) > _FAILING else []
    facts += [f"{count(example['rows'])} rows like it"] if example.get("rows", 1) > 1 else []
    yield Lines((), f"{KINDS[kind]}: {' · '.join(facts)}")
    for name in ("error", "feedback", "text"):
        if value := example.get(name):
            yield Quote(cut(value, _TEXT), name.capitalize())


def _provenance(provenance: Mapping[str, Any]) -> Lines:
    names = ("command", "root", "assay_version", "polars_version")
    lines = [
        *(
            f"{noun} {source.get('name')}"
            for noun, kind in (("input", "inputs"), ("tasks", "tasks"))
            for source in provenance[kind][:_SOURCES]
        ),
        *(f"spec {verifier['id']} sha256 {verifier['sha256']}" for verifier in provenance["verifiers"][:_SOURCES]),
        *(f"{name.removesuffix('_version')} {value}" for name in names if (value := provenance[name])),
    ]
    return Lines([cut(line, _REASON) for line in lines], "What made this")


def _notes(report: Mapping[str, Any], heading: str = "") -> list[Lines]:
    notes = [cut(note, _TEXT) for note in report["notes"]]
    return [Lines(notes if heading else [f"note: {note}" for note in notes], heading)] if notes else []


def cards_document(headline: str, cards: Mapping[str, Any]) -> Document:
    """Return rows, of their ``as_json()``: each with a table of its checks, its gold, and the texts that were scored."""
    blocks: _Blocks = [Lines([headline, *(f"note: {note}" for note in cards["notes"])])]
    return Document("assay show", [*blocks, *(block for card in cards["cards"] for block in _card(card))])


def _card(card: Mapping[str, Any]) -> _Blocks:
    keys = [f"{name} {'–' if value is None else value}" for name, value in card["key"].items()]
    heading = " · ".join([f"row {card['row']:,}", *keys, f"reward {number(card['reward'])}", card["state"]])
    lines = [*card["feedback"], *(f"error: {line}" for line in card["error"])]
    lines += [f"{name}: {gold}" for name, gold in card["gold"].items()]
    texts = quotes(card["checks"], {"completion": card["text"], **card.get("sources", {})})
    return [checks_table(card["checks"], heading), *([Lines(lines)] if lines else []), *texts]
