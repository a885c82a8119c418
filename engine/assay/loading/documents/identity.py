"""What a file of another kind than its name states seems to be, by its first bytes."""

import json

from assay.errors import InputError, quoted, shown_path
from assay.loading.documents.delimiters import is_delimited

_HEAD = 1 << 16
_LINE = "\n"
_OBJECT = 'Each line must be a JSON object: {"completion": "…"}'

MAGIC = {
    b"\xff\xfe": ("UTF-16 text", "Save it as UTF-8."),
    b"\xfe\xff": ("UTF-16 text", "Save it as UTF-8."),
    b"PAR1": ("a parquet file", "Name it .parquet."),
    b"ARROW1": ("an Arrow file", "Name it .arrow."),
    b"PK\x03\x04": ("a workbook or another zip archive", "Name it .xlsx if it is a workbook."),
    b"\xd0\xcf\x11\xe0": ("an old or encrypted workbook", "Save it as .xlsx, without a password."),
    b"\x1f\x8b": ("gzip", "Name it with .gz at the end."),
    b"%PDF": ("a PDF", ""),
    b"version https://git-lfs": ("a Git LFS pointer", "Fetch the file itself: git lfs pull"),
}
"""What begins with some bytes, and a hint."""


def sure_kind(head: bytes, name: str, wanted: str) -> InputError | None:
    """Return the error of a file whose first bytes are those of another kind, whatever comes after them; None if they are not."""
    for magic, (kind, hint) in MAGIC.items():
        if head.startswith(magic):
            return _error(name, kind, wanted, hint)
    return None


def other_kind(head: bytes, name: str, wanted: str, *, whole: bool, texts: bool = True) -> InputError | None:
    """Return the error of a file whose first line is not a JSON object; None if it seems to be JSON lines that are malformed."""
    if (error := sure_kind(head, name, wanted)) is not None:
        return error
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"[", b"{")):
        kind, hint = _json_kind(text)
    elif text.startswith(b"<"):
        kind, hint = "an HTML or XML page", "Fetch it again; the server may have asked for a login."
    else:
        kind, hint = _text_kind(text[:_HEAD], whole=whole and len(text) <= _HEAD) if texts else ("", "")
    return _error(name, kind, wanted, hint) if kind else None


def _error(name: str, kind: str, wanted: str, hint: str) -> InputError:
    return InputError(f"{shown_path(name)}: is {kind}, not {wanted}.", hint)


def _json_kind(text: bytes) -> tuple[str, str]:
    first, _, rest = text.partition(b"\n")
    is_array = text.startswith(b"[")
    if is_array and not (rest.strip() and _is_json(first)):
        return "a JSON array", "Name it .json, or write a line for each object: jq -c '.[]' OLD > NEW.jsonl"
    if not is_array and rest.strip() and first.rstrip().endswith((b"{", b"[", b",")):
        hint = "Name it .json if it is one document, or write each object on one line: jq -c . OLD > NEW.jsonl"
        return "JSON that goes over several lines", hint
    return "", ""


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _text_kind(head: bytes, *, whole: bool) -> tuple[str, str]:
    text = head.decode(errors="replace")
    if _is_json(head.partition(b"\n")[0]):
        return "", ""  # a line of JSON, but not an object
    if "\0" in text:
        return "binary data", ""
    if is_delimited(head, whole=whole):
        return "a table with a delimiter", "Name it .csv or .tsv."
    return f"text that begins with {quoted(text.partition(_LINE)[0].strip())}", _OBJECT
