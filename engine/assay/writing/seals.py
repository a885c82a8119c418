"""What a result holds, computed anew and compared with the digests in its footers."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import InputError, shown_path
from assay.frozen import frozen
from assay.loading.formats.files import ENGINE_ERRORS, first_line, open_each
from assay.loading.formats.reading import Reading, batches
from assay.thresholds import THRESHOLDS
from assay.writing.digests import ContentDigest, root_of
from assay.writing.footers import read_provenance, scan_files


@frozen
class Seal:
    """What a result holds, of a folder all parts together; and what differs from its footer, or contradicts itself there."""

    root: str
    rows: int
    differ: tuple[str, ...]


def seal_of(path: str | Path, files: Sequence[Path]) -> Seal:
    """Compute the digests of a result anew, and compare them with those in its footers."""
    open_each(files, Reading())  # refuses what is damaged, or grows without bound
    differ: list[str] = []
    rows, root, is_folder = 0, "", Path(path).is_dir()
    with contextlib.ExitStack() as stack:
        whole: list[ContentDigest] = []
        for file in files:
            provenance, frame = read_provenance(file), scan_files([file])
            try:
                schema = frame.collect_schema()
                if is_folder and not whole:
                    whole.append(stack.enter_context(contextlib.closing(ContentDigest(schema))))
                with contextlib.closing(ContentDigest(schema)) as digest:
                    for batch in batches(frame, THRESHOLDS.batch):
                        for each in (digest, *whole):
                            each.add(batch)
                    content = digest.content()
            except ENGINE_ERRORS as error:
                raise InputError(f"{shown_path(file)}: cannot be read: {first_line(error)}") from None
            name = f"{shown_path(file.name)}: " if is_folder else ""
            differ += [f"{name}{problem}" for problem in _differences(file, provenance, content)]
            rows, root = rows + content["rows"], content["root"]
        root = whole[0].content()["root"] if whole else root
    return Seal(root, rows, tuple(differ))


def _differences(file: Path, provenance: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[str]:
    stored = provenance.get("content")
    if stored is None:
        hint = "Files of before Assay wrote digests cannot be checked: score the rollouts again."
        raise InputError(f"{shown_path(file)}: its footer has no digests of its content.", hint)
    columns, rows, root = [tuple(column) for column in stored["columns"]], stored["rows"], stored["root"]
    before = {name: (dtype, digest) for name, dtype, digest in columns}
    now = {name: (dtype, digest) for name, dtype, digest in content["columns"]}
    yield from (name for name in {**before, **now} if before.get(name) != now.get(name))
    if list(before) != list(now) and {*before} == {*now}:
        yield "the order of the columns"
    if rows != content["rows"] or provenance.get("rows") != content["rows"]:
        yield "the number of rows"
    if root_of(columns, rows) != root:
        yield "the root in the footer"
