"""Small files of every kind that Assay reads, and what may happen to them on the way: bits, lengths, tokens."""

import functools
import gzip
import io
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = [None, "", "a refund", '{"a": [1, 2.5, "é"]}', "<think>x</think> 42", "日本 \U0001f600 refund"]
ROWS = [
    {
        "id": at,
        "task_id": f"t{at % 3}",
        "completion": TEXTS[at % 6],
        "answer": ["42", "7", None][at % 3],
        "score": [0.5, None, -1e300, 3.0][at % 4],
        "metadata": {"expectations": {"mustMention": ["refund"], "mustNotMention": [{"anyOf": ["x", "y"]}]}},
    }
    for at in range(24)
]
CHATS = [
    {"id": at, "completion": [{"role": "user", "content": "q"}, {"role": "assistant", "content": f"refund {at}"}]}
    for at in range(12)
]
SPECS = [
    {
        "id": "v",
        "passThreshold": 0.5,
        "checks": [
            {"type": "contains", "value": "refund", "weight": 2, "required": True},
            {"type": "regex", "params": {"pattern": r"(?i)\bre(fund|turn)s?\b"}},
            {"type": "max_length", "value": 400, "negate": True},
            {"type": "json_keys", "requiredKeys": ["a", "b"]},
        ],
    },
    {"kind": "format_only", "params": {"has_think_reward": 0.25}},
    {"verifier": {"name": "n", "checks": [{"id": "j", "type": "json_valid"}, {"type": "task_expectations"}]}},
]
TASKS = [
    {"task_id": f"t{at}", "answer": str(at), "metadata": {"expectations": ["refund", {"anyOf": ["a", "b"]}]}}
    for at in range(3)
]


def _table(rows):
    plain = [{**row, "metadata": json.dumps(row["metadata"])} if "metadata" in row else row for row in rows]
    return pa.Table.from_pylist(plain)


def _parquet(rows, **options):
    file = io.BytesIO()
    pq.write_table(_table(rows), file, **{"row_group_size": 7, **options})
    return file.getvalue()


def _of_polars(write):
    file = io.BytesIO()
    getattr(pl.DataFrame(_table(ROWS)), write)(file)
    return file.getvalue()


def _ipc(rows, new, **options):
    table = _table(rows)
    if "completion" in table.column_names and pa.types.is_string(table["completion"].type):
        at = table.column_names.index("task_id")
        table = table.set_column(at, "task_id", table["task_id"].dictionary_encode())
    file = io.BytesIO()
    with new(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=5)
    return file.getvalue()


def _lines(rows, **options):
    return "\n".join(json.dumps(row, **options) for row in rows).encode() + b"\n"


def _toml(spec):
    checks = "\n".join(
        "[[checks]]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in check.items() if name != "params")
        for check in spec["checks"]
    )
    return f'id = "v"\npassThreshold = 0.5\n\n{checks}\n'.encode()


def _yaml(value, indent=""):
    """A value in YAML's own style; what JSON writes is YAML, too."""
    if isinstance(value, dict) and value:
        return "".join(f"\n{indent}{name}: {_yaml(inner, indent + '  ')}" for name, inner in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}- {json.dumps(inner)}" for inner in value)
    return json.dumps(value)


@functools.cache
def seeds():
    """Whole files by kind: the kind's name ends as the file's does."""
    messy = b'\xef\xbb\xbf{"completion": "a", "x": NaN}\r\n\n' + _lines(ROWS[:6], ensure_ascii=False)
    frame = pl.DataFrame(_table(ROWS))
    return {
        "rows.parquet": [
            _parquet(ROWS, compression="none", use_dictionary=False),
            _parquet(ROWS, compression="zstd", write_page_index=True, write_page_checksum=True),
            _parquet(ROWS, compression="snappy", data_page_version="2.0", version="2.6"),
            _parquet(CHATS, compression="none"),
            _of_polars("write_parquet"),
        ],
        "file.arrow": [
            _ipc(ROWS, pa.ipc.new_file),
            _ipc(CHATS, pa.ipc.new_file),
            _ipc(ROWS, pa.ipc.new_file, compression="zstd"),
            _of_polars("write_ipc"),
        ],
        "stream.arrow": [
            _ipc(ROWS, pa.ipc.new_stream),
            _ipc(CHATS, pa.ipc.new_stream),
            _ipc(ROWS, pa.ipc.new_stream, compression="lz4"),
            _of_polars("write_ipc_stream"),
        ],
        "rows.jsonl": [_lines(ROWS), _lines(ROWS, ensure_ascii=False), _lines(CHATS), messy],
        "rows.jsonl.gz": [gzip.compress(_lines(ROWS), mtime=0), gzip.compress(messy, 0, mtime=0)],
        "rows.jsonl.zst": [pa.compress(lines, codec="zstd", asbytes=True) for lines in (_lines(ROWS), messy)],
        "rows.csv": [frame.write_csv().encode(), b'a,completion\n1,"x\ny"\n2,"q""q"\n'],
        "spec.json": [json.dumps(spec, indent=indent).encode() for spec in SPECS for indent in (None, 2)],
        "spec.yaml": [*(_yaml(spec).encode() for spec in SPECS), json.dumps(SPECS[0]).encode()],
        "spec.toml": [_toml(SPECS[0]), b'kind = "format_only"\n[params]\nhas_think_reward = 0.25\n'],
        "tasks.jsonl": [_lines(TASKS)],
        "tasks.yaml": [_yaml(TASKS).encode(), f"tasks:{_yaml(TASKS, '  ')}".encode()],
        "tasks.parquet": [_parquet(TASKS, compression="none")],
        "tasks.csv": [pl.DataFrame(_table(TASKS)).write_csv().encode()],
    }


