"""Rollouts in object stores and on the web, by the engine's own readers.

Parquet, Arrow IPC and CSV are read where they are. JSON lines are copied to a temporary file first, for they are read more than
once; the copy is made piece by piece and removed after the run.

NOTE: over HTTP the engine waits for ever, whatever it is told; so every look is taken in a thread that is not waited for so long.
"""

import errno
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import polars as pl
from polars.exceptions import PanicException, PolarsError
from polars.io._expand_paths import _expand_paths

from assay.errors import InputError, UsageError, did_you_mean
from assay.loading.formats.engine_source import by_engine
from assay.loading.formats.files import FORMATS, open_lines
from assay.loading.formats.reading import BadRow, File, Reading, Unit
from assay.system.redaction import redacted, secrets_of
from assay.system.spool import refused_by_temporary_folder, spool_file

__all__ = ["SCHEMES", "Remote", "RemoteFile", "hidden_of", "is_url"]

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "hf", "http", "https")
_WEB = ("http", "https")
_COMPRESSED = (".gz", ".zst", ".zstd")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PATIENCE = 60.0
"""Seconds without an answer, or without another byte of a copy, after which a store is given up."""

_LOOK = {"max_retries": 3}
"""Of an option that is not given: a store that is not there is told of in seconds. A run tries as often as the engine does."""

_NUMBERS = re.compile(r"(?:max_retries|retry_\w+_ms|file_cache_ttl)\Z")
_KEYS = "Credentials come from the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY, HF_TOKEN …) or from storage options."
_SAID = (
    (r"169\.254\.|latest/api/token|[Mm]etadata/|token request", "there are no credentials for it", _KEYS),
    (
        r"NoSuchBucket|ContainerNotFound|bucket does not exist",
        "there is no such bucket",
        "Is its name right, and the endpoint?",
    ),
    (r"not found: |NotFound|NoSuchKey|code: 404", "no such object", "Names are case-sensitive; is this one right?"),
    (r"code: 40[13]|AccessDenied|SignatureDoesNotMatch|privileges|authenticated", "access was denied", _KEYS),
    (r"Invalid Access Key|Invalid symbol", "the credentials are malformed", _KEYS),
    (r"dns error|failed to lookup", "the host's name cannot be resolved", "Is it right, and is there a network?"),
    (r"Connection refused", "the connection was refused", "Is the endpoint right, and does the server run?"),
    (
        r"certificate|TLS|InvalidContentType|corrupt message|UnknownIssuer",
        "no secure connection could be made",
        "Is it https, and is the certificate one that this machine trusts?",
    ),
    (r"timed out", "the server did not answer in time", "Try again later."),
    (r"error sending request", "the server could not be reached", "Is there a network, and is the endpoint right?"),
)
"""What the engine says of a store, the fact, and what to do."""

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What this machine's disk says, and no store does; the engine gives the number in words only."""

_T = TypeVar("_T")


