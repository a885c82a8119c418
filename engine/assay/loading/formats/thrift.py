"""The part of Thrift's compact protocol that parquet page headers need: read the integers of a struct, skip the rest."""

from typing import IO

_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
_MAX_DEPTH = 16


def read_struct(file: IO[bytes], depth: int = 0) -> dict[int, int]:
    """Return the integers of a struct by field number, leaving the file after the struct."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    integers: dict[int, int] = {}
    number = 0
    while header := _byte(file):
        kind = header & 0x0F
        number = number + (header >> 4) if header >> 4 else _integer(file)
        if kind in _INTEGERS:
            integers[number] = _integer(file)
        elif kind not in _BOOLEANS:  # their header is their value
            _skip(file, kind, depth)
    return integers


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
        raise ValueError(f"unknown type {kind}")


def _byte(file: IO[bytes]) -> int:
    byte = file.read(1)
    if not byte:
        raise ValueError("ends early")
    return byte[0]


def _varint(file: IO[bytes]) -> int:
    value = shift = 0
    while True:
        byte = _byte(file)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            return value
        if shift > 63:  # noqa: PLR2004
            raise ValueError("number too long")


def _integer(file: IO[bytes]) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
