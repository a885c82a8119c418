"""What is drawn by a seed: each case is known by its seed and its number, and ends somehow, or as none may."""

import os
import shutil
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


def fuzz(outcome, cases, seed=SEED):
    """Return how the cases ended, and what is wrong; an outcome is a kind of end, or a count of several, and a problem or nothing."""
    ends, problems = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(cases):
            folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
            try:
                end, problem = outcome(seed, number, folder)
            except BaseException as error:  # a panic, too
                if isinstance(error, KeyboardInterrupt):
                    raise
                end, problem = "raised", traceback.format_exc(limit=-6)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            ends.update([end] if isinstance(end, str) else end)
            problems += [f"case {seed}/{number}: {end}: {problem}"] if problem else []
    return ends, problems
