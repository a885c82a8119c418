"""The options in a footer: how the rollouts of a result were read and scored, so that they are read in the same way again.

A footer is data: a preset in it is a mapping or none, but not a path, which would be read, and a name of a file counts for nothing here.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from pydantic import ConfigDict, create_model

from assay.errors import InputError, UsageError
from assay.loading.formats.reading import Reading, reading_of
from assay.options import FileOptions, options_of, settle
from assay.runs.file_run import recorded_options
from assay.spec.stored_json import StoredError, conforms


def settings_in(provenance: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the options of the run that made a result, as far as its footer has them."""
    settings = provenance.get("settings") or {}
    try:
        conforms(settings, _settings())
        settle(FileOptions, settings, "assay")
    except (StoredError, UsageError) as error:
        fact = f"{name}: the options in its footer cannot be read: {error.args[0]}"
        raise InputError(fact, "Score the rollouts again.") from None
    return dict(settings)


def recorded_reading(provenance: Mapping[str, Any], name: str) -> Reading:
    """Return how the rollouts of a result were read: with its mapping and preset, and with the bad rows that it allowed."""
    return replace(reading_of(settle(FileOptions, settings_in(provenance, name), "assay")), max_bad_rows="100%")


@cache
def _settings() -> Any:
    hints = {name: hint for name, (hint, _) in options_of(FileOptions).items() if name in recorded_options()}
    hints["preset"] = dict[str, Any] | Literal["none"] | None
    fields: dict[str, Any] = {name: (hint, None) for name, hint in hints.items()}
    return create_model("Settings", __config__=ConfigDict(strict=True, extra="forbid"), **fields)
