"""Assay scores millions of LLM rollouts in one pass.

    import assay

    verifier = assay.load_verifier("refund-quality.json")      # JSON, YAML, TOML or a dict
    rewards = assay.score("rollouts.parquet", verifier)        # a Polars frame, one row a rollout
    rewards = assay.score(rows, verifier, tasks="tasks.jsonl") # any table, tasks joined on task_id
    rewards = assay.score(rows)                                # every row names its function and brings its gold
    plan = assay.compile(verifier, rows.schema)                # compile once, score many batches
    rewards = plan.score(rows)
    table = assay.score_batch(table, verifier)                 # Arrow to Arrow, in a task of Ray, Daft or Spark
    assay.score_file("in.parquet", verifier, "out.parquet")    # file to file, whatever its size
    assay.read_provenance("out.parquet")                       # what made these rewards

    env = assay.SingleTurnEnv(dataset=rows, rubric=rubric)     # or MultiTurnEnv: rollouts over an OpenAI-compatible client
    outputs = env.evaluate_sync(client, "a-model")             # generated and scored

A check is a function from a frame of rollouts to one column of scores; a verifier is a weighted mean of checks.
"""

import importlib.util
from typing import Any

from assay._version import __version__ as __version__
from assay.system import processes as _processes  # also because it must see the forks of a process from the start


def _public_names() -> dict[str, str]:
    """The public names and the modules that have them, as the stub beside this file lists them, one a line."""
    stub = __loader__.get_data(f"{__path__[0]}/__init__.pyi").decode()  # type: ignore[attr-defined]
    lines = (line.split() for line in stub.splitlines() if line.startswith("from "))
    return {name: module for _, module, _, name, *_ in lines}


_HOMES = _public_names()
"""A module is imported when one of its names is first used: ``assay --help`` needs no engine.

NOTE: no name may be that of another module: importing that would put the module in its place.
"""

__all__ = sorted(_HOMES)  # noqa: PLE0605  (names are written once, in the stub)


def __getattr__(name: str) -> Any:
    """A public name, or a module of the package."""
    home = _HOMES.get(name, "assay")
    if home != "assay":
        _processes.open_standard_streams()  # before libraries open files, such as that of libffi
        with _processes.without_collector():
            module = importlib.import_module(home)
        return globals().setdefault(name, getattr(module, name))
    if name.isidentifier() and not name.startswith("_") and importlib.util.find_spec(f"assay.{name}"):
        return importlib.import_module(f"assay.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
