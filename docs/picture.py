"""The picture of the viewer in README.md: a run on GSM8K in which one model's answers have a unit, and some golds are missing.

    python docs/picture.py gsm8k_rollouts.parquet docs/viewer.png

The rollouts have ``task_id``, ``model``, ``prompt``, ``completion`` that ends with ``A: NUMBER``, and ``answer``; it takes Chromium.
"""

import base64
import sys
import tempfile
from pathlib import Path

import polars as pl

import assay

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))

from browser import Browser

SPEC = {
    "id": "planted",
    "checks": [
        {"id": "right", "type": "equals", "value": {"column": "answer"}, "on": [{"regex": "A: (.*)$"}], "weight": 3},
        {"id": "shows-work", "type": "regex", "pattern": "<<[^>]+>>"},
        {"id": "brief", "type": "max_length", "value": 500},
    ],
}
MODEL = "175b_verification"
WIDTH, HEIGHT = 1400, 1080


def planted(rollouts: str) -> pl.DataFrame:
    """Return rollouts with the two faults."""
    unit = pl.when(pl.col("model") == MODEL).then(pl.lit(" dollars.")).otherwise(pl.lit(""))
    no_gold = pl.int_range(pl.len()) % 37 == 0
    return pl.read_parquet(rollouts).with_columns(
        completion=pl.col("completion") + unit, answer=pl.when(~no_gold).then("answer")
    )


def picture(rollouts: str, out: str) -> None:
    """Score the rollouts and take a picture of their page, at the rows of the first finding."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planted(rollouts).write_parquet(folder / "rollouts.parquet")
        assay.score_file(folder / "rollouts.parquet", SPEC, folder / "rewards.parquet")
        page = folder / "page.html"
        page.write_text(assay.report(folder / "rewards.parquet").html(), "utf-8")
        with Browser(folder / "profile") as browser:
            browser.show(WIDTH, HEIGHT)
            browser("Emulation.setScrollbarsHidden", hidden=True)
            browser.open(f"{page.as_uri()}#failed=right&model={MODEL}")
            browser.evaluate(
                "document.querySelector('.list tbody tr:not(:has(ins)) a').click()"
            )  # only the unit is wrong
            browser.evaluate("new Promise((done) => setTimeout(() => done(scrollTo(0, 0)), 300))")
            Path(out).write_bytes(base64.b64decode(browser("Page.captureScreenshot")["data"]))


if __name__ == "__main__":
    picture(*sys.argv[1:])
