"""The ten checks by promptfoo's assertions, in Node: ``make promptfoo``."""

import json
import os
import subprocess
from pathlib import Path

from harness.generate import CACHE


def prepare(verifiers, frame):
    node = subprocess.Popen(  # noqa: S603  (our own script)
        ["node", Path(__file__).with_suffix(".mjs"), CACHE / "promptfoo"],  # noqa: S607  (the one on the path)
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "LOG_LEVEL": "error"},
    )
    assert _asked(node, json.dumps(frame["completion"].to_list())) == "ready"
    return node, [spec.id for verifier in verifiers for spec in verifier.checks]


def run(prepared, frame):
    del frame
    node, names = prepared
    scored = json.loads(_asked(node, "go"))
    return dict(zip(("reward", *names), map(list, zip(*scored, strict=True)), strict=True))


def _asked(node, line):
    node.stdin.write(f"{line}\n")
    node.stdin.flush()
    return node.stdout.readline().rstrip("\n")
