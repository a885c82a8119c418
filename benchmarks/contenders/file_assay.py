"""``assay score``."""

import sys

from assay.cli.main import main


def prepare(spec, files):
    rollouts, out = files
    return ["assay", "score", rollouts, "--spec", spec, "--out", out, "--overwrite"]


def run(prepared, files):
    del files
    sys.argv = prepared
    main()
