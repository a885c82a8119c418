"""The tests of specs as XML of JUnit, for the pages of a CI."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from xml.sax.saxutils import quoteattr

from assay.errors import printable
from assay.insight.testing.expectations import in_words


def junit_xml(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return a suite for each spec, and its tests: failures, and as errors what could not be scored; without times."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for spec, group in groupby(tests, key=lambda test: str(test["spec"])):
        cases = [*group]
        kinds = [_kind(case) for case in cases]
        counts = f'tests="{len(cases)}" failures="{kinds.count("failure")}" errors="{kinds.count("error")}"'
        lines.append(f"  <testsuite name={_attribute(spec)} {counts}>")
        for case, kind in zip(cases, kinds, strict=True):
            head = f"    <testcase classname={_attribute(spec)} name={_attribute(case['name'])}"
            if kind:
                message = _attribute(in_words(case, case["expect"]))
                lines += [f"{head}>", f"      <{kind} message={message}/>", "    </testcase>"]
            else:
                lines.append(f"{head}/>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _kind(test: Mapping[str, Any]) -> str:
    if test["outcome"] == "passed":
        return ""
    return "error" if test["error"] else "failure"


def _attribute(text: str) -> str:
    """Quote a text; what XML cannot hold is shown as an escape."""
    return quoteattr(printable(text))
