"""Other files in a spec, beside it or below it: specs, and values of params. They are read with it, so that a spec's content is all that it says."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from assay.checks.base import Check
from assay.errors import SpecError, shown_path
from assay.system.documents import Document, read_document

_DEEPEST = 8
"""How many files may include each other."""

_MOST = 64
"""How many files one verifier may include in all."""


class IncludeError(ValueError):
    """A file that cannot be included; the message says why."""


@dataclass(frozen=True)
class Origin:
    """The file that a spec is read from.

    Attributes:
        file: Its path; None for a spec that is no file.
    """

    file: Path | None
    types: Callable[[Any], Mapping[str, type[Check]]]
    above: tuple[Path, ...] = ()
    all: list[Path] = field(default_factory=list)

    def open(self, path: str) -> "tuple[Document, Origin]":
        """Read a spec beside this one, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or write a group")
        file = _inside(self.file.parent, path)
        files = (*self.above, Path(os.path.realpath(self.file)))
        if file in files:
            names = " → ".join(shown_path(one.name) for one in (*files[files.index(file) :], file))
            raise IncludeError(f"the specs include each other: {names}")
        if len(files) > _DEEPEST:
            raise IncludeError(f"specs are nested more than {_DEEPEST} deep")
        return self._read(file), replace(self, file=file, above=files)

    def value(self, path: str) -> Any:
        """Return the content of a JSON file beside this spec, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or give the content itself")
        return self._read(_inside(self.file.parent, path)).data

    def _read(self, file: Path) -> Document:
        self.all.append(file)
        if len(self.all) > _MOST:
            raise IncludeError(f"more than {_MOST} files are included")
        try:
            return read_document(file)
        except SpecError as error:
            raise IncludeError(error.fact) from None


def _inside(folder: Path, path: str) -> Path:
    if "\0" in path or Path(path).is_absolute() or PureWindowsPath(path).anchor or ".." in PureWindowsPath(path).parts:
        raise IncludeError("expected a path beside this file or below it, without `..`")
    real = Path(os.path.realpath(folder / path))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise IncludeError("it leads out of this file's folder, through a link")
    return real
