"""Register specs: a copy of each version, and a lock that says what it means."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.checks.base import Check
from assay.errors import OutputError, SpecError, shown_path
from assay.spec.named import FOLDER, ID, LOCK, RegisteredSpec, listed_specs, nearest_registry, read_lock, registered
from assay.spec.verifier import VerifierSpec, load_verifier
from assay.system.atomic_file import new_file
from assay.system.locks import locked
from assay.writing.provenance import code_of_verifier


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
        """Register a spec, unless its latest version means the same.

        Args:
            spec: A file, which is copied with the specs that it includes; or a mapping.
            checks: The user's check types.

        Returns:
            The name of its version, ``ID@N``.

        Raises:
            SpecError: It cannot be used, or its id cannot be a name.
            OutputError: The registry cannot be written.
        """
        verifier = load_verifier(spec if isinstance(spec, Mapping) else Path(spec), checks=checks, strict=True)
        if not ID.fullmatch(verifier.id):
            hint = "Give it an `id` of letters, digits, and . _ - after the first."
            raise SpecError(f"{verifier.source or 'a mapping'}: the id {verifier.id!r} cannot be a name.", hint)
        if isinstance(spec, Mapping):
            files = {f"{verifier.id}.json": (json.dumps(spec, indent=2, ensure_ascii=False) + "\n").encode()}
        else:  # with the specs that it includes, by path below its folder; the spec first
            with _reported(path := Path(spec)):
                files = {path.name: path.read_bytes()}
                for name in verifier.includes:
                    files[os.path.relpath(name, path.parent.resolve())] = Path(name).read_bytes()
        code = code_of_verifier(verifier)
        entry = {"file": next(iter(files)), "sha256": verifier.sha256} | ({"code": code} if code else {})
        with contextlib.suppress(FileExistsError), _reported(self.folder):
            self.folder.mkdir(parents=True)
        with locked(self.folder / f".{LOCK}.lock", shown_path(self.folder), "Wait for it to end."):
            lock = read_lock(self.folder)
            versions = lock.setdefault(verifier.id, {})
            version = max(versions, default=0)
            latest = versions.get(version, {})
            if (latest.get("sha256"), latest.get("code", [])) != (verifier.sha256, code):
                version += 1
            registered_spec = RegisteredSpec(
                verifier.id, version, self.folder / verifier.id / str(version), verifier.sha256
            )
            for relative, content in files.items():
                _write(registered_spec.path / relative, content)
            versions[version] = entry
            _write(self.folder / LOCK, (json.dumps(lock, indent=1, sort_keys=True) + "\n").encode())
        return registered_spec.name

    def load(self, name: str, *, checks: Sequence[type[Check]] = ()) -> VerifierSpec:
        """Return a registered verifier.

        Raises:
            SpecError: There is none of that name, or its copy is not what was registered.
        """
        spec = self._registered(name)
        verifier = load_verifier(spec.path, checks=checks)
        spec.check(verifier.id, verifier.sha256)
        return verifier

    def path(self, name: str) -> Path:
        """Return the copy of a registered spec; a ``SpecError`` if there is none of that name."""
        return self._registered(name).path

    def list(self) -> list[RegisteredSpec]:
        """Return what is registered, by id and version."""
        return listed_specs(self.folder)

    def _registered(self, name: str) -> RegisteredSpec:
        spec = registered(name, self.folder)
        assert spec is not None  # noqa: S101  (only without a folder is a name that of a file)
        return spec


def _write(path: Path, content: bytes) -> None:
    """Write a file of the registry, if it has other content."""
    with _reported(path):
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, alone=False) as (file, reported), reported():
        file.write(content)


@contextlib.contextmanager
def _reported(path: Path) -> Any:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise OutputError(f"{shown_path(path)}: {error.strerror}.") from None
