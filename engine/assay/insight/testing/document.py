"""The tests of specs as a document."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assay.errors import counted, printable, quoted
from assay.insight.testing.expectations import in_words, plain_number
from assay.insight.testing.mutants import score_of
from assay.writing.documents import Document, Lines
from assay.writing.numbers import percent

_Data = Mapping[str, Any]


def failed_tests(tests: Iterable[_Data]) -> list[str]:
    """Return a line for each test that failed."""
    return [
        f"FAILED {test['spec']}::{test['name']}: {in_words(test, test['expect'])}"
        for test in tests
        if test["outcome"] == "failed"
    ]


def tests_document(data: _Data) -> Document:
    """Return a line for each test that fails, then how many pass, by spec."""
    counts: dict[str, dict[str, int]] = {}
    for test in data["tests"]:
        of_spec = counts.setdefault(test["spec"], {"passed": 0, "failed": 0})
        of_spec[test["outcome"]] += 1
    summary = [
        f"{spec}: " + ", ".join(f"{number} {word}" for word, number in numbers.items() if number or word == "passed")
        for spec, numbers in counts.items()
    ]
    notes = [f"note: {note}" for note in data["notes"]] + [
        f"not reached: {line}" for line in data["limits"]["exceeded"]
    ]
    mutants = [
        line for spec in dict.fromkeys(mutant["spec"] for mutant in data["mutants"]) for line in _mutants(spec, data)
    ]
    return Document("assay test", [Lines([*failed_tests(data["tests"]), *summary, *mutants, *notes])])


_WORDS = {"killed": "killed", "seen": "seen", "survives": "survive", "undecided": "undecided"}


_VERDICTS = {"pass": "passes, then fails", "fail": "fails, then passes"}


def _mutants(spec: str, data: _Data) -> Iterator[str]:
    """Yield a line for each mutant of a spec that shows and no test kills, then how many there are of each kind."""
    mutants = [mutant for mutant in data["mutants"] if mutant["spec"] == spec]
    for mutant in mutants:
        if mutant["outcome"] in ("seen", "survives"):
            where = f" in {counted(mutant['rows'], 'row')}" if mutant["rows"] else ""
            name = " ".join(filter(None, (mutant["check"], mutant["operator"], mutant["change"])))
            before, after = (
                "none" if mutant[side] is None else plain_number(mutant[side]) for side in ("before", "after")
            )
            told = f"reward {before}, then {after}"
            if before == after:  # the verdict differs
                told = f"reward {before} {_VERDICTS.get(mutant['case']['expect'], '')}".strip()
            text = "null" if mutant["text"] is None else quoted(mutant["text"])
            yield printable(f"{mutant['outcome'].upper()} {spec}: {name}{where}: {told}, on {text}")
    counts = [
        f"{number} {word}" for kind, word in _WORDS.items() if (number := sum(m["outcome"] == kind for m in mutants))
    ]
    yield f"{spec}: {counted(len(mutants), 'mutant')}: {', '.join(counts)} · score {percent(score_of(mutants))}"
