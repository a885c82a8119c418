"""Patterns made to be dear: of a spec or of a row, they cost their row and nothing else."""

import json
import subprocess
import sys

import pytest
from cases import sized

BUDGET = 500_000_000
"""Bytes that the process may grow by, whatever patterns there are: caches and all."""

BOMBS = {
    "nested": ("(?:" * 22 + "a" + ")+" * 22, "a", 1.0),
    "nested deeper": ("(?=a)" + "(?:" * 100 + "a" + ")+" * 100 + "$", "a" * 40 + "!", 0.0),
    "nested too deeply": ("(?:" * 420 + "a" + ")+" * 420, "a", 1.0),
    "doubling": ("(?:" * 12 + "a" + "{2,})" * 12 + "$", "a" * 500 + "!", 0.0),
    "counted": ("(?:(?:a{1000}){1000}){1000}", "a" * 20_000, 0.0),
    "counted words": (r"(?:\w{1,500}\s){1,500}x", "abc " * 600, 0.0),
    "wide classes": ("(?i)" + "[!-\uffff]" * sized(60, 20), "a" * 60, 1.0),
    "many classes": ("(?i)" + "".join(f"[a{chr(0x4E00 + at)}]" for at in range(4_000)), "a" * 4_000, 1.0),
    "long": ("ab" * 100_000, "ab" * 100_001, 1.0),
    "alternatives": ("|".join(f"w{at}" for at in range(sized(10_000, 3_000))) + "|(?=b)", "b", 1.0),
}

CHILD = r"""
import json, resource, sys, warnings
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import assay

def size():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()

assay.score([{"completion": "a", "fn_name": "regex_match", "expected": "(?<!x)a"}])
before, bombs = size(), json.load(sys.stdin)
words = [(rf"^\W*(?:\w+\W+){{{100 + at},{300 + at}}}$", "a b " * 60, None) for at in range(int(sys.argv[1]))]
rows = [{"completion": text, "fn_name": "regex_match", "expected": pattern} for pattern, text, _ in [*bombs, *words]]
scored = assay.score([*rows, *(row | {"params": {"ignore_case": True}} for row in rows)])
checks = [{"type": "regex", "pattern": pattern} for pattern, _, _ in bombs]
one_each = [assay.score([{"completion": bomb[1]}], {"checks": [check]}) for check, bomb in zip(checks, bombs)]
json.dump({
    "rows": scored["reward"].to_list()[:len(bombs)],
    "specs": [one["reward"][0] for one in one_each],
    "errors": [error for error in (*scored["error"], *(one["error"][0] for one in one_each)) if error],
    "grown": size() - before,
}, sys.stdout)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
def test_patterns_of_a_spec_and_of_rows_stay_within_their_budget():
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(sized(40, 8))],
        input=json.dumps([*BOMBS.values()]),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout)
    wanted = dict(zip(BOMBS, (verdict for *_, verdict in BOMBS.values()), strict=True))
    assert dict(zip(BOMBS, found["rows"], strict=True)) == wanted
    assert dict(zip(BOMBS, found["specs"], strict=True)) == wanted
    assert found["errors"] == []
    assert found["grown"] < BUDGET
