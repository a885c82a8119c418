"""Register specs whose tests pass: a copy of each version, and a lock that says what it means."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.checks.base import Check
from assay.checks.graders.table import GRADERS
from assay.errors import FailedRunError, OutputError, SpecError, counted, printable, quoted, shown_path
from assay.insight.testing.document import failed_tests
from assay.insight.testing.running import name_of, run_tests
from assay.spec.named import FOLDER, ID, LOCK, RegisteredSpec, listed_specs, nearest_registry, read_lock, registered_in
from assay.spec.verifier import VerifierSpec, load_registered, load_verifier
from assay.system.atomic_file import write_file
from assay.system.locks import locked
from assay.system.special_files import what_is

_PATIENCE = 30.0
"""Seconds to wait for another process that registers a spec."""


class Registry:
    """Specs by name, each version as it was registered; a run takes them by ``ID`` or ``ID@N``.

    Args:
        folder: Its folder; by default the nearest ``verifiers`` with a lock, in the current folder or above it, else ``verifiers``.

    Example:
        >>> import assay, tempfile
        >>> registry = assay.Registry(tempfile.mkdtemp())
        >>> registry.create({"id": "refund", "checks": [{"type": "contains", "value": "refund"}]})
        'refund@1'
        >>> registry.load("refund").id
        'refund'
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else nearest_registry() or Path(FOLDER)

    def create(self, spec: str | Path | Mapping[str, Any], *, checks: Sequence[type[Check]] = ()) -> str:
        """Register a spec, unless its latest version means the same; of that, the copy is renewed.

        Args:
            spec: A file, which is copied with the specs that it includes; or a mapping.
            checks: The user's check types.

        Returns:
            The name of its version, ``ID@N``.

        Raises:
            SpecError: It cannot be used, or its id cannot be a name.
            FailedRunError: One of its tests fails.
            OutputError: The registry cannot be written.
        """
        if not isinstance(spec, Mapping) and (what := what_is(Path(spec))):
            raise SpecError(f"{shown_path(spec)}: is {what}.", "A registered spec is copied: name a file.")
        verifier = load_verifier(spec if isinstance(spec, Mapping) else Path(spec), checks=checks, strict=True)
        _check_id(verifier)
        _check_tests(verifier, checks)
        files = _files(spec, verifier)
        own, code = next(iter(files)), verifier.code
        _make(self.folder)
        lock_file = self.folder / f".{LOCK}.lock"
        with locked(lock_file, shown_path(self.folder), "Wait for it to end.", _PATIENCE), self._staged(files) as stage:
            _check_copy(stage / own, verifier, checks)
            lock = read_lock(self.folder)
            versions = lock.setdefault(verifier.id, {})
            number = max(versions, default=0)
            latest = versions.get(number, {})
            if (latest.get("sha256"), latest.get("code", [])) != (verifier.sha256, code):
                number, latest = number + 1, {}
            target = self.folder / verifier.id / str(number)
            for relative in reversed(files):  # the spec last, behind those that it includes
                _make((target / relative).parent)
                with _reported(target):
                    (stage / relative).replace(target / relative)
            versions[number] = {"file": own, "sha256": verifier.sha256} | ({"code": code} if code else {})
            data = {ident: {str(version): entry for version, entry in own.items()} for ident, own in lock.items()}
            write_file(self.folder / LOCK, json.dumps(data, indent=1, sort_keys=True) + "\n")
            if latest.get("file", own) not in files:  # the spec has another name now
                (target / latest["file"]).unlink(missing_ok=True)
        return f"{verifier.id}@{number}"

    def load(self, name: str, *, checks: Sequence[type[Check]] = ()) -> VerifierSpec:
        """Return a registered verifier.

        Raises:
            SpecError: There is none of that name, or its copy is not what was registered.
        """
        return load_registered(registered_in(self.folder, name), checks)

    def path(self, name: str) -> Path:
        """Return the copy of a registered spec; a ``SpecError`` if there is none of that name."""
        return registered_in(self.folder, name).path

    def list(self) -> list[RegisteredSpec]:
        """Return what is registered, by id and version."""
        return listed_specs(self.folder)

    def problems(self, *, checks: Sequence[type[Check]] = ()) -> Iterator[SpecError]:
        """Yield what is wrong with each copy: it is not what was registered, or nothing says what it was."""
        specs = self.list()
        for spec in specs:
            try:
                load_registered(spec, checks)
            except SpecError as error:
                yield error
        known = {spec.path.parent for spec in specs}
        for folder in sorted(self.folder.glob("*/*/")):
            if ID.fullmatch(folder.parent.name) and folder.name.isdecimal() and folder not in known:
                hint = "Restore the lock, or remove the folder."
                yield SpecError(f"{shown_path(folder)}: {shown_path(self.folder / LOCK)} has no such version.", hint)

    @contextlib.contextmanager
    def _staged(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        """Write files into a folder that is there as long as the block."""
        stage = self.folder / ".new"
        shutil.rmtree(stage, ignore_errors=True)  # of a process that was killed
        try:
            for relative, content in files.items():
                _make((stage / relative).parent)
                write_file(stage / relative, content)
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _check_id(verifier: VerifierSpec) -> None:
    """Refuse a verifier whose id cannot be a name."""
    if not ID.fullmatch(verifier.id) or verifier.id == LOCK:
        hint = f"Give it an `id` of letters, digits, and . _ - after the first; it may not be {LOCK}."
        raise SpecError(f"{name_of(verifier)}: the id {quoted(verifier.id)} cannot be a name.", hint)
    if verifier.id in GRADERS:
        fact = f"{name_of(verifier)}: {verifier.id} is the name of a grader, which adapters take in place of a spec."
        raise SpecError(fact, "Give it another `id`.")


def _check_tests(verifier: VerifierSpec, checks: Sequence[type[Check]]) -> None:
    """Refuse a verifier that fails one of its tests."""
    lines = failed_tests(run_tests(verifier, checks=checks).tests) if verifier.tests else []
    if lines:
        name = name_of(verifier)
        fact = f"{name}: {counted(len(lines), 'test')} of {len(verifier.tests)} failed; it is not registered."
        raise FailedRunError("\n".join([fact, *map(printable, lines)]), "Mend the spec, or what its tests expect.")


def _check_copy(path: Path, verifier: VerifierSpec, checks: Sequence[type[Check]]) -> None:
    """Refuse a verifier whose copy is another."""
    is_same = False
    with contextlib.suppress(SpecError):
        is_same = load_verifier(path, checks=checks, strict=True) == verifier
    if not is_same:
        hint = "Files that it includes are no links to others, values of a mapping are those of JSON, and none changes meanwhile."
        raise SpecError(f"{name_of(verifier)}: a copy of it is not the same verifier.", hint)


def _files(spec: str | Path | Mapping[str, Any], verifier: VerifierSpec) -> dict[str, bytes]:
    """Return a spec, and the files that it includes, by their paths below its folder."""
    if isinstance(spec, Mapping):
        text = json.dumps(spec, indent=2, ensure_ascii=False, default=_plain)
        return {f"{verifier.id}.json": f"{text}\n".encode("utf-8", "backslashreplace")}
    with _reported(path := Path(spec)):
        included = {os.path.relpath(name, path.parent.resolve()): Path(name) for name in verifier.includes}
        return {name: file.read_bytes() for name, file in {path.name: path, **included}.items()}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _make(folder: Path) -> None:
    with _reported(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{shown_path(path)}: {error.strerror}.") from None
