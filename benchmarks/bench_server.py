"""``assay serve`` on loopback: a thousand requests a second from 32 clients, among slow, cut and large ones, killed halfway; and bodies
that would take much, beside a client that asks for one row.
"""

import json
import os
import subprocess
import sys

import pytest

from harness.bodies import SHAPES
from harness.generate import ROWS
from harness.language import spec_file
from harness.process import HERE
from harness.table import at_least, at_most, line

CLIENTS, RATE = 32, 1_000
SECONDS = 60 if ROWS >= 100_000 else 4
SIZES = (3, 30) if ROWS >= 100_000 else (3,)
SPEC = {"id": "math", "checks": [{"id": "has", "type": "contains", "value": {"column": "answer"}}]}


def test_server(table):
    program = HERE / "contenders" / "reward_clients.py"
    command = [sys.executable, program, spec_file("served", SPEC), *map(str, (CLIENTS, RATE, SECONDS))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  (our own program)
    became = json.loads(done.stdout)
    assert became["said"] == ""
    assert not {"wrong", "lost"} & became.keys(), became
    assert became["answers"] == became["asked"] > 0
    assert {"large", "slow", "cut"} <= became.keys()
    served = became["answers"] / (became["seconds"] - became["downtime"])
    what = f"{RATE:,} requests a second, {CLIENTS} clients, {SECONDS} s"
    goal = at_least(served, 0.99 * RATE)
    table.append(
        line(what, "assay serve, requests a second", f"{served:,.0f}", f"{became['cpu']:.2f} cores", goal=goal)
    )
    for name in ("p50", "p99"):
        table.append(line(what, f"assay serve, {name}", f"{1e3 * became[name]:.1f} ms"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("megabytes", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_large_bodies(table, shape, megabytes):
    program = HERE / "contenders" / "large_bodies.py"
    command = [sys.executable, program, spec_file("served", SPEC), shape, str(megabytes * 1_000_000)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603  (our own program)
    became = json.loads(done.stdout)
    assert became["status"] in (200, 400, 413)
    what = f"a body of {megabytes} MB, {shape}"
    memory = at_most(became["factor"], 10, " × the body")
    table.append(
        line(what, f"assay serve, {became['status']}, memory", f"{became['factor']:.1f} × the body", goal=memory)
    )
    wait = at_most(became["wait"], 1, " s")
    cpu = f"{became['wait_cpu']:.2f} s"
    table.append(line(what, "assay serve, another client's row", f"{became['wait']:.2f} s", cpu, goal=wait))
