"""Results in whose pages or footers bits are flipped, or that are cut: each command answers, or ends with exit code 2 and a sentence."""

import os
import random

import pytest
from cases import sized
from typer.testing import CliRunner

import assay
from assay.cli.main import app

CASES = int(os.environ.get("ASSAY_FUZZ_RESULTS", sized("300", "10")))
"""How many damaged files; ASSAY_FUZZ_RESULTS=20000 for a thorough look, of an hour."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")
SPEC = '{"id": "v", "checks": [{"id": "a", "type": "contains", "value": "4"}, {"id": "b", "type": "max_length", "value": 14}]}'
COMMANDS = (
    "report bad.parquet --json", "show bad.parquet --json", "diff bad.parquet good.parquet --json",
    "groups bad.parquet --json", "tripwire bad.parquet --json", "verify bad.parquet --json",
    "whatif bad.parquet --set a=2 --json", "whatif bad.parquet --set a=2 --out out.parquet --overwrite",
    "score in.jsonl --spec v.json --reuse bad.parquet --out out.parquet --overwrite",
)  # fmt: skip
_TAIL = 8  # length of the footer, and PAR1


@pytest.fixture
def good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.json").write_text(SPEC)
    rows = [
        {"task_id": f"t-{at % 8}", "step": at % 5, "completion": f"it is {at % 9} {'x' * (at % 13)}"}
        for at in range(64)
    ]
    assay.score_file(rows, "v.json", "good.parquet")
    (tmp_path / "in.jsonl").write_text("\n".join(f'{{"completion": "{at}"}}' for at in range(3)))
    content = (tmp_path / "good.parquet").read_bytes()
    return content, len(content) - _TAIL - int.from_bytes(content[-_TAIL:][:4], "little")


def damaged(chance, content, footer):
    kind = chance.random()
    if kind < 0.1:
        return content[: chance.randrange(len(content))]
    at = chance.randrange(4, footer) if kind < 0.8 else chance.randrange(footer, len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def test_every_command_answers_or_ends_in_words(tmp_path, good):
    for number in range(CASES):
        chance = random.Random(f"{SEED} {number}")
        (tmp_path / "bad.parquet").write_bytes(damaged(chance, *good))
        for command in chance.sample(COMMANDS, 3):
            done = CliRunner().invoke(app, command.split())
            assert done.exception is None or isinstance(done.exception, SystemExit), (number, command, done.exception)
            assert done.exit_code in (0, 2, 3), (number, command, done.output)
            assert done.exit_code != 2 or "error: " in done.stderr, (number, command)


def test_a_new_result_from_pages_that_cannot_be_read_is_refused(tmp_path, good):
    content, footer = good
    (tmp_path / "bad.parquet").write_bytes(content[:4] + b"\0" * (footer - 4) + content[footer:])
    for command in COMMANDS:
        done = CliRunner().invoke(app, command.split())
        assert (command, done.exit_code) == (command, 2)
        assert "error: " in done.stderr
    assert not (tmp_path / "out.parquet").exists()
