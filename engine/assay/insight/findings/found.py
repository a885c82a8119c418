"""The findings in facts, the weightiest first; those in the counts of a run, without a look at its rows."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from assay.aggregating.templates import templates
from assay.insight.findings import checks
from assay.insight.findings.facts import Facts, Tally
from assay.insight.findings.finding import Finding
from assay.insight.findings.limits import FEW_ROWS, MOST_FINDINGS
from assay.scoring.score_columns import recorded_columns
from assay.scoring.summary import Summary

Kind = Callable[[Facts], Iterator[Finding]]

OF_FEW: Mapping[str, Kind] = {"errors": checks.errors, "unscored": checks.unscored}
"""What finds the kinds that need no rates."""
OF_COUNTS: Mapping[str, Kind] = {**OF_FEW, "dead": checks.dead, "saturated": checks.saturated}
"""What finds the kinds that counts alone tell."""


def found_in(facts: Facts, kinds: Mapping[str, Kind]) -> list[Finding]:
    """Return the findings, the weightiest first."""
    kinds = kinds if facts.scored >= FEW_ROWS else OF_FEW
    found = [finding for kind in kinds.values() for finding in kind(facts)] if facts.rows else []
    return sorted(found, key=lambda finding: finding.order)[:MOST_FINDINGS]


def found_in_summary(summary: Summary) -> list[Finding]:
    """Return the findings that the counts of a run tell."""
    forms = [json.loads(verifier["canonical"]) for verifier in summary.verifiers] if summary.root else []
    recorded = recorded_columns(summary.verifiers, forms) if summary.root else []
    columns = {column.name: column for column in recorded if column.column in summary.columns}
    tallies = [
        Tally(columns[check.id], place, check.rows, check.failures, check.errors)
        for place, check in enumerate(summary.checks)
        if check.id in columns
    ]
    errors = {(tally.check.name, ""): tally.errors for tally in tallies if tally.errors}
    unscored = Counter[str]()
    for words, rows in zip(templates(summary.unscored), summary.unscored.values(), strict=True):
        unscored[words] += rows
    return found_in(Facts(summary.rows, summary.scored, tallies, errors, unscored), OF_COUNTS)
