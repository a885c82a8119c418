"""A function for the rows of runs that are killed: it waits for a file, says which process waits, and may end that.

Signals then reach a run in its midst, however fast it is and however late they are sent.
"""

import os
import signal
import sys
import time
from pathlib import Path

from assay.fns import register_fn


@register_fn("gated")
def gated(model_output, expected, params):
    """1.0 for a text of even length; ``expected`` is the folder of the gate."""
    word, _, name = model_output.partition(" ")
    if word == "waits":
        node = sys.modules["ray"].get_runtime_context().get_node_id() if "ray" in sys.modules else "here"
        Path(expected, f"{name}.{os.getpid()}.{node}").touch()
        while not Path(expected, "open").exists():
            time.sleep(0.005)
    if word == "dies" and not Path(expected, "mended").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return float(len(model_output) % 2 == 0)
