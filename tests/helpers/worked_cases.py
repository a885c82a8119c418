"""Worked cases of what the definitions say: they are not part of the project."""

import json
from functools import cache, reduce
from operator import getitem

import pytest
from cases import DATA


@cache
def _read(path):
    return json.loads(path.read_text("utf-8"))


def _path(name):
    return DATA / f"{name}_goldens.json"


def worked(name, *keys):
    """The cases of a file below keys; skips the test where the file is not there."""
    if not _path(name).exists():
        pytest.skip(f"the worked cases are not there: {_path(name)}")
    return reduce(getitem, keys, _read(_path(name)))


def to_try(name, *keys):
    """The same as parameters of a test: none where the file is not there, which skips it."""
    return worked(name, *keys) if _path(name).exists() else ()
