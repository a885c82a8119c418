"""The files of a training set, which appear together at the end."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import UsageError, likely_ending, shown_path
from assay.frozen import frozen
from assay.insight.exporting.card import dataset_info, readme
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import TARGETS
from assay.system.atomic_file import check_target, new_file
from assay.writing.digests import ContentDigest
from assay.writing.writers import JsonLines, plain_arrow, plain_frame

_ENDINGS = (".parquet", ".jsonl")
_KEY = "assay_export"
_INFO = "dataset_info.json"
_ROWS_AT_ONCE = 1 << 14


@frozen
class Places:
    """Where the files of a training set are.

    Attributes:
        folder: The folder that is made for them; None for files beside each other.
        splits: The file of each split.
        excluded, card, page: The files beside them.
        info: What describes the splits to LLaMA-Factory.
    """

    folder: Path | None
    splits: Mapping[str, Path]
    excluded: Path
    card: Path
    page: Path
    info: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """All files that an export to this place may write."""
        return (*self.splits.values(), self.excluded, self.card, self.page, *([self.info] if self.info else []))


def places_of(out: Any, settings: Settings, *, overwrite: bool) -> Places:
    """Return where files go; an error if they cannot, or may not, be written there."""
    path, kinds = Path(out), TARGETS[settings["target"]].files
    suffix = path.suffix.lower()
    if str(out).endswith(("/", "\\")) or path.is_dir() or not suffix:
        ending = kinds[0]
        places = Places(
            path,
            {split: path / f"{split}{ending}" for split in ("train", "validation")},
            path / "excluded.parquet",
            path / "card.json",
            path / "README.md",
            path / _INFO if settings["target"] == "llamafactory" else None,
        )
        if path.exists() and not path.is_dir():
            raise UsageError(
                f"{shown_path(path)}: is a file.", "Name a folder, or a file that ends in .parquet or .jsonl."
            )
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{shown_path(path)}: there is no folder {shown_path(path.absolute().parent)}.")
    else:
        if suffix not in _ENDINGS:
            fact = f"--out {shown_path(path)}: expected a name that ends in .parquet, .jsonl or /."
            raise UsageError(fact, likely_ending(path, _ENDINGS))
        if suffix not in kinds:
            raise UsageError(
                f"--out {shown_path(path)}: {settings['target']} does not read {suffix}.",
                f"It reads {', '.join(kinds)}.",
            )
        beside = {name: path.with_name(f"{path.name}.{name}") for name in ("excluded.parquet", "card.json", "card.md")}
        splits = {"train": path, "validation": path.with_name(f"{path.stem}.validation{path.suffix}")}
        places = Places(None, splits, *beside.values())
    for place in places.all:
        if places.folder is None or places.folder.is_dir():
            check_target(place, overwrite=overwrite, how="--overwrite")
    return places


class _Table:
    """A table that is written, and what its content comes to."""

    def __init__(self, file: IO[bytes], schema: pl.Schema, ending: str) -> None:
        empty = plain_frame(pl.DataFrame(schema=schema))
        self._content, self.rows = ContentDigest(empty.schema), 0
        self._parquet: Any = None
        self._lines = JsonLines(file, schema)
        if ending == ".parquet":
            self._parquet = pq.ParquetWriter(file, _plain_table(empty).schema, compression="zstd")

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""
        for part in batch.iter_slices(_ROWS_AT_ONCE):
            plain = plain_frame(part.rechunk())
            self._content.add(plain)
            self.rows += part.height
            if self._parquet is None:
                self._lines.write(plain)
            else:
                self._parquet.write_table(_plain_table(plain))

    def described(self) -> dict[str, Any]:
        """Return the rows and the root, which depend on the content only."""
        return {"rows": self.rows, "root": self._content.content()["root"]}

    def close(self, card: str) -> None:
        """Finish the file; parquet has the card in its footer."""
        if self._parquet is not None:
            self._parquet.add_key_value_metadata({_KEY: card})
            self._parquet.close()

    def abandon(self) -> None:
        """Discard an unfinished file."""
        self._content.close()
        if self._parquet is not None:
            with contextlib.suppress(Exception):
                self._parquet.close()
            self._parquet.is_open = False  # otherwise the garbage collector closes it, after the file is gone


def write(
    places: Places,
    settings: Settings,
    examples: Iterable[tuple[str, pl.DataFrame]],
    excluded: Iterable[pl.DataFrame],
    card: dict[str, Any],
) -> pl.Schema:
    """Write all files, and return the schema of the examples; ``card`` gets their rows and roots. Without examples there are no splits."""
    if places.folder is not None:
        places.folder.mkdir(exist_ok=True)
    before = _earlier(places)
    with contextlib.ExitStack() as stack:
        tables: dict[str, _Table] = {}
        of_examples = pl.Schema()

        def table(name: str, path: Path, schema: pl.Schema) -> _Table:
            if name not in tables:
                file, guard = stack.enter_context(new_file(path))
                tables[name] = stack.enter_context(_abandoned(_Table(file, schema, path.suffix.lower()), guard))
            return tables[name]

        for split, batch in examples:
            of_examples = batch.schema
            if split == "train" or settings["validation"]:
                table(split, places.splits[split], batch.schema).write(batch)
        splits = [*tables]
        for batch in excluded:
            table("excluded", places.excluded, batch.schema).write(batch)
        names = {split: places.splits[split].name for split in splits} | {"excluded": places.excluded.name}
        card["files"] = {names[name]: own.described() for name, own in tables.items()}
        text = json.dumps(card, ensure_ascii=False, allow_nan=False)
        for own in tables.values():
            own.close(text)
        # NOTE: datasets refuses a split without rows
        of_splits = {split: names[split] for split in splits if tables[split].rows}
        files = {places.card: f"{text}\n", places.page: readme(card, of_splits if places.folder else None)}
        if places.info is not None and splits:
            info = dataset_info(settings, of_splits)
            files[places.info] = json.dumps(info, indent=2) + "\n"
        for path, content in files.items():
            file, guard = stack.enter_context(new_file(path))
            with guard():
                file.write(content.encode())
    _remove(before - {*files, *(places.splits[split] for split in splits)})
    return of_examples


def _earlier(places: Places) -> set[Path]:
    """Return the splits that an earlier export wrote here, as its card says, and what describes them."""
    try:
        names = {*json.loads(places.card.read_bytes())["files"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()
    own = {path.with_suffix(ending) for path in places.splits.values() for ending in _ENDINGS}
    own = own if places.folder else {*places.splits.values()}
    about = {places.folder / _INFO} if places.folder else set()
    return {path for path in own if path.name in names} | about


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _abandoned(table: _Table, guard: Any) -> Iterator[_Table]:
    try:
        with guard():
            yield table
    except BaseException:
        table.abandon()
        raise


def _plain_table(plain: pl.DataFrame) -> Any:
    """Return a frame as an Arrow table whose texts and lists are of the plain types.

    NOTE: Polars writes the large ones, and ``datasets`` does not concatenate a LargeList with a List.
    """
    table = plain_arrow(plain).combine_chunks()
    columns = [_plain(column.chunk(0) if column.num_chunks else pa.array([], column.type)) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain(array: Any) -> Any:
    kind = array.type
    if pa.types.is_large_string(kind):
        return array.cast(pa.string())
    if pa.types.is_large_binary(kind):
        return array.cast(pa.binary())
    if pa.types.is_large_list(kind):
        offsets = array.offsets.cast(pa.int32())
        mask = array.is_null() if array.null_count else None
        if mask is not None and array.offset:
            array = pa.concat_arrays([array])
        return pa.ListArray.from_arrays(offsets, _plain(array.values), mask=mask)
    if pa.types.is_struct(kind):
        mask = array.is_null() if array.null_count else None
        fields = [_plain(array.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, names=[field.name for field in kind], mask=mask)
    return array
