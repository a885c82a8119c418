"""What of Thrift's compact protocol the headers of parquet pages need: the integers of a struct, everything else skipped."""

from typing import IO

__all__ = ["read_struct"]

_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
_DEEPEST = 16


def read_struct(file: IO[bytes], depth: int = 0) -> dict[int, int]:
    """The integers of a struct by their field's number; the file stands behind it then.

    Raises:
        ValueError: It is none.
    """
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    found: dict[int, int] = {}
    number = 0
    while header := _byte(file):
        kind = header & 0x0F
        number = number + (header >> 4) if header >> 4 else _integer(file)
        if kind in _INTEGERS:
            found[number] = _integer(file)
        elif kind not in _BOOLEANS:  # which say all in their header
            _skip(file, kind, depth)
    return found


def _skip(file: IO[bytes], kind: int, depth: int) -> None:
    if kind in (_BYTE, *_BOOLEANS):  # an element of a list
        _byte(file)
    elif kind in _INTEGERS:
        _varint(file)
    elif kind == _DOUBLE:
        file.seek(8, 1)
    elif kind == _BINARY:
        file.seek(_varint(file), 1)
    elif kind == _STRUCT:
        read_struct(file, depth + 1)
    elif kind in _LISTS:
        header = _byte(file)
        count = header >> 4 if header >> 4 < 15 else _varint(file)  # noqa: PLR2004
        for _ in range(count):
            _skip(file, header & 0x0F, depth + 1)
    else:
        raise ValueError(f"no type {kind} in a header")


def _byte(file: IO[bytes]) -> int:
    given = file.read(1)
    if not given:
        raise ValueError("ends early")
    return given[0]


def _varint(file: IO[bytes]) -> int:
    value = shift = 0
    while True:
        byte = _byte(file)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            return value
        if shift > 63:  # noqa: PLR2004
            raise ValueError("too long a number")


def _integer(file: IO[bytes]) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
