"""Signals: what an interrupted run leaves."""

import subprocess
import sys

LEFT = """
import _thread, threading
from types import SimpleNamespace
from assay.system import signals

begun, released, ended, looks = *(threading.Event() for _ in range(3)), 0

def left():
    begun.set()
    released.wait()
    ended.set()

def look(seconds):
    global looks
    looks += 1
    if looks == 20:
        released.set()
        ended.wait()

_thread.start_new_thread(left, ())  # like those of the engine, which Python has not started
begun.wait()
signals.time = SimpleNamespace(monotonic=lambda: 0.0, sleep=look)
signals.await_engine()
print(looks > 20)
"""


def test_a_program_ends_after_the_threads_that_an_interrupted_run_has_left():
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
