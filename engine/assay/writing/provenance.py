"""Provenance of a result: versions, verifiers and the functions they call, inputs, tasks; with a seal, the hashes of these files."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from assay._version import __version__
from assay.checks.graders.provenance import graders_of
from assay.checks.libraries import versions
from assay.errors import InputError, UsageError, path_text, shown_path
from assay.functions.check import RowVerifierCheck
from assay.functions.users_code import code_named
from assay.loading.rollouts import InputFile, Rollouts
from assay.names import IN_PROCESS
from assay.spec.verifier import VerifierSpec
from assay.system.redaction import redacted
from assay.system.special_files import path_of

_IF_KNOWN = ("read_as", "skipped", "sha256")


def provenance_of(
    verifiers: Sequence[VerifierSpec],
    used: Iterable[str],
    inputs: Iterable[InputFile],
    tasks: Iterable[str],
    *,
    seal: bool = False,
) -> dict[str, Any]:
    """Return the provenance of a result, except the command and the number of rows.

    ``used`` are the names of the functions that rows named; ``tasks`` the files of the task table; ``seal`` says to hash the files.
    """
    libraries = versions(dict.fromkeys(name for verifier in verifiers for name in verifier.libraries))
    graders = graders_of(name for verifier in verifiers for name in verifier.graders)
    task_entries = []
    for name in tasks:
        path = Path(name)
        status = path.stat() if path.is_file() else None
        entry = {"name": redacted(path_text(name)), "size": status and status.st_size}
        entry |= {"modified": status and status.st_mtime_ns} | ({"sha256": sha256_of(path)} if seal else {})
        task_entries.append(entry)
    return {
        "assay_version": __version__,
        "polars_version": pl.__version__,
        **({"libraries": libraries} if libraries else {}),
        **({"graders": graders} if graders else {}),
        "inputs": [
            {name: value for name, value in asdict(file).items() if value is not None or name not in _IF_KNOWN}
            for file in inputs
        ],
        "tasks": task_entries,
        "verifiers": [_verifier(verifier, list(used)) for verifier in verifiers],
    }


def files_of(provenance: Mapping[str, Any], key: str = "inputs") -> list[dict[str, Any]]:
    """Return the entries of the ``inputs`` or ``tasks`` that a run has read, without those that it skipped."""
    return [entry for entry in provenance.get(key, ()) if not entry.get("skipped")]


def _verifier(verifier: VerifierSpec, used: Sequence[str]) -> dict[str, Any]:
    return {
        "id": verifier.id,
        **({} if verifier.registered is None else {"version": verifier.registered}),
        "source": verifier.source,
        "sha256": verifier.sha256,
        "canonical": verifier.canonical,
        "kind": verifier.kind,
        **({} if verifier.share is None else {"weight": verifier.share.weight}),
        "checks": [{"id": spec.id, "type": spec.type, "weight": spec.weight} for spec in verifier.runnable if spec.id],
        "code": [*verifier.code, *(map(code_named, used) if _names_functions(verifier) else ())],
    }


def _names_functions(verifier: VerifierSpec) -> bool:
    """Return whether rows name functions that a verifier runs."""
    readers = (reader for spec in verifier.nodes for reader in spec.readers)
    return verifier.kind == IN_PROCESS or any(isinstance(reader.check, RowVerifierCheck) for reader in readers)


def task_files_of(tasks: Any) -> tuple[str, ...]:
    """Return the paths or URLs of a task table; none if it is not read from files."""
    paths = [tasks] if isinstance(tasks, str | Path) else tasks
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | Path) for path in paths):
        return ()
    return tuple(map(str, paths))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and hashes of all files in a folder, as hexadecimal digits."""

    def refuse(error: OSError) -> None:
        raise error

    try:
        if path.is_dir():
            files = [Path(folder, name) for folder, _, names in os.walk(path, onerror=refuse) for name in names]
            files = sorted(file for file in files if file.is_file())
            names = "".join(f"{file.relative_to(path).as_posix()}\0{sha256_of(file)}\n" for file in files)
            return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
        if not path.is_file():
            raise UsageError(
                f"{redacted(shown_path(path))}: only local files can be sealed.", "Copy it to a file first."
            )
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{shown_path(path)}: {error.strerror}.") from None


def sealed(source: Rollouts) -> Rollouts:
    """Return rollouts whose inputs have the hashes of their files, which are local."""
    if source.read is None:
        raise UsageError(f"--seal: {source.inputs[0].name} has no files that could be hashed.", "Write it to a file.")
    digests = [sha256_of(path_of(str(file.path))) for file in source.files]
    hashed = [replace(entry, sha256=digest) for entry, digest in zip(source.inputs, digests, strict=False)]
    return replace(source, inputs=(*hashed, *source.inputs[len(hashed) :]))


def is_sealed(provenance: Mapping[str, Any]) -> bool:
    """Return whether a provenance has the hashes of all files that the result was made from."""
    inputs, tasks = provenance.get("inputs", ()), provenance.get("tasks", ())
    return bool(inputs) and all(entry.get("sha256") for entry in (*inputs, *tasks) if not entry.get("skipped"))
