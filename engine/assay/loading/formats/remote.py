"""Rollouts in object stores and on the web, read by Polars.

Parquet, Arrow IPC and CSV are read in place. JSON lines and documents are first copied to a temporary file, because they are read more than once;
the copy is written in pieces and removed after the run.

NOTE: over HTTP, Polars may wait forever, whatever its options; so requests run in a thread that can be abandoned.
"""

import errno
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import polars as pl
from polars.exceptions import PanicException, PolarsError
from polars.io._expand_paths import _expand_paths

from assay.errors import InputError, UsageError, did_you_mean
from assay.frozen import frozen
from assay.loading.formats.documents import delimiter_note, form_of
from assay.loading.formats.files import LINES, SUFFIXES, Format, known_suffixes, open_each
from assay.loading.formats.reading import File, Pace, Reading, Unit, WholeFile
from assay.system.redaction import redacted, secrets_of
from assay.system.spool import refused_by_temporary_folder, spool_file

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "hf", "http", "https")
_WEB = ("http", "https")
_COMPRESSED = (".gz", ".zst", ".zstd")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PATIENCE = 60.0
"""Seconds without an answer, or without progress of a copy, after which the request is abandoned."""

_OPEN_OPTIONS = {"max_retries": 3}
"""Default options for opening, so that a missing store is reported within seconds; a run uses the defaults of Polars."""

_DIGITS = 38
"""Digits of a decimal in Polars, which reads other values where there are more."""
_FOREIGN = "has a type that Polars cannot read at a URL"
_LOCAL = "Download it, and score the file."
_NUMBERS = re.compile(r"(?:max_retries|retry_\w+_ms|file_cache_ttl)\Z")
_KEYS = "Credentials come from the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY, HF_TOKEN …) or from storage options."
_EXPLANATIONS = (
    (r"169\.254\.|latest/api/token|[Mm]etadata/|token request", "there are no credentials for it", _KEYS),
    (
        r"NoSuchBucket|ContainerNotFound|bucket does not exist",
        "there is no such bucket",
        "Check its name and the endpoint.",
    ),
    (r"not found: |NotFound|NoSuchKey|code: 404", "no such object", "Check the name; it is case-sensitive."),
    (r"code: 40[13]|AccessDenied|SignatureDoesNotMatch|privileges|authenticated", "access was denied", _KEYS),
    (r"Invalid Access Key|Invalid symbol", "the credentials are malformed", _KEYS),
    (r"dns error|failed to lookup", "the host's name cannot be resolved", "Check the name and the network."),
    (r"Connection refused", "the connection was refused", "Check the endpoint, and that the server runs."),
    (
        r"certificate|TLS|InvalidContentType|corrupt message|UnknownIssuer",
        "no secure connection could be made",
        "Check that the server uses https, and that this machine trusts its certificate.",
    ),
    (r"timed out", "the server did not answer in time", "Try again later."),
    (r"error sending request", "the server could not be reached", "Check the network and the endpoint."),
)
"""Pattern of a Polars message, fact, and hint."""

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of this machine's disk, which no store raises; Polars gives the number in its message only."""

_T = TypeVar("_T")


