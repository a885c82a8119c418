"""Runs on a disk that fails: every call of a kind, one after another, until a run passes untouched. A program of its own.

python faulty.py KIND OUT INPUT FOLDER     prints, as JSON, how many calls failed and what the runs said
"""

import contextlib
import ctypes
import errno
import itertools
import json
import shutil
import sys
from pathlib import Path

import assay

KINDS = {"write": 1, "fsync": 2, "rename": 4, "read": 8, "open": 16}
OLD = b"what was there before"
SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}


class Disk:
    """The one that ``faulty.c`` makes."""

    def __init__(self, folder):
        self.library = ctypes.CDLL(None)
        self.library.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_char_p]
        self.folder = str(folder).encode()

    @contextlib.contextmanager
    def failing(self, kind, nth):
        """What comes is told whether the n-th call of a kind was made, and failed."""
        fired = []
        self.library.fault_arm(KINDS[kind], nth, errno.EIO if kind == "read" else errno.ENOSPC, self.folder)
        try:
            yield fired
        finally:
            fired += [True] * self.library.fault_fired()
            self.library.fault_arm(0, 0, 0, b"")


def content(path):
    if path.is_file():
        return path.read_bytes()
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def into_a_file(source, target):
    assay.score_file(source, SPEC, target, overwrite=True)


def into_a_folder(source, target):
    assay.score_file(source, SPEC, f"{target}/", part_bytes=1)


def main(out, source, folder):
    run = into_a_folder if out == "/" else into_a_file
    suffix = out.removesuffix("/")
    run(source, folder / f"whole{suffix}")
    whole = content(folder / f"whole{suffix}")
    return {kind: fail_each(kind, run, source, folder / f"out{suffix}", whole) for kind in KINDS}


def fail_each(kind, run, source, target, whole):
    folder, said = target.parent, set()
    disk = Disk(folder)
    for failed in itertools.count():
        if run is into_a_file:
            target.write_bytes(OLD)
        wrong = None
        with disk.failing(kind, failed + 1) as fired:
            try:
                run(source, target)
            except assay.AssayError as stopped:
                wrong = f"{type(stopped).__name__}: {stopped.fact}"
        if wrong is not None:
            said.add(wrong)
            left = [one for one in folder.rglob("*") if one.name.endswith((".tmp", ".lock", "_lock"))]
            assert not left, (failed, wrong, left)
            assert run is into_a_folder or content(target) == OLD, (failed, wrong)
        if run is into_a_folder:  # what is there is whole, and a run goes on from it
            run(source, target)
        if run is into_a_folder or wrong is None:
            assert content(target) == whole, (failed, wrong)
        if run is into_a_folder:
            shutil.rmtree(target)
        if not fired:
            return {"failed": failed, "said": sorted(said)}
    raise AssertionError


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:3], Path(sys.argv[3]))))  # noqa: T201
