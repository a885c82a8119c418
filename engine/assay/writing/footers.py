"""What a footer says, and the manifest of a folder: the types of its entries, checked once for all who read them.

A footer can be edited, or written by anybody. What is read from here on has the types below; entries that other versions add are
kept. A verifier's canonical form, a text in it, is checked by ``assay.spec.canonical.forms_of``.
"""

from typing import Annotated, Any

from pydantic import Field

from assay.spec.stored_json import Count, Stored, Whole


class _File(Stored):
    """A file that a run has read."""

    name: str
    size: Count | None = None
    rows: Count | None = None
    modified: Whole | None = None
    read_as: str | None = None
    skipped: str | None = None
    sha256: str | None = None


class _Check(Stored):
    id: str
    type: str
    weight: float


class _Code(Stored):
    """A function or a class that ran."""

    name: str | None = None
    sha256: str | None = None


class _Verifier(Stored):
    id: str
    kind: str
    sha256: str
    canonical: str
    source: str | None = None
    weight: float | None = None
    checks: list[_Check] = Field(default_factory=list)
    code: list[_Code] = Field(default_factory=list)


class _Content(Stored):
    """What a file holds: each column with its type and its digest."""

    rows: Count
    root: str
    columns: list[Annotated[list[str], Field(min_length=3, max_length=3)]]


_Shard = Annotated[list[Count | None], Field(min_length=4, max_length=5)]
"""The input of a part: file, first unit, unit after the last, rows if they are known, last file if there are several."""


class Footer(Stored):
    """A footer or a manifest."""

    assay_version: str | None = None
    polars_version: str | None = None
    command: str | None = None
    rows: Count | None = None
    inputs: list[_File] = Field(default_factory=list)
    tasks: list[_File] = Field(default_factory=list)
    verifiers: list[_Verifier] = Field(default_factory=list)
    content: _Content | None = None
    settings: dict[str, Any] | None = None
    task_table: str | None = None
    derived_from: str | None = None
    run: str | None = None
    part: Count | None = None
    manifest: Count | None = None
    columns: dict[str, str] | None = None
    shards: list[_Shard] | None = None
    grown: list[Count] | None = None


class Described(Footer):
    """The manifest of a run that can be continued."""

    command: str
    settings: dict[str, Any]
    columns: dict[str, str]
    shards: list[_Shard]


class Summed(Stored):
    """The summary beside the parts of a folder, as far as it is read."""

    rows: Count
