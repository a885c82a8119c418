"""Provenance of a result: versions, verifiers and the functions they call, inputs, tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from assay._version import __version__
from assay.checks.base import Check
from assay.checks.libraries import versions
from assay.errors import path_text
from assay.functions.check import Registered, RowVerifierCheck
from assay.functions.registry import Function, function
from assay.loading.rollouts import InputFile
from assay.names import IN_PROCESS
from assay.spec.verifier import VerifierSpec
from assay.system.code_hash import described
from assay.system.redaction import redacted
from assay.writing.seals import sha256_of

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

    Args:
        verifiers: The verifiers that scored it.
        used: Names of the functions that rows named.
        inputs: The files that were scored.
        tasks: Files of the task table.
        seal: Whether to hash these files.
    """
    libraries = versions(dict.fromkeys(name for verifier in verifiers for name in verifier.libraries))
    return {
        "assay_version": __version__,
        "polars_version": pl.__version__,
        **({"libraries": libraries} if libraries else {}),
        "inputs": [_input(file) for file in inputs],
        "tasks": [{"name": redacted(path_text(name)), **_stat(Path(name), seal=seal)} for name in tasks],
        "verifiers": [_verifier(verifier, list(used)) for verifier in verifiers],
    }


def files_of(provenance: Mapping[str, Any], key: str = "inputs") -> list[dict[str, Any]]:
    """Return the entries of the files that a run has read, without those that it skipped.

    Args:
        provenance: As ``read_provenance`` returns it; its entries are mappings.
        key: ``inputs`` or ``tasks``.
    """
    return [entry for entry in provenance.get(key, ()) if not entry.get("skipped")]


def _input(file: InputFile) -> dict[str, Any]:
    return {name: value for name, value in asdict(file).items() if value is not None or name not in _IF_KNOWN}


def _stat(path: Path, *, seal: bool) -> dict[str, Any]:
    status = path.stat() if path.is_file() else None
    digest = {"sha256": sha256_of(path)} if seal else {}
    return {"size": status and status.st_size, "modified": status and status.st_mtime_ns, **digest}


def _verifier(verifier: VerifierSpec, used: Sequence[str]) -> dict[str, Any]:
    return {
        "id": verifier.id,
        "source": verifier.source,
        "sha256": verifier.sha256,
        "canonical": verifier.canonical,
        "kind": verifier.kind,
        **({} if verifier.share is None else {"weight": verifier.share.weight}),
        "checks": [{"id": spec.id, "type": spec.type, "weight": spec.weight} for spec in verifier.runnable if spec.id],
        "code": code_of_verifier(verifier, used),
    }


def code_of_verifier(verifier: VerifierSpec, used: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the functions and classes that a verifier ran: names of built-in ones, names and hashes of users'."""
    if verifier.kind == IN_PROCESS:
        return _functions(used)
    checks = [reader.check for spec in verifier.nodes for reader in spec.readers if reader.check is not None]
    code = [code_of(check) for check in checks if not _is_ours(check.made_by)]
    asks_rows = any(isinstance(check, RowVerifierCheck) for check in checks)
    return code + (_functions(used) if asks_rows else [])


def _functions(names: Iterable[str]) -> list[dict[str, Any]]:
    functions = [(name, function(name)) for name in names]
    return [{"name": name} if fn is None or fn.builtin else {"name": name, **_hashes(fn)} for name, fn in functions]


def code_of(check: Check) -> dict[str, Any]:
    """Describe the code of a check that is not built in, with its hash."""
    if isinstance(check, Registered) and check.scorer is not None:
        return {"name": check.default, **_hashes(check.scorer)}
    return described(check.made_by)


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("assay.")


def _hashes(fn: Function) -> dict[str, Any]:
    return described(fn.fn) | ({} if fn.expr is None else {"twin": described(fn.expr)})


def task_files_of(tasks: Any) -> tuple[str, ...]:
    """Return the paths or URLs of a task table; none if it is not read from files."""
    paths = [tasks] if isinstance(tasks, str | Path) else tasks
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | Path) for path in paths):
        return ()
    return tuple(map(str, paths))
