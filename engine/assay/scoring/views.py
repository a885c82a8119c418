"""A summary as text and as HTML; what comes from data is escaped. Summaries import this module, so it names no types of theirs."""

from html import escape
from typing import Any

from assay.errors import counted, printable, top

_CHECKS, _NOTES, _WIDTH = 60, 10, 100


def as_text(summary: Any) -> str:
    """Return a summary as lines of text."""
    lines = [summary.headline, *_remarks(summary)]
    checks = summary.checks[:_CHECKS]
    width = max((len(printable(check.id)) for check in checks), default=0)
    for check in checks:
        numbers = f"{_mean(check):>6}  {counted(check.failures, 'failure')}"
        lines.append(f"  {printable(check.id):{width}}  {numbers}{_reason(check)}")
    if (more := len(summary.checks) - len(checks)) > 0:
        lines.append(f"  … and {counted(more, 'check')} more")
    return "\n".join(lines)


def as_html(summary: Any) -> str:
    """Return a summary as a table for notebooks."""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("check", "mean", "failures", "most frequent reason"))
    rows = [
        f'<tr><th scope="row">{_html(check.id)}</th><td>{_mean(check)}</td><td>{check.failures:,}</td>'
        f"<td>{_html(_reason(check).strip())}</td></tr>"
        for check in summary.checks[:_CHECKS]
    ]
    more = len(summary.checks) - len(rows)
    rows += [f'<tr><td colspan="4">… and {counted(more, "check")} more</td></tr>'] if more > 0 else []
    remarks = "".join(f"<li>{_html(remark)}</li>" for remark in _remarks(summary))
    return (
        f"<p><strong>{_html(summary.headline)}</strong></p>{f'<ul>{remarks}</ul>' if remarks else ''}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _html(text: str) -> str:
    return escape(printable(text))


def _mean(check: Any) -> str:
    return "–" if check.mean is None else f"{check.mean:.4f}"


def _reason(check: Any) -> str:
    if not check.reasons:
        return ""
    ((reason, rows),) = top(check.reasons, 1)
    text = printable(reason)
    return f"  {rows:,}× {text if len(text) <= _WIDTH else f'{text[: _WIDTH - 1]}…'}"


def _remarks(summary: Any) -> list[str]:
    problems = [f"problem: {problem}" for problem in summary.problems]
    unmet = [f"not reached: {words}" for words in summary.unmet]
    errors = [f"{counted(summary.errors, 'row')} with an error"] if summary.errors else []
    notes = summary.notes
    shown = [f"note: {note}" for note in notes[:_NOTES]]
    shown += [f"… and {counted(len(notes) - _NOTES, 'note')} more"] if len(notes) > _NOTES else []
    return [printable(line) for line in (*problems, *unmet, *errors, *shown)]
