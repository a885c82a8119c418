"""Tables of a report as Polars frames."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import polars as pl

from assay.errors import UsageError, did_you_mean, printable

FrameKind = Literal["checks", "findings", "heat", "steps"]

_TEXT, _WHOLE, _REAL = pl.String, pl.Int64, pl.Float64
_CHECKS: dict[str, Any] = dict.fromkeys(("name", "verifier", "id", "type", "role", "group", "title"), _TEXT)
_CHECKS |= {"weight": _REAL, "penalty": _REAL, "required": pl.Boolean, "effect": _REAL, "loss": _REAL, "rows": _WHOLE}
_CHECKS |= {"mean": _REAL, "pass_rate": _REAL, "failures": _WHOLE, "errors": _WHOLE, "status": _TEXT}
_CHECKS |= dict.fromkeys(("share_of_reward_variance", "rest_correlation", "separates"), _REAL)
_FINDINGS: dict[str, Any] = {"kind": _TEXT, "level": _WHOLE, "check": _TEXT, "model": _TEXT, "rows": _WHOLE}
_FINDINGS |= {"of": _WHOLE, "effect": _REAL, "cause": _TEXT, "title": _TEXT, "text": _TEXT, "link": _TEXT}
_HEAT: dict[str, Any] = {"model": _TEXT, "check": _TEXT, "rows": _WHOLE, "passes": _WHOLE, "pass_rate": _REAL}
_STEPS: dict[str, Any] = {"rows": _WHOLE, "scored": _WHOLE, "mean": _REAL, "low": _REAL, "high": _REAL}
_STEPS |= {"pass_rate": _REAL, "errors": _WHOLE, "length": _REAL}


def frame_of(kind: FrameKind, report: Mapping[str, Any]) -> pl.DataFrame:
    """Return a table of a report, of its ``as_json()`` and its ``heat``."""
    if kind not in (kinds := get_args(FrameKind)):
        hint = did_you_mean(str(kind), kinds) or f"Tables: {', '.join(kinds)}"
        raise UsageError(f"{printable(str(kind))}: there is no such table.", hint)
    if kind in ("checks", "findings"):
        schema = _CHECKS if kind == "checks" else _FINDINGS
        return pl.DataFrame(
            [[entry.get(name) for name in schema] for entry in report.get(kind, ())], schema, orient="row"
        )
    return _heat(report) if kind == "heat" else _steps(report)


def _heat(report: Mapping[str, Any]) -> pl.DataFrame:
    heat = report["heat"]
    rows = [
        (model, check, cell["rows"], cell["passes"], cell["passes"] / cell["rows"])
        for model, cells in zip(heat["models"], heat["cells"], strict=True)
        for check, cell in zip(heat["checks"], cells, strict=True)
        if cell
    ]
    return pl.DataFrame(rows, _HEAT, orient="row")


def _steps(report: Mapping[str, Any]) -> pl.DataFrame:
    entries = report["by"].get("step", {"entries": []})["entries"]
    rows = [entry | dict(zip(("low", "high"), entry["ci95"] or (None, None), strict=True)) for entry in entries]
    columns = {name: [row[name] for row in rows] for name in _STEPS}
    steps = pl.Series("step", [entry["of"]["step"] for entry in entries])
    return pl.DataFrame(columns, _STEPS).insert_column(0, steps)
