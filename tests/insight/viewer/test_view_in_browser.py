"""``assay view`` in a real browser: the page asks its own server only, and shows what it answers."""

import json
import subprocess
import sys

import pytest
from browser import CHROMIUM, Browser
from waiting import until

import assay

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]

CHECKS = [
    {"id": "right", "type": "equals", "value": {"column": "answer"}},
    {"id": "brief", "type": "max_length", "value": 5},
]


def test_rows_are_asked_for_and_shown(tmp_path):
    rows = [
        {
            "task_id": f"t{at % 30}",
            "model": "ab"[at % 2],
            "prompt": f"<b>{at}?",
            "answer": str(at),
            "completion": f"{at}{' dollars' * (at % 2)}",
        }
        for at in range(120)
    ]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assay.score_file(tmp_path / "rollouts.jsonl", {"id": "planted", "checks": CHECKS}, tmp_path / "rewards.parquet")
    command = [sys.executable, "-m", "assay", "view", "rewards.parquet"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            with Browser(tmp_path / "profile") as browser:
                browser.open(f"{address}#failed=right&model=b")
                texts = "document.querySelector('main')?.innerText ?? ''"
                until(lambda: "60 rows" in browser.evaluate(texts))
                assert "dollars" in browser.evaluate(texts)
                browser.evaluate("location.hash = '#row=3&check=right'")
                until(lambda: "<b>3?" in browser.evaluate(texts))
                browser.evaluate("location.hash = '#where=' + encodeURIComponent('no such')")
                until(lambda: "--where no such" in browser.evaluate(texts))
                until(
                    lambda: not browser.evaluate("document.querySelector('main').innerText.includes('is being made')")
                )
                asked = [
                    params["request"]["url"] for name, params in browser.events if name == "Network.requestWillBeSent"
                ]
                assert [url for url in asked if not url.startswith(address)] == []
                said = [
                    params for name, params in browser.events if name in ("Log.entryAdded", "Runtime.exceptionThrown")
                ]
                assert [entry for entry in said if "400" not in json.dumps(entry)] == []
        finally:
            server.kill()
