"""What made a result: versions, verifiers and the functions they call, inputs, tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from assay._version import __version__
from assay.errors import path_text
from assay.functions.registry import Function, function
from assay.loading.rollouts import InputFile
from assay.names import IN_PROCESS
from assay.spec.verifier import VerifierSpec
from assay.system.code_hash import described
from assay.system.redaction import redacted

__all__ = ["made_by", "task_files_of"]


def made_by(
    verifiers: Sequence[VerifierSpec], used: Iterable[str], inputs: Iterable[InputFile], tasks: Iterable[str]
) -> dict[str, Any]:
    """What made a result, but for the command and what is counted.

    Args:
        verifiers: What scored.
        used: Names of the functions that rows named.
        inputs: What was scored.
        tasks: Files of the task table.
    """
    return {
        "assay_version": __version__,
        "polars_version": pl.__version__,
        "inputs": [_input(one) for one in inputs],
        "tasks": [{"name": redacted(path_text(name)), **_stat(Path(name))} for name in tasks],
        "verifiers": [_verifier(verifier, list(used)) for verifier in verifiers],
    }


def _input(one: InputFile) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(one).items() if value is not None or name not in ("read_as", "skipped")
    }


def _stat(path: Path) -> dict[str, int | None]:
    there = path.stat() if path.is_file() else None
    return {"size": there and there.st_size, "modified": there and there.st_mtime_ns}


def _verifier(verifier: VerifierSpec, used: Sequence[str]) -> dict[str, Any]:
    return {
        "id": verifier.id,
        "source": verifier.source,
        "sha256": verifier.sha256,
        "canonical": verifier.canonical,
        "kind": verifier.kind,
        **({} if verifier.share is None else {"weight": verifier.share.weight}),
        "checks": [{"id": spec.id, "type": spec.type, "weight": spec.weight} for spec in verifier.runnable if spec.id],
        "code": _code(verifier, used),
    }


def _code(verifier: VerifierSpec, used: Sequence[str]) -> list[dict[str, Any]]:
    """The functions and classes that gave verdicts: names of Assay's own, names and hashes of users'."""
    if verifier.kind == IN_PROCESS:
        found = [(name, function(name)) for name in used]
        return [{"name": name} if one is None or one.builtin else {"name": name, **_hashes(one)} for name, one in found]
    made = (spec.check.made_by for spec in verifier.runnable if spec.check is not None)
    return [described(cls) for cls in made if not cls.__module__.startswith("assay.")]


def _hashes(one: Function) -> dict[str, Any]:
    return described(one.fn) | ({} if one.expr is None else {"twin": described(one.expr)})


def task_files_of(tasks: Any) -> tuple[str, ...]:
    """The files of a task table that was given as paths or URLs."""
    given = [tasks] if isinstance(tasks, str | Path) else tasks
    if not isinstance(given, list | tuple) or not all(isinstance(one, str | Path) for one in given):
        return ()
    return tuple(map(str, given))
