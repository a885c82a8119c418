"""Charts and tables of a report: SVG that stands alone and runs nothing, and Polars frames."""

import dataclasses
import xml.etree.ElementTree as ET

import polars as pl
import pytest
from cases import each

import assay

HOSTILE = "</text></svg><script>alert(1)</script>\u202e\x1b\x00\ud800&\"'"
SPEC = {
    "checks": [{"id": "right", "type": "contains", "value": "18"}, {"id": "long", "type": "min_length", "value": 12}]
}
ROWS = [
    {"task_id": f"t{at // 4}", "model": ("elm", "oak", None)[at % 3], "step": at // 8, "completion": ("It is 18", "I do not know")[at % 5 < 2]}
    for at in range(48)
]  # fmt: skip
CHARTS = ("rewards", "heat", "steps")


@pytest.fixture(scope="module")
def report():
    return assay.report(assay.score(ROWS, SPEC, keep="*"))


def texts(chart):
    return [text for element in ET.fromstring(chart.svg).iter() for text in (element.text,) if text]  # noqa: S314


@each("kind", CHARTS)
def test_a_chart_is_a_file_of_its_own(report, kind, tmp_path):
    chart = report.chart(kind)
    assert chart._repr_svg_() == chart.svg
    assert repr(chart) == f"<Chart: {chart.title}>"
    root = ET.fromstring(chart.svg)  # noqa: S314
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert chart.title in texts(chart)
    assert not {"script", "image", "foreignObject", "use"} & {element.tag.rpartition("}")[2] for element in root.iter()}
    for _ in range(2):  # a file that is there is replaced
        chart.save(tmp_path / "chart.svg")
        assert (tmp_path / "chart.svg").read_text("utf-8") == chart.svg
    assert [path.name for path in tmp_path.iterdir()] == ["chart.svg"]


def test_a_chart_says_what_it_shows(report):
    assert {"right", "long", "elm", "oak", "–"} <= {*texts(report.chart("heat"))}
    assert {"reward", "pass rate", "length"} <= {*texts(report.chart("steps"))}
    assert "reward" in texts(report.chart("rewards"))


@each(
    ("name", "message"),
    [
        ("chart.png", "chart.png: a chart is SVG; expected a name that ends in .svg."),
        ("chart", "Did you mean chart.svg?"),
        ("chart.svgz", "Did you mean chart.svg?"),
        ("nowhere/chart.svg", "there is no folder nowhere"),
    ],
)
def test_a_file_that_cannot_be_a_chart_is_refused(report, name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(assay.UsageError) as refused:
        report.chart("heat").save(name)
    assert message in str(refused.value)
    assert [*tmp_path.iterdir()] == []


def test_what_there_is_not_is_named(report):
    with pytest.raises(assay.UsageError, match="Did you mean `heat`"):
        report.chart("heats")
    with pytest.raises(assay.UsageError, match="Tables: checks, findings, heat, steps"):
        report.frame("x\x1b")


def test_frames_have_the_numbers_of_the_report(report):
    checks = report.frame("checks")
    assert checks.select("name", "rows", "failures").rows() == [("right", 48, 20), ("long", 48, 28)]
    heat = report.frame("heat")
    assert heat.filter(model="elm").select("check", "rows", "passes").rows() == [("right", 16, 9), ("long", 16, 7)]
    assert heat.group_by("check").agg(pl.col("rows").sum(), pl.col("passes").sum()).sort("check").rows() == [
        ("long", 48, 20),
        ("right", 48, 28),
    ]
    steps = report.frame("steps")
    assert steps.columns[:4] == ["step", "rows", "scored", "mean"]
    assert steps["step"].to_list() == list(range(6))


def test_findings_are_a_table_and_say_how_to_show_their_rows():
    spec = {"checks": [*SPEC["checks"], {"id": "dead", "type": "contains", "value": "zebra"}]}
    rewards = assay.score(ROWS * 4, spec, keep="*")
    report = assay.report(rewards)
    findings = report.frame("findings")
    assert findings.columns[:6] == ["kind", "level", "check", "model", "rows", "of"]
    assert ("dead", "dead", 192, 192) in findings.select("kind", "check", "rows", "of").rows()
    assert "assay.show(result, failed=[&#x27;dead&#x27;])" in report._repr_html_()
    assert (
        "&lt;/text&gt;" in dataclasses.replace(report, findings=[report.findings[0] | {"title": HOSTILE}])._repr_html_()
    )
    assert assay.show(rewards, failed=["dead"]).matching == 192


@each(
    "frame",
    [
        pl.DataFrame({"reward": [1.0, 0.5]}),
        pl.DataFrame({"reward": [None]}, schema={"reward": pl.Float64}),
        pl.DataFrame(schema={"reward": pl.Float64, "step": pl.Int64, "model": pl.String}),
        pl.DataFrame({"reward": [0.1, 0.2], "step": ["a", "b"], "model": [[1], [2]]}),
        pl.DataFrame({"reward": [1e300, -1e300, float("nan")], "step": [1, 2, None], "check/v/c": [1.0, None, 0.5]}),
    ],
)
def test_any_result_has_charts_and_frames(frame):
    report = assay.report(frame)
    for kind in CHARTS:
        ET.fromstring(report.chart(kind).svg)  # noqa: S314
    for kind in ("checks", "findings", "heat", "steps"):
        assert isinstance(report.frame(kind), pl.DataFrame)
    assert report._repr_html_().startswith('<div class="assay">')


def test_names_from_data_are_text_and_charts_stay_small(report):
    names = [f"{HOSTILE}{at}" for at in range(500)]
    cell = {"rows": 2, "passes": 1}
    heat = {"checks": names, "models": names, "reward": [0.5] * 500, "rows": [2] * 500, "cells": [[cell] * 500] * 500}
    checks = [{**report.checks[0], "name": name} for name in names]
    entries = [entry | {"checks": [0.5] * 500} for entry in report.by["step"]["entries"]]
    changed = dataclasses.replace(
        report, checks=checks, by={"step": {"entries": entries, "columns": ["step"], "values": 6}}
    )
    vars(changed)["heat"] = heat  # else it is read from the result
    for kind in CHARTS:
        svg = changed.chart(kind).svg
        assert len(svg.encode()) < 300_000
        ET.fromstring(svg)  # noqa: S314
    assert "… 460 more checks, 480 more models" in texts(changed.chart("heat"))
    html = changed._repr_html_()
    assert len(html.encode()) <= 100_000
    assert "<script" not in html
