"""The release that Assay's rubrics stand in for: ``pip install 'assay-rollouts[bench]'``."""

import importlib
import logging
import warnings

from contenders.five_functions import make
from contenders.rubric_rollouts import arguments, run, run_rubric

__all__ = ["arguments", "peer", "prepare", "run", "run_rubric"]


def peer():
    """Import the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("verifiers")
    logging.getLogger("verifiers").setLevel(logging.ERROR)
    return module


def prepare(spec, frame):
    del spec
    return make(peer()), arguments(frame)
