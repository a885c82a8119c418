"""A report as Markdown: tables as GitHub has them, texts in fences that nothing inside can end; and what of it needs a look."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from assay.errors import counted, printable
from assay.writing.documents import escaped, fenced
from assay.writing.numbers import change, count, interval, number, p_value, percent, plain

LABEL = 80
"""Code points of a name that are shown."""

KINDS = {"worst": "Worst", "best": "Best", "errors": "Errors"}
"""The kinds of examples, with their headings."""

_DIGEST = 12


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, and how many code points are left out."""
    return text if len(text) <= most else f"{text[:most]}… {len(text) - most:,} more"


def label(value: Any) -> str:
    """Return a name or another value from data on one line, cut, with what cannot be seen as escapes."""
    if value is None:
        return "–"
    text = value if isinstance(value, str) else f"{value:,}" if type(value) is float else str(value)
    return printable(cut(text, LABEL))


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


def concerns(report: Mapping[str, Any]) -> list[str]:
    """Return what needs a look, in a phrase each."""
    return [*_of_rows(report), *_of_checks(report), *_of_pairs(report)]


def _of_rows(report: Mapping[str, Any]) -> Iterator[str]:
    summary, drift = report["summary"], report["drift"]
    if summary["unscored"]:
        yield f"{count(summary['unscored'])} of {counted(summary['rows'], 'row')} unscored"
    if summary["errors"]:
        yield f"{counted(summary['errors'], 'row')} with errors"
    if (summary["flat"] or 0) >= 0.8 and summary["compared_groups"] >= 8:  # noqa: PLR2004  (as the tripwire)
        yield f"{percent(summary['flat'])} of groups are flat"
    if drift and drift["p"] is not None and drift["p"] < 0.05 and drift["difference"] < 0:  # noqa: PLR2004
        yield f"rewards fall over the steps ({change(drift['difference'])})"


def _of_checks(report: Mapping[str, Any]) -> Iterator[str]:
    for check in report["checks"]:
        if check["status"] not in ("ok", "few rows"):
            yield f"{label(check['name'])} {check['status']}"
        if check["errors"]:
            yield f"{label(check['name'])} has errors in {counted(check['errors'], 'row')}"


def _of_pairs(report: Mapping[str, Any]) -> Iterator[str]:
    for pair in report["pairs"]:
        if pair["redundant"]:
            yield f"{label(pair['a'])} ≈ {label(pair['b'])} redundant (phi {number(pair['phi'])})"


_TEXT, _REASON = 2_000, 300


