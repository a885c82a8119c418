"""What commands show of verifiers and rows: explanations, listings and benchmarks as documents, and cards."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from assay.cli.terminal import print_folded, print_line, print_notes
from assay.errors import clipped, counted, printable
from assay.names import COMPLETION
from assay.writing.documents import Document, Lines, Table, cut, label
from assay.writing.numbers import count, number, plain, seconds, speed

if TYPE_CHECKING:
    from assay.insight.bench import Bench
    from assay.insight.evidence.evidence import CheckEvidence, Span
    from assay.insight.reports.showing import Card, Cards, Verdict
    from assay.loading.presets.preset import Preset
    from assay.spec.verifier import VerifierSpec

_FEW_ROWS = 5_000
"""Below this number of rows, the fixed cost of a run dominates."""


def explanation_document(verifier: "VerifierSpec") -> Document:
    """Return what each check of a verifier, its steps, its golds and its condition compile to."""
    from assay.insight.explanation import as_written, explanation, results_of
    from assay.spec.check import titled

    if verifier.share is None:
        combine = "" if verifier.combine == "mean" else f"  {verifier.combine} of the checks"
        ends = "no limits" if verifier.range is None else " to ".join(map(plain, verifier.range))
        combine += "" if verifier.range == (0.0, 1.0) else f"  range {ends}"
        facts = f"  passes at {verifier.pass_threshold}{combine}  sha256 {verifier.sha256[:12]}"
    else:
        facts = f"  weight {plain(verifier.share.weight)}"
    facts += f"  version {verifier.version}" if verifier.version else ""
    described = [titled(verifier.name, verifier.description)] if verifier.description else []
    described += [f"results: {results}"] if (results := results_of(verifier)) else []
    rows = []
    for entry in explanation(verifier):
        indent = "  " * entry["depth"]
        rows.append([f"{indent}{entry['id']}", entry["type"], _role(entry), entry["runs_as"]])
        if title := titled(entry["name"], entry["description"]):
            rows.append([f"{indent}  {title}", "", "", ""])
        named = [("on", part) for part in entry["on"]] + [(part["param"], part) for part in entry["golds"]]
        named += [(name, part) for field, name in (("gold_on", "goldOn"), ("when", "when")) for part in entry[field]]
        rows += [[f"{indent}  {name}: {as_written(part['what'])}", "", "", part["runs_as"]] for name, part in named]
    table = Table(dict.fromkeys(("check", "type", "weight", "runs as"), False), rows, spare=("type", "weight"))
    return Document("assay explain", [Lines(described, f"{verifier.id}{facts}"), table])


def _role(entry: Mapping[str, Any]) -> str:
    role = {"gate": "gate", "penalty": f"penalty {plain(entry['weight'])}"}.get(entry["role"], plain(entry["weight"]))
    marks = [mark for mark, name in (("required", "required"), ("negated", "negate")) if entry[name]]
    return " ".join([role, *marks, *([] if entry["threshold"] is None else [f"threshold {plain(entry['threshold'])}"])])


def listing_document(
    listing: Sequence[dict[str, Any]],
    named: Mapping[str, Sequence[str]] | None = None,
    examples: Callable[[dict[str, Any]], Sequence[str]] | None = None,
) -> Document:
    """Return check types, groups, steps and normalizers with their parameters, and lists of names under a heading each."""
    blocks = []
    for kind, entries in groupby(listing, key=lambda entry: str(entry.get("kind", "check"))):
        blocks += [Lines((), f"# {kind}{'' if examples else 's'}")] if examples or kind != "check" else []
        for entry in entries:
            title = " ".join([entry["type"], *(f"({alias})" for alias in entry["aliases"])])
            lines = [f"  {entry['summary']}", *(_param(param, entry.get("value")) for param in entry["params"])]
            lines += [f"  example  {example}" for example in (examples(entry) if examples else ())]
            blocks.append(Lines(lines, title))
    blocks += [Lines([f"  {', '.join(names)}"], heading) for heading, names in (named or {}).items()]
    return Document("assay checks", blocks)


def _param(param: Mapping[str, Any], value: Any) -> str:
    aliases = f" (or {', '.join(param['also'])})" if param["also"] else ""
    default = "" if param["required"] else f" [{json.dumps(param['default'])}]"
    beside = " (the value of the name)" if value == param["name"] else ""
    return f"  - {param['name']}{aliases}: {param['type']}{default}{beside} {param['description']}"


def presets_document(presets: "Sequence[Preset]") -> Document:
    """Return how each preset is recognised, and what it reads."""
    blocks = []
    for preset in presets:
        without = f"; without {', '.join(preset.signature.absent)}" if preset.signature.absent else ""
        lines = [f"recognised by {', '.join(preset.signature.required)}{without}"]
        lines += preset.described() or ["read as it is"]
        lines += [f"unscored where {rule.path} reports a failure" for rule in preset.unscored]
        lines += [f"only the first {preset.first_only} of a file"] if preset.first_only else []
        lines += [f"note: {note}" for note in preset.notes]
        blocks.append(Lines([f"  {line}" for line in lines], f"{preset.name}  {preset.title}"))
    return Document("assay presets", blocks)


def graders_document(entries: Sequence[Mapping[str, Any]], *, is_one: bool) -> Document:
    """Return the graders: a line for each, or all of one."""
    if not is_one:
        rows = [
            [entry["name"], entry["kind"], f"{entry['tool']} {entry['version']}", _options_of(entry)]
            for entry in entries
        ]
        kinds = " · ".join(f"{kind}: {words}" for kind, words in _KINDS.items())
        table = Table(dict.fromkeys(("grader", "kind", "tool", "options"), False), rows, spare=("options", "tool"))
        return Document("assay graders", [table, Lines([], kinds)])
    (entry,) = entries
    lines = [
        f"tool      {entry['tool']} {entry['version']}, {entry['licence']}",
        f"function  {entry['file']}{':' if entry['function'] else ''}{entry['function']}",
        f"kind      {entry['kind']}: {', or '.join(_KINDS[kind] for kind in entry['kind'].split(', '))}",
        f"gold      {_HOW_GOLDS[entry['golds']]}",
        f"revision  {entry['revision']}",
    ]
    lines += [f"needs     {', '.join(entry['libraries'])}"] if entry["libraries"] else []
    lines += ["scores    may lie beyond [0, 1]: combine: sum, range: null"] if entry["unbounded"] else []
    lines += [f"option    {_option_text(option)}" for option in entry["options"]]
    lines += [f"check     {_check_of(entry)}"]
    return Document("assay graders", [Lines([f"  {line}" for line in lines], entry["name"])])


_KINDS = {"F": "checks and steps", "R": "a function of a row", "M": "math-verify", "P": "the installed package"}
_HOW_GOLDS = {
    "each": "the best of several counts",
    "all": "compared with all together",
    "list": "a list, which is one gold",
    "spans": "a list of spans, or several",
    "value": "a number, or an object",
    "none": "none",
}


def _check_of(entry: Mapping[str, Any]) -> str:
    """Return a check of a grader as a spec writes it, with the options that it needs."""
    needed = {
        option["name"]: "{column: …}" if option["row"] else (*option["choices"], "…")[0]
        for option in entry["options"]
        if option["required"]
    }
    gold = "" if entry["golds"] == "none" else ", value: {column: answer}"
    options = ", ".join(f"{name}: {value}" for name, value in needed.items())
    return f"{{type: grader, name: {entry['name']}{gold}{f', options: {{{options}}}' if options else ''}}}"


def _options_of(entry: Mapping[str, Any]) -> str:
    return ", ".join(option["name"] for option in entry["options"])


def _option_text(option: Mapping[str, Any]) -> str:
    values = f": {', '.join(option['choices'])}" if option["choices"] else f": {option['kind']}"
    default = "" if option["default"] is None else f", default {json.dumps(option['default'])}"
    marks = ", required" * option["required"] + ", of rows: {column: …}" * option["row"]
    return f"{option['name']}{values}{default}{marks}"


def bench_document(bench: "Bench") -> Document:
    """Return what a verifier costs, the slowest checks first."""
    rows, alone = counted(bench.rows, "row"), counted(bench.alone_rows, "row")
    loop = f"{count(bench.loop_seconds / bench.loop_rows * 1e9)} ns per row, on {counted(bench.loop_rows, 'row')}"
    facts = [
        f"{rows} · {speed(bench.rows_per_second)} · {speed(bench.mb_per_second, 'MB')} of text",
        f"{number(bench.times_floor)} × reading the column ({seconds(bench.floor_seconds)})",
        f"{number(bench.times_faster_than_loop)} × as fast as the loop over rows ({loop})",
    ]
    cells = [[check.id, check.type, count(check.ns_per_row), check.runs_as] for check in bench.checks]
    few = f"with {rows}, this is mostly the fixed cost of a run; measure on more rows"
    notes = [f"note: {note}" for note in (*bench.notes, *([few] if bench.rows < _FEW_ROWS else []))]
    fact = f"Each check by itself, on {alone} in memory, minus the {count(bench.base_ns_per_row)} ns/row "
    fact += "of a plan whose check does nothing; work that checks share is counted in each."
    table = Table({"check": False, "type": False, "ns/row": True, "runs as": False}, cells, spare=("type",))
    return Document("assay bench", [Lines(facts), table, Lines([*notes, fact])])


_TEXT_LINES, _GOLD_LINES = 12, 3
"""Lines of the terminal for a text, and for a gold."""
_LINE, _GOLDS = 1_000, 5
"""Characters of a feedback, and golds beside what was read, that are shown."""
_BEFORE = 80
"""Characters before the first match that are shown, where the text begins long before it."""
_STATES = {
    "pass": ("✓ passed", "green"),
    "fail": ("✗ failed", "red"),
    "unscored": ("– unscored", "yellow"),
    "scored": ("scored", ""),
}
_STYLES = {
    "excess": "reverse magenta",
    "read": "reverse cyan",
    "matched": "reverse green",
    "gold": "reverse yellow",
    "offending": "reverse red",
}
"""How the kinds of evidence look, the most telling last."""
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}


def print_cards(console: Console, cards: "Cards", check: str = "") -> None:
    """Print rows of a result, a card each; the evidence is that of a check, else of those that fail."""
    for card in cards.cards:
        _print_card(console, card, check)
    print_line(console, printable(cards.headline))
    print_notes(console, cards.notes)


def _print_card(console: Console, card: "Card", check: str) -> None:
    keys = "".join(f" · {label(name)} {label(value)}" for name, value in card.key.items())
    print_folded(
        console, (f"row {card.row:,}", "bold"), keys, f" · reward {number(card.reward)} · ", _STATES[card.state]
    )
    width = max((len(printable(verdict.check)) for verdict in card.checks), default=0)
    evidence = list["CheckEvidence"]()
    for verdict in card.checks:
        _print_verdict(console, verdict, width)
        is_chosen = f"{verdict.check}.".startswith(f"{check}.") if check else verdict.passes is False
        if verdict.evidence is not None and is_chosen:
            evidence.append(verdict.evidence)
            _print_reading(console, verdict.evidence)
    for line in card.feedback:
        print_folded(console, f"  {printable(cut(line, _LINE))}")
    for line in card.error:
        print_folded(console, ("  error: ", "red"), printable(cut(line, _LINE)))
    for name, gold in card.gold.items():
        _print_text(console, Text.assemble((f"{printable(name)}: ", "bold"), printable(gold)), _GOLD_LINES)
    for name, text in card.sources.items():
        if spans := [span for seen in evidence if seen.source == name for span in seen.spans]:
            _print_source(console, f"{printable(name)}: ", text, spans)
    if card.text is not None:
        spans = [span for seen in evidence if seen.source == COMPLETION for span in seen.spans]
        _print_source(console, "", card.text, spans)
    console.print()


def _print_verdict(console: Console, verdict: "Verdict", width: int) -> None:
    words = f" {printable(verdict.check):{width}}  {number(verdict.score):6}  {printable(cut(verdict.feedback, _LINE))}"
    print_folded(console, "  ", _MARKS[verdict.passes], words.rstrip())
    if verdict.title:
        print_folded(console, (f"    {printable(cut(verdict.title, _LINE))}", "dim"))
    if verdict.error and verdict.error != verdict.feedback:
        print_folded(console, ("    error: ", "red"), printable(cut(verdict.error, _LINE)))


def _print_reading(console: Console, seen: "CheckEvidence") -> None:
    if seen.read is not None:
        golds = [*map(_short, seen.expected[:_GOLDS])]
        golds += [f"… {more:,} more"] if (more := len(seen.expected) - _GOLDS) > 0 else []
        expected = f" → expected {' | '.join(golds)}" if golds else ""
        print_folded(console, ("    read ", "dim"), _short(seen.read), expected, f" ({seen.near})" if seen.near else "")


def _short(text: str) -> str:
    return printable(clipped(text))


def _print_source(console: Console, heading: str, text: str, spans: Sequence["Span"]) -> None:
    room = max(console.width - 4, 20) * _TEXT_LINES
    first = min((span.start for span in spans), default=0)
    begin = max(0, first - _BEFORE) if first > room // 2 else 0
    end = min(len(text), begin + room)
    shown = Text.assemble((heading, "bold"), (f"… {begin:,} characters … " if begin else "", "dim"))
    for kind, part in _parts(text, spans, begin, end):
        written = printable(part, lines=True)
        if kind and (console.no_color or not console.color_system):  # without colours, brackets mark what was found
            written = f"⟦{written}⟧" if kind == "read" else f"⟦{kind}:{written}⟧"
        shown.append(written, _STYLES.get(kind, "default"))
    _print_text(console, shown, _TEXT_LINES, more=len(text) - end)


def _parts(text: str, spans: Sequence["Span"], begin: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with what is there: of several kinds, the most telling."""
    edges = sorted({begin, end, *(min(max(at, begin), end) for span in spans for at in (span.start, span.end))})

    def kind_at(place: tuple[int, int]) -> str:
        kinds = [span.kind for span in spans if span.start <= place[0] and place[1] <= span.end]
        return max(kinds, key=[*_STYLES].index, default="")

    for kind, places in groupby(pairwise(edges), kind_at):
        (start, stop), *others = places
        yield kind, text[start : others[-1][1] if others else stop]


def _print_text(console: Console, text: Text, most: int, more: int = 0) -> None:
    lines = text.wrap(console, max(console.width - 4, 20))
    left_out = sum(len(line.plain) for line in lines[most:]) + more
    for line in lines[:most]:
        console.print(Text.assemble(("  │ ", "dim"), line), soft_wrap=True)
    if left_out:
        print_line(console, (f"  │ … {left_out:,} more characters", "dim"))