def is_url(source: object) -> bool:
    """Whether a source is a URL; a path is none."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


@dataclass(frozen=True)
class Remote:
    """One URL as the user gave it, with the options of its store.

    Attributes:
        url: May have ``*``, which stands for any characters of a name, or be a folder, with ``/`` at its end.
        options: Those of the engine's ``storage_options``.
        hidden: What must not be shown, and what is shown instead: secrets, the places of copies.
    """

    url: str
    options: Mapping[str, str] | None = None
    hidden: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scheme = self.scheme
        if scheme == "file":
            raise InputError(f"{self.shown}: not a URL of a store.", "Name the path itself, without file://.")
        if scheme not in SCHEMES:
            hint = did_you_mean(scheme, SCHEMES, cutoff=0.5) or f"Known: {', '.join(SCHEMES)}."
            raise InputError(f"{self.shown}: unknown scheme `{scheme}`.", hint)
        self.hidden.update(secrets_of([self.url], self.options))

    @property
    def scheme(self) -> str:
        """In lower case."""
        return self.url.partition("://")[0].lower()

    @property
    def shown(self) -> str:
        """The URL without its secrets."""
        return redacted(self.url)

    @property
    def kind(self) -> str:
        """The format, by the ending; a compressed file is what is in it."""
        path = Path(urlsplit(self.url).path if self.scheme in _WEB else self.url)
        name = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
        known = FORMATS.get(name.suffix.lower())
        if known is None or (name != path and known != "jsonl"):
            raise InputError(f"{self.shown}: unknown kind of file.", f"Known endings: {', '.join(FORMATS)}")
        return known

    def expand(self) -> list["Remote"]:
        """The files it means, in order of name.

        Raises:
            InputError: There are none, or the store does not answer.
        """
        if self.scheme in _WEB:
            path = urlsplit(self.url).path
            if path.endswith("/") or "*" in path:
                raise InputError(f"{self.shown}: a web server does not list its files.", "Name each of them.")
            return [self]
        folder = self.url.endswith("/")
        if not folder and "*" not in self.url:
            return [self]
        pattern = self._engine_url + "*" * folder
        found = self._look(
            lambda options: _expand_paths(pattern, hidden_file_prefix=("_", "."), storage_options=options).collect()
        )
        files = [self._like(url) for url in sorted(found.to_series()) if not url.endswith(".tmp")]
        files = [one for one in files if not folder or Path(one.url).suffix.lower() in (*FORMATS, *_COMPRESSED)]
        if not files:
            raise InputError(f"{self.shown}: no rollout files there.", f"Known endings: {', '.join(FORMATS)}")
        kinds = {one.kind for one in files}
        if folder and len(kinds) > 1:
            raise InputError(f"{self.shown}: holds {' and '.join(sorted(kinds))} files.", "Name one kind: …/*.jsonl")
        return files

    def _like(self, url: str) -> "Remote":
        return Remote(url, self.options, self.hidden)

    def open(self, reading: Reading) -> "RemoteFile":
        """Look through one file.

        Raises:
            InputError: It cannot be read; the message names the URL.
        """
        if self.kind == "jsonl":
            copy = self._open_copy(reading)
            return RemoteFile(self, copy.schema, copy.units, copy)
        schema = self._look(lambda options: self._frame(options).collect_schema())
        rows = None
        if self.kind == "parquet":
            rows = self._look(lambda options: self._frame(options).select(pl.len()).collect()).item()
        return RemoteFile(self, schema, (Unit(rows, 0),))

    def frame(self) -> pl.LazyFrame:
        """All rows, read where they are."""
        return self._frame(self._options())

    @property
    def _engine_url(self) -> str:
        return re.sub(r"\Agcs://", "gs://", self.url, flags=re.IGNORECASE)

    def _options(self, also: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        given = dict(self.options or {})
        for name, value in given.items():
            if _NUMBERS.match(name) and not str(value).isdigit():
                raise UsageError(f"--storage-option {name}: expected a whole number.")
        numbered = {name: int(value) if _NUMBERS.match(name) else value for name, value in given.items()}
        return {**(also or {}), **numbered} or None

    def _frame(self, options: dict[str, Any] | None) -> pl.LazyFrame:
        url = self._engine_url
        if self.kind == "parquet":
            return pl.scan_parquet(url, glob=False, storage_options=options)
        if self.kind == "ipc":
            return pl.scan_ipc(url, glob=False, storage_options=options)
        return pl.scan_csv(url, glob=False, storage_options=options, infer_schema=False)

    # ── JSON lines ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _open_copy(self, reading: Reading) -> File:
        path = spool_file(self.shown)
        self.hidden[str(path)] = self.shown
        options = self._options()
        try:
            self._copy(pl.scan_lines(self._engine_url, glob=False, storage_options=options), path)
        except InputError as wrong:
            if "invalid utf8" not in wrong.fact:
                raise
            # NOTE: by way of a CSV without quotes: no other reader of the engine replaces bytes that are no text, as ours does
            lossy = {"has_header": False, "quote_char": None, "separator": "\0", "encoding": "utf8-lossy"}
            lines = pl.scan_csv(self._engine_url, glob=False, storage_options=options, infer_schema=False, **lossy)  # type: ignore[arg-type]
            self._copy(lines, path)
        try:
            return open_lines([path], reading, [self.shown])[0]
        except InputError as wrong:
            raise InputError(redacted(wrong.fact, self.hidden), wrong.hint) from None

    def _copy(self, lines: pl.LazyFrame, path: Path) -> None:
        def copy(_: object) -> None:
            try:
                lines.sink_csv(path, include_header=False, quote_style="never")
            except OSError as error:
                number = next((number for number in _DISK if f"(os error {number})" in str(error)), None)
                if number is None:
                    raise
                raise refused_by_temporary_folder(self.shown, path, OSError(number, os.strerror(number))) from None

        self._look(copy, lambda: path.stat().st_size if path.exists() else 0)

    # ── waiting, and what went wrong ────────────────────────────────────────────────────────────────────────────────

    def _look(self, work: Callable[[dict[str, Any] | None], _T], size: Callable[[], int] = lambda: 0) -> _T:
        """What the store answers, as long as it does."""
        answer: Future[_T] = Future()
        options = self._options(_LOOK)

        def run() -> None:
            try:
                answer.set_result(work(options))
            except BaseException as wrong:  # noqa: BLE001  (goes to whoever waits)
                answer.set_exception(wrong)

        threading.Thread(target=run, name="assay-remote", daemon=True).start()
        before = size()
        while not wait([answer], _PATIENCE).done:
            if size() == before:
                raise InputError(
                    f"{self.shown}: the server did not answer for {_PATIENCE:.0f} seconds.", "Try again later."
                )
            before = size()
        try:
            return answer.result()
        except PanicException as error:  # of the engine's copies; it has printed where
            if "temporary directory" not in str(error):
                raise
            raise InputError(
                f"{self.shown}: the engine can make no temporary folder.", "TMPDIR names a folder to make it in."
            ) from None
        except (PolarsError, OSError, ValueError, TypeError) as wrong:
            raise self.told(wrong) from None

    def told(self, wrong: BaseException) -> InputError:
        """What the engine says of a store, in a sentence, without secrets."""
        said = str(wrong)
        about = said.replace(self.url.partition("://")[2].partition("/")[2] or "://", "")  # whose words are the user's
        store = isinstance(wrong, OSError) or "error sending request" in said
        for pattern, fact, hint in _SAID if store else ():
            if re.search(pattern, about):
                return InputError(f"{self.shown}: {fact}.", hint)
        fact = redacted(said.strip().split("\n", 1)[0], self.hidden)
        return InputError(f"{self.shown}: cannot be read: {fact}", "Is it the file itself, and whole?")


@dataclass(frozen=True)
class RemoteFile:
    """A ``File`` of a URL; JSON lines are those of the copy."""

    remote: Remote
    schema: pl.Schema
    units: tuple[Unit, ...]
    copy: File | None = None

    @property
    def name(self) -> str:
        """The URL without its secrets."""
        return self.remote.shown

    @property
    def path(self) -> Path:
        """Where the copy is, else what the URL looks like as a path."""
        return self.copy.path if self.copy else Path(self.name)

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """Lines of the copy that are no rollouts."""
        return tuple(replace(one, file=self.name) for one in (self.copy.bad if self.copy else ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the run's owner should know of it."""
        return tuple(redacted(note, self.remote.hidden) for note in (self.copy.notes if self.copy else ()))

    def again(self, reading: Reading) -> "RemoteFile":
        """The same file, read in another way."""
        if self.copy is None:
            return self
        try:
            (copy,) = open_lines([self.copy.path], reading, [self.name])
        except InputError as wrong:
            raise InputError(redacted(wrong.fact, self.remote.hidden), wrong.hint) from None
        return RemoteFile(self.remote, copy.schema, copy.units, copy)

    def scan(self, first: int = 0, last: int | None = None) -> pl.LazyFrame:
        """The rows of some units; where it is read in place there is one."""
        if self.copy is not None:
            return self.copy.scan(first, last)
        frame = self.remote.frame()
        return frame if (first, last) in ((0, None), (0, 1)) else frame.clear()

    def read(self, first: int, last: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same frame by frame."""
        if self.copy is not None:
            return self.copy.read(first, last, names, rows)
        return by_engine(self.scan(first, last), names)


def hidden_of(files: Iterable[File]) -> dict[str, str]:
    """What must not be shown of files, and what is shown instead."""
    remotes = (file.remote for file in files if isinstance(file, RemoteFile))
    return {secret: shown for remote in remotes for secret, shown in remote.hidden.items()}