def as_markdown(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown."""
    parts = [
        _top(report),
        _histogram(report["histogram"]),
        _checks(report["checks"]),
        _reasons(report["checks"]),
        _pairs(report["pairs"]),
        *(_by(name, values) for name, values in report["by"].items()),
        _drift(report["drift"]),
        *(_examples(kind, found) for kind, found in report["examples"].items()),
        _provenance(report["provenance"]),
        _list("Notes", report["notes"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _name(value: Any) -> str:
    return escaped(label(value))


def _one_line(text: str) -> str:
    return escaped(cut(text, _REASON))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    lines = [heads, ["---" if at < left else "---:" for at in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(heading: str, lines: Iterable[str]) -> str:
    items = "\n".join(f"- {escaped(cut(line, _TEXT))}" for line in lines)
    return f"## {heading}\n\n{items}" if items else ""


def _top(report: Mapping[str, Any]) -> str:
    summary = report["summary"]
    facts = [f"mean reward {number(summary['mean'])} {interval(summary['ci95'])}".rstrip()]
    facts.append(f"pass {percent(summary['pass_rate'])} {interval(summary['pass_rate_ci95'], of_shares=True)}".rstrip())
    facts.append(f"unscored {count(summary['unscored'])}")
    facts.append(f"errors {count(summary['errors'])}")
    facts += [] if summary["flat"] is None else [f"flat groups {percent(summary['flat'])}"]
    looks = [f"▲ {escaped(concern)}" for concern in concerns(report)]
    looked = f"\n\n**Needs a look ({len(looks)}):** {' · '.join(looks)}" if looks else ""
    lines = [f"# {escaped(title(report))}", " · ".join(map(escaped, headline(report))), " · ".join(facts)]
    return "\n\n".join(lines) + looked


def _histogram(histogram: Mapping[str, Any]) -> str:
    low, high = histogram["range"]
    width = (high - low) / len(histogram["bins"])
    most = max(histogram["bins"]) or 1
    rows = [
        [
            f"{number(low + at * width)} – {number(low + (at + 1) * width)}",
            count(rows),
            "█" * max(round(20 * rows / most), rows > 0),
        ]
        for at, rows in enumerate(histogram["bins"])
    ]
    exact = f"Exactly 0: {count(histogram['zeros'])} · exactly 1: {count(histogram['ones'])}"
    lines = [["reward", "rows", ""], ["---", "---:", "---"], *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## Rewards\n\n{exact} · unscored: {count(histogram['unscored'])}\n\n{table}"


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return ""
    heads = ["check", "status", "weight", "mean", "pass", "fails", "errors", "variance", "rest r", "separates"]
    heads += ["within", "within r"]
    rows = [
        [
            *(_named(check), f"{'' if check['status'] == 'ok' else '▲ '}{check['status']}"),
            *(plain(check["weight"]), number(check["mean"]), percent(check["pass_rate"])),
            *(count(check["failures"]), count(check["errors"]), percent(check["share_of_reward_variance"])),
            *(number(check["rest_correlation"]), percent(check["separates"])),
            *(percent(check["within_variance_share"]), number(check["within_rest_correlation"])),
        ]
        for check in checks
    ]
    return f"## Checks\n\n{_table(heads, rows, left=2)}"


def _named(check: Mapping[str, Any]) -> str:
    return _name(check["name"]) + (f"<br>{_one_line(check['title'])}" if check["title"] else "")


def _reasons(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [_name(check["name"]), _one_line(reason["template"]), count(reason["rows"]), f"{reason['row']:,}"]
        for check in checks
        for reason in check["reasons"]
    ]
    return f"### Reasons\n\n{_table(['check', 'reason', 'rows', 'first row'], rows, left=2)}" if rows else ""


def _pairs(pairs: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            *(_name(pair["a"]), _name(pair["b"]), ", ".join(_found(pair))),
            *(number(pair["phi"]), number(pair["jaccard"])),
            *(count(pair[name]) for name in ("n11", "n10", "n01", "n00")),
        ]
        for pair in pairs
    ]
    heads = ["a", "b", "", "phi", "Jaccard", "both fail", "only a", "only b", "neither"]
    return f"## Pairs of checks\n\n{_table(heads, rows, left=3)}" if rows else ""


def _found(pair: Mapping[str, Any]) -> Iterator[str]:
    words = {"redundant": "▲ redundant", "a_implies_b": "a implies b", "b_implies_a": "b implies a"}
    return (word for name, word in words.items() if pair[name])


def _by(name: str, values: Mapping[str, Any]) -> str:
    rows = [
        [
            _of(entry),
            count(entry["rows"]),
            number(entry["mean"]),
            interval(entry["ci95"]),
            percent(entry["pass_rate"]),
            count(entry["errors"]),
            count(entry["length"]),
        ]
        for entry in values["entries"]
    ]
    left_out = values["values"] - len(rows)
    more = f"\n\n{count(left_out)} more" if left_out > 0 else ""
    heads = [_name(name), "rows", "mean", "95 %", "pass", "errors", "length"]
    return f"## By {_name(name)}\n\n{_table(heads, rows)}{more}" if rows else ""


def _of(entry: Mapping[str, Any]) -> str:
    first = ", ".join(map(_name, entry["of"].values()))
    return f"{first} – {', '.join(map(_name, entry['to'].values()))}" if "to" in entry else first


def _drift(drift: Mapping[str, Any] | None) -> str:
    if drift is None:
        return ""
    fact = (
        f"The last {count(drift['compared'])} of {count(drift['steps'])} steps have a mean of {number(drift['last'])}, "
    )
    fact += f"the first {count(drift['compared'])} of {number(drift['first'])}: "
    fact += f"{change(drift['difference'])} {interval(drift['ci95'])}, p {p_value(drift['p'])}"
    return f"## Drift\n\n{fact}"


def _examples(kind: str, examples: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for example in examples:
        key = " · ".join(f"{escaped(label(name))} {_name(value)}" for name, value in example["key"].items())
        facts = [f"row {example['row']:,}", *([key] if key else []), f"reward {number(example['reward'])}"]
        failing = [name for name, score in example["checks"].items() if score is not None and score != 1]
        facts += [f"✗ {_name(name)}" for name in failing[:20]]
        facts += [f"and {count(len(failing) - 20)} more"] if len(failing) > 20 else []  # noqa: PLR2004
        facts += [f"{count(example['rows'])} rows like it"] if example.get("rows", 1) > 1 else []
        parts.append(f"### {' · '.join(facts)}")
        for name in ("error", "feedback", "text"):
            if value := example.get(name):
                parts += [f"{name.capitalize()}:", fenced(multiline(value, _TEXT))]
    return f"## {KINDS[kind]}\n\n" + "\n\n".join(parts) if parts else ""


def _provenance(provenance: Mapping[str, Any]) -> str:
    lines = [
        *(f"input {cut(str(source.get('name')), 200)}" for source in provenance["inputs"][:20]),
        *(f"tasks {cut(str(source.get('name')), 200)}" for source in provenance["tasks"][:20]),
        *(f"spec {verifier['id']} sha256 {verifier['sha256']}" for verifier in provenance["verifiers"][:20]),
        *(f"{name} {value}" for name in ("command", "root") if (value := provenance[name])),
        *(f"{name} {value}" for name in ("assay_version", "polars_version") if (value := provenance[name])),
    ]
    return _list("What made this", [line.replace("_version", "") for line in lines])
