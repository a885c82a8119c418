"""The tests of specs as a document."""

from collections.abc import Mapping
from typing import Any

from assay.insight.testing.expectations import in_words
from assay.writing.documents import Document, Lines

_Data = Mapping[str, Any]


def tests_document(data: _Data) -> Document:
    """Return a line for each test that fails, then how many pass, by spec."""
    failing = [
        f"FAILED {test['spec']}::{test['name']}: {in_words(test, test['expect'])}"
        for test in data["tests"]
        if test["outcome"] == "failed"
    ]
    counts: dict[str, dict[str, int]] = {}
    for test in data["tests"]:
        of_spec = counts.setdefault(test["spec"], {"passed": 0, "failed": 0})
        of_spec[test["outcome"]] += 1
    summary = [
        f"{spec}: " + ", ".join(f"{number} {word}" for word, number in numbers.items() if number or word == "passed")
        for spec, numbers in counts.items()
    ]
    notes = [f"note: {note}" for note in data["notes"]]
    return Document("assay test", [Lines([*failing, *summary, *notes])])
