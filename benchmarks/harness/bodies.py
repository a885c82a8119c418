"""Bodies of requests that would take much of a server: many values, deep ones, long texts."""

__all__ = ["SHAPES", "content_of"]

_ROW = b'{"completion":"a","answer":'
_GOLDS = _ROW + b"["
_TEXT = b'{"answer":"a","completion":"'
_CHAT = b'{"answer":"a","completion":['
_ASSISTANT = b'{"role":"assistant","content":"a"}]}'
_ROWS, _LAST_ROW = b'{"rows":[', b"{}]}"
_QUERY, _LABEL = b'{"query":["', b'"],"labels":["a"]}'

SHAPES = {
    "empty lists": ("/reward", _GOLDS, b"[],", b"[]]}"),
    "empty objects": ("/reward", _GOLDS, b"{},", b"{}]}"),
    "lists within lists": ("/reward", _GOLDS, b"[" * 90 + b"]" * 90 + b",", b"[]]}"),
    "brackets": ("/reward", _ROW, b"[", b""),
    "empty strings": ("/reward", _GOLDS, b'"",', b'""]}'),
    "short strings": ("/reward", _GOLDS, b'"abcd",', b'""]}'),
    "numbers": ("/reward", _GOLDS, b"1234,", b"1]}"),
    "keys": ("/reward", b"{", b'"%08d":1,', b'"answer":"a"}'),
    "keys of a gold": ("/reward", _ROW + b"{", b'"%08d":1,', b'"a":"a"}}'),
    "rows of a value": ("/reward", _ROWS, b'{"answer":"a"},', _LAST_ROW),
    "rows of 2 kB": ("/reward", _ROWS, b'{"answer":"a","completion":"%s"},' % (b"a" * 2000), _LAST_ROW),
    "rows of 2 kB, four bytes a character": (
        "/reward",
        _ROWS,
        b'{"answer":"a","completion":"\xf0\x9f\x98\x80%s"},' % (b"a" * 2000),
        _LAST_ROW,
    ),
    "golds, 9,000 a row": ("/reward", _ROWS, _GOLDS + b'"a",' * 9000 + b" " * 300_000 + b'"a"]},', _LAST_ROW),
    "a text": ("/reward", _TEXT, b"a", b'"}'),
    "a text, two bytes a character": ("/reward", _TEXT + b"\xd0\xb6", b"a", b'"}'),
    "a text, four bytes a character": ("/reward", _TEXT + b"\xf0\x9f\x98\x80", b"a", b'"}'),
    "a gold": ("/reward", _ROW + b'"', b"a", b'"}'),
    "escapes, \\u00e9": ("/reward", _TEXT, b"\\u00e9", b'"}'),
    "escapes, \\n": ("/reward", _TEXT, b"\\n", b'"}'),
    "lone surrogates": ("/reward", _TEXT, b"\\ud800", b'"}'),
    "messages": ("/reward", _CHAT, b'{"role":"user","content":"%s"},' % (b"a" * 300), _ASSISTANT),
    "messages of parts": (
        "/reward",
        _CHAT,
        b'{"role":"user","content":[{"type":"text","text":"%s"}]},' % (b"a" * 300),
        _ASSISTANT,
    ),
    "short queries": ("/get_reward", b'{"query":[', b'"a",', b'"a"]}'),
    "special tokens": ("/get_reward", _QUERY, b"</s>", _LABEL),
    "a prompt that repeats itself": ("/get_reward", _QUERY, b"a", b'b"],"prompts":["%s"],"labels":["a"]}'),
}
"""Paths, and what a body begins with, repeats and ends with; ``%08d`` is a number, ``%s`` what it repeats once more."""


def content_of(shape, size):
    """Return the path and the body of a shape, of about so many bytes."""
    path, begin, unit, end = SHAPES[shape]
    number = max(0, size - len(begin) - len(end)) // len(unit % 0 if b"%08d" in unit else unit)
    if b"%s" in end:
        number = number * 2 // 5
        end %= unit * (number + number // 2)
    repeated = b"".join(unit % at for at in range(number)) if b"%08d" in unit else unit * number
    return path, begin + repeated + end
