"""Where the time of the ten-check run goes, stage by stage, beside what it was before: for the page of the stages."""

import pytest

from harness.generate import ABSENT, ROWS
from harness.stages import STAGES, as_markdown, measure, read_before
from harness.table import line, per_row


def test_stages(table, results):
    after = measure() or pytest.skip(ABSENT)
    (results / "stages.md").write_text(as_markdown(after, read_before()), "utf-8")
    for name in STAGES:
        took = after["figures"][name]
        table.append(line("cut off after a stage", name, per_row(took["seconds"], ROWS), per_row(took["cpu"], ROWS)))
