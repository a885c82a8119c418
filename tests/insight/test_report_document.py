"""Reports as documents: the commands of findings, and what a terminal and Markdown have."""

import shlex

import pytest

from assay.insight.reports.document import command_of


@pytest.mark.parametrize(
    ("filter", "command"),
    [
        ({"failed": ["right"], "where": ["model = 'a b'"]}, """assay show r.parquet --failed right --where "model = 'a b'\""""),
        ({"where": ['model = "$HOME"']}, """assay show r.parquet --where 'model = "$HOME"'"""),
        ({"failed": ["-x"]}, "assay show r.parquet --failed=-x"),
        ({"where": ["model = 'it\\s\x1b'"]}, r"assay show r.parquet --where $'model = \'it\\s\U0000001b\''"),
        ({"row": list(range(50))}, f"assay show r.parquet {' '.join(f'--row {at}' for at in range(10))}"),
        ({}, "assay show r.parquet"),
    ],
)  # fmt: skip
def test_a_finding_has_the_command_that_shows_its_rows(filter, command):  # noqa: A002  (the word of the JSON)
    assert command_of({"filter": filter}, "r.parquet") == command


@pytest.mark.parametrize("value", ["$(rm x)", "`rm x`", "a'b\"c", "!!", "\\", "a;b", "", "*", "#", "é"])
def test_a_shell_gets_values_as_they_are(value):
    words = shlex.split(command_of({"filter": {"failed": [value]}}, f"{value}.parquet"))
    assert words == ["assay", "show", f"{value}.parquet", "--failed", value]