def is_url(source: object) -> bool:
    """Whether a source is a URL rather than a path."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


@frozen
class Remote:
    """A URL as the user wrote it, with the options of its store."""

    url: str
    options: Mapping[str, str] | None = None
    hidden: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scheme = self.scheme
        if scheme == "file":
            raise InputError(f"{self.shown}: not the URL of a store.", "Use the path itself, without file://.")
        if scheme not in SCHEMES:
            hint = did_you_mean(scheme, SCHEMES, cutoff=0.5) or f"Known: {', '.join(SCHEMES)}."
            raise InputError(f"{self.shown}: unknown scheme `{scheme}`.", hint)
        self.hidden.update(secrets_of([self.url], self.options))

    @property
    def scheme(self) -> str:
        """The scheme, in lower case."""
        return self.url.partition("://")[0].lower()

    @property
    def shown(self) -> str:
        """The URL without its secrets."""
        return redacted(self.url)

    @property
    def kind(self) -> Format:
        """The format, by the suffix; of a compressed file, the format inside."""
        path = self._file
        name = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
        by_suffix = SUFFIXES.get(name.suffix.lower())
        if by_suffix is None or (name != path and by_suffix is not LINES):
            hint = "" if name.suffix else f"Name a file, or a folder with a slash at the end: {self.shown}/\n"
            raise InputError(f"{self.shown}: unknown file format.", f"{hint}{known_suffixes()}")
        return by_suffix

    @property
    def _file(self) -> Path:
        return Path(urlsplit(self.url).path if self.scheme in _WEB else self.url)

    def expand(self) -> list["Remote"]:
        """Return the files that the URL means, sorted by name."""
        if self.scheme in _WEB:
            path = urlsplit(self.url).path
            if path.endswith("/") or "*" in path:
                raise InputError(f"{self.shown}: a web server does not list its files.", "Name each of them.")
            return [self]
        is_folder = self.url.endswith("/")
        if not is_folder and "*" not in self.url:
            return [self]
        pattern = self._engine_url + "*" * is_folder
        urls = self._request(
            lambda options: _expand_paths(pattern, hidden_file_prefix=("_", "."), storage_options=options).collect()
        )
        files = [Remote(url, self.options, self.hidden) for url in sorted(urls.to_series()) if not url.endswith(".tmp")]
        if is_folder:
            files = [file for file in files if Path(file.url).suffix.lower() in (*SUFFIXES, *_COMPRESSED)]
            # a folder of rollouts often has a document about them
            files = [file for file in files if not form_of(file._file)] or files  # noqa: SLF001
        if not files:
            raise InputError(f"{self.shown}: no rollout files found.", known_suffixes())
        kinds = {file.kind.name for file in files}
        if is_folder and len(kinds) > 1:
            raise InputError(f"{self.shown}: holds {' and '.join(sorted(kinds))} files.", "Name one kind: …/*.jsonl")
        return files

    def open(self) -> "RemoteFile":
        """Open a file that is read in place."""
        delimiter = "" if self.kind.delimiter is None else self._request(partial(self.kind.delimiter, self._engine_url))
        schema = self._request(lambda options: self._frame(options, delimiter).collect_schema())
        for name, dtype in schema.items():
            if any(int(digits) > _DIGITS for digits in re.findall(r"precision=(\d+)", str(dtype))):
                raise InputError(f"{self.shown}: `{name}` {_FOREIGN}.", _LOCAL)
        rows = None
        if self.kind.counts_rows:
            rows = self._request(lambda options: self._frame(options).select(pl.len()).collect()).item()
        notes = delimiter_note(self.shown, delimiter) if delimiter else ()
        return RemoteFile(Path(self.shown), schema, (Unit(rows, 0),), self, delimiter=delimiter, notes=notes)

    def open_copy(self, path: Path, reading: Reading) -> "RemoteFile":
        """Open the copy of the file."""
        try:
            (copy,) = open_each([path], reading, {path: self.shown})
        except InputError as error:
            raise InputError(redacted(error.fact, self.hidden), error.hint) from None
        notes = tuple(redacted(note, self.hidden) for note in copy.notes)
        return RemoteFile(path, copy.schema, copy.units, self, copy, bad=copy.bad, notes=notes)

    def frame(self, delimiter: str) -> pl.LazyFrame:
        """Return all rows, read in place."""
        return self._frame(self._options(), delimiter)

    @property
    def _engine_url(self) -> str:
        return re.sub(r"\Agcs://", "gs://", self.url, flags=re.IGNORECASE)

    def _options(self, defaults: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        options = dict(self.options or {})
        for name, value in options.items():
            if _NUMBERS.match(name) and not str(value).isdigit():
                raise UsageError(f"--storage-option {name}: expected a whole number.")
        numbered = {name: int(value) if _NUMBERS.match(name) else value for name, value in options.items()}
        return {**(defaults or {}), **numbered} or None

    def _frame(self, options: dict[str, Any] | None, delimiter: str = "") -> pl.LazyFrame:
        assert self.kind.scan_url is not None  # noqa: S101  (others are copied)
        return self.kind.scan_url(self._engine_url, options, *([delimiter] if delimiter else []))

    def copy(self) -> Path:
        """Copy a file of lines to a temporary file."""
        if form_of(self._file) in (".xlsx", ".eval"):  # Polars copies lines only
            raise InputError(f"{self.shown}: a workbook at a URL cannot be read.", _LOCAL)
        path = spool_file(self.shown, form_of(self._file) or LINES.suffixes[0])
        self.hidden[str(path)] = self.shown
        options = self._options()
        try:
            self._copy(pl.scan_lines(self._engine_url, glob=False, storage_options=options), path)
        except InputError as error:
            if "invalid utf8" not in error.fact:
                raise
            from assay.loading.formats.csv import scan_lossy_lines

            self._copy(scan_lossy_lines(self._engine_url, options), path)
        return path

    def _copy(self, lines: pl.LazyFrame, path: Path) -> None:
        def copy(_: object) -> None:
            try:
                lines.sink_csv(path, include_header=False, quote_style="never")
            except OSError as error:
                number = next((number for number in _DISK if f"(os error {number})" in str(error)), None)
                if number is None:
                    raise
                raise refused_by_temporary_folder(self.shown, path, OSError(number, os.strerror(number))) from None

        self._request(copy, lambda: path.stat().st_size if path.exists() else 0)

    def _request(self, work: Callable[[dict[str, Any] | None], _T], size: Callable[[], int] = lambda: 0) -> _T:
        answer: Future[_T] = Future()
        options = self._options(_OPEN_OPTIONS)

        def run() -> None:
            try:
                answer.set_result(work(options))
            except BaseException as error:  # noqa: BLE001  (raised again in the waiting thread)
                answer.set_exception(error)

        threading.Thread(target=run, name="assay-remote", daemon=True).start()
        last_size = size()
        while not wait([answer], _PATIENCE).done:
            if size() == last_size:
                raise InputError(
                    f"{self.shown}: the server did not answer for {_PATIENCE:.0f} seconds.", "Try again later."
                )
            last_size = size()
        try:
            return answer.result()
        except PanicException as error:  # Polars has printed a trace of it
            if "temporary directory" not in str(error):
                raise InputError(f"{self.shown}: Polars fails on it: it is damaged, or {_FOREIGN}.", _LOCAL) from None
            raise InputError(
                f"{self.shown}: Polars could not create a temporary folder.",
                "Set TMPDIR to a folder that can be written to.",
            ) from None
        except (PolarsError, OSError, ValueError, TypeError) as error:
            raise self.input_error(error) from None

    def input_error(self, error: BaseException) -> InputError:
        """Explain an error of Polars in one sentence, without secrets."""
        message = str(error)
        searched = message.replace(self.url.partition("://")[2].partition("/")[2] or "://", "")  # the user's own words
        store = isinstance(error, OSError) or "error sending request" in message
        for pattern, fact, hint in _EXPLANATIONS if store else ():
            if re.search(pattern, searched):
                return InputError(f"{self.shown}: {fact}.", hint)
        fact = redacted(message.strip().split("\n", 1)[0], self.hidden)
        return InputError(f"{self.shown}: cannot be read: {fact}", "Check that it is the file itself, and complete.")


@frozen
class RemoteFile(WholeFile):
    """A ``File`` at a URL; JSON lines are read from the copy."""

    remote: Remote
    copy: File | None = None
    delimiter: str = ""

    @property
    def name(self) -> str:
        """The URL without its secrets."""
        return self.remote.shown

    def frame(self) -> pl.LazyFrame:
        return self.remote.frame(self.delimiter)

    def scan(self, first: int = 0, last: int | None = None, pace: Pace | None = None) -> pl.LazyFrame:
        return super().scan(first, last) if self.copy is None else self.copy.scan(first, last, pace)

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        reader = super().read if self.copy is None else self.copy.read
        return reader(first, last, names, rows)


def hidden_of(files: Iterable[File]) -> dict[str, str]:
    """Return the texts of files that must not be shown, with their replacements."""
    remotes = (file.remote for file in files if isinstance(file, RemoteFile))
    return {secret: shown for remote in remotes for secret, shown in remote.hidden.items()}