BINARY = (".parquet", ".arrow", ".gz", ".zst")
_NUMBERS = (0, 1, -1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**31))
_TOKENS = [
    *rb"""
    " ' \ { } [ ] , : # - ? | <<: --- ... null true NaN -Infinity 1e400 -0 0.1 1e-400 1:30 no
    \ud800 \u0000 \udc00\ud800 &a[*a] *a !!python/name:os.system !!set [[checks]] [verifier] id=1 1979-05-27T07:32:00Z
    {"completion":"x"} "completion":1 "type":"regex","pattern":"(a+)+$" ( (?P<n>a)(?P=n) a{1000}{1000} \w{900}
    "$ref":"file:///etc/passwd" .inf params verifier kind __assay/x completion metadata
    """.split(),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b"\x00", b"\x1c", b"\x1b[31m", "\u2028\u202e\u0085".encode()),
    *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"\xf0\x9f\x98"),
    *(b"9" * 25, b"9" * 5000, b"[" * 120, b"[" * 2000, b'{"a":' * 600),
]


def mutated(kind, whole, rng):
    """A file with one to four things wrong, by a seeded source of chance."""
    content = bytearray(whole[rng.randrange(len(whole))])
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        binary = kind.endswith(BINARY) and rng.random() < 0.95
        ways = (_flip, _byte, _number, _varint, _cut_out, _twice, _short, _splice) if binary else _OF_TEXT
        rng.choice(ways)(content, rng, whole)
        if not content:
            break
    return bytes(content)


def _place(content, rng):
    """Anywhere, and half of the time where files say how they are laid out: at either end."""
    at = rng.randrange(len(content)) if content else 0
    if rng.random() < 0.5 and len(content) > 1200:
        at = rng.choice((rng.randrange(600), len(content) - 1 - rng.randrange(1200)))
    return at


def _flip(content, rng, _):
    if content:
        content[_place(content, rng)] ^= 1 << rng.randrange(8)


def _byte(content, rng, _):
    if content:
        content[_place(content, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))


def _number(content, rng, _):
    """A length or an offset of flatbuffers, of a footer, of a page."""
    width = rng.choice((2, 4, 8))
    at = _place(content, rng) // 4 * 4
    value = rng.choice(_NUMBERS) + rng.choice((0, 0, rng.randrange(-9, 9), rng.randrange(1 << 16)))
    content[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")


def _varint(content, rng, _):
    """A number as thrift writes it."""
    value = rng.choice(_NUMBERS) % (1 << 64)
    said = bytearray()
    while value > 0x7F:
        said.append(value & 0x7F | 0x80)
        value >>= 7
    at = _place(content, rng)
    content[at : at + rng.choice((0, 1, len(said) + 1))] = [*said, value]


def _cut_out(content, rng, _):
    at = _place(content, rng)
    del content[at : at + rng.choice((1, 1, 2, 4, 8, rng.randrange(1, 400)))]


def _twice(content, rng, _):
    at, to = _place(content, rng), _place(content, rng)
    content[to:to] = content[at : at + rng.choice((1, 4, 8, rng.randrange(1, 400)))]


def _short(content, rng, _):
    del content[_place(content, rng) :]


def _splice(content, rng, whole):
    other = rng.choice(whole)
    at = rng.randrange(len(other))
    to = _place(content, rng)
    content[to : to + rng.choice((0, 64, len(content)))] = other[at : at + rng.randrange(1, len(other))]


def _token(content, rng, _):
    at = _place(content, rng)
    content[at : at + rng.choice((0, 0, 1, 4, 12))] = rng.choice(_TOKENS)


def _swap(content, rng, _):
    """One token of the file in the place of another."""
    words = bytes(content).split(b'"')
    one, other = rng.randrange(len(words)), rng.randrange(len(words))
    words[one] = words[other]
    content[:] = b'"'.join(words)


_OF_TEXT = (_flip, _byte, _cut_out, _twice, _short, _splice, _token, _token, _token, _swap, _swap)
