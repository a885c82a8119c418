"""The release that Assay's rubrics stand in for: ``pip install 'assay[bench]'``."""

import importlib
import logging
import warnings

from contenders.rubric_rollouts import arguments, run

__all__ = ["prepare", "run"]


def prepare(make, frame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = importlib.import_module("verifiers")
    logging.getLogger("verifiers").setLevel(logging.ERROR)
    return make(peer), arguments(frame)
