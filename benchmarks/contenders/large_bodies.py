"""One large body for ``assay serve``, beside a client that asks for one row all the time. Prints as JSON the status, how long the answer
took, by how many times the size of the body the server's memory grew, and how long the other client waited at most.

The other client's wait is also printed as CPU time of the server: on a busy machine, the wall time is that of others.

Usage: large_bodies.py SPEC SHAPE SIZE
"""

import http.client
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.bodies import content_of

ROW = json.dumps({"completion": "it is 4", "answer": "4"})


def ask(port, path, content):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, content)
    status = connection.getresponse().status
    connection.close()
    return status


def timed(port, path, content):
    began = time.perf_counter()
    return ask(port, path, content), time.perf_counter() - began


def memory(process, name):
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def cpu_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def run(spec, shape, size):
    path, content = content_of(shape, size)
    command = [sys.executable, "-m", "assay", "serve", spec, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, ThreadPoolExecutor(1) as thread:  # noqa: S603  (our own program)
        try:
            port = int(server.stderr.readline().rsplit(":", 1)[1])
            ask(port, "/reward", ROW)
            before = memory(server.pid, "VmRSS")
            large, waits = thread.submit(timed, port, path, content), []
            while not large.done():
                cpu = cpu_seconds(server.pid)
                status, seconds = timed(port, "/reward", ROW)
                assert status == 200
                waits.append((seconds, cpu_seconds(server.pid) - cpu))
            status, seconds = large.result()
            factor = (memory(server.pid, "VmHWM") - before) / len(content)
        finally:
            server.kill()
    wait, wait_cpu = (max(times) for times in zip(*waits, strict=True))
    return {"status": status, "seconds": seconds, "factor": factor, "wait": wait, "wait_cpu": wait_cpu}


if __name__ == "__main__":
    *names, number = sys.argv[1:]
    sys.stdout.write(json.dumps(run(*names, int(number))))
