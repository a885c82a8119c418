"""Command lines, files and environments that somebody might give, each in a process of its own.

A case is known by its seed and its number. Whatever is drawn, a command must end in time with one of the documented codes, without
a traceback and without anything in its messages that a terminal would obey; what was at the place of the result is there as it was
or replaced by a whole result, and no draft, lock or copy is left.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from waiting import PATIENCE, is_caught

import assay

SECONDS = PATIENCE
"""What a command may take; a machine may be busy."""

CODES = {0, 1, 2, 3, 130, 143}
ROWS = 40
FRAME = pl.DataFrame({"completion": [f"b {row}" for row in range(ROWS)], "task_id": [f"t{row}" for row in range(ROWS)]})
LINES = "".join(json.dumps(row) + "\n" for row in FRAME.to_dicts())
SPEC = {"checks": [{"type": "contains", "value": "b"}, {"type": "max_length", "value": 90}]}
OLD = b"what was there before"
SECRET = "s3cr3t-of-a-store"  # noqa: S105  (that is the point)

NAMES = (
    "r", "r", "r", "a b", "r\xe9", "r\n\x1b[31mred", "\x7f\u202e", os.fsdecode(b"r\xff"), "[a]*?", "-r", "--help",
    "~", "%s{0}", "#$&;'\"", "n" * 200,
)  # fmt: skip
TEXTS = (
    "", "0", "-1", "1", "7", "1%", "nan", "inf", "1e400", "9" * 400, "1GB", "600MB", "x", "\x1b[31m", "a=b", "=",
    "completion", "None",
)  # fmt: skip
OPTIONS = (
    "--limit", "--max-errors", "--max-bad-rows", "--keep", "--map", "--preset", "--memory-limit", "--part-size",
    "--utf8", "--tasks", "--function-timeout", "--workers", "--max-concurrent", "--regex-timeout", "--max-ratio",
    "--max-uncompressed", "--pass-threshold", "--verifier-name", "--engine", "--ray-address", "--bogus",
)  # fmt: skip
FLAGS = (
    "--json", "--raw-csv", "--no-details", "--strict", "--no-isolate", "--verify-checksums", "--skip-bad-files",
    "--overwrite",
)  # fmt: skip
MODULES = {
    "fine": "import assay\nrubric = assay.Rubric(funcs=[lambda completion: 1.0])\n",
    "prints": "import sys\nprint('printed')\nsys.stdout.write('more')\nsys.stderr.write('x')\n",
    "raises": "raise ValueError('\\x1b[31m\\n')\n",
    "exits": "import sys\nsys.exit(9)\n",
    "syntax": "def (\n",
    "interrupts": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n",
    "takes_signals": "import signal\nfor one in (signal.SIGINT, signal.SIGTERM): signal.signal(one, lambda *_: None)\n",
    "json": "raise RuntimeError('shadows')\n",
    "assay": "raise RuntimeError('shadows')\n",
    "closes": "import os\nos.close(0)\n",
    "chdirs": "import os\nos.chdir('/')\n",
    "warns": "import warnings\nwarnings.warn('\\x1b[31m', UserWarning)\n",
    "scores": "import assay\nassay.score([{'completion': 'b'}], {'checks': [{'type': 'contains', 'value': 'b'}]})\n",
    "deep": "raise RecursionError\n",
}
SPECS = {
    "v.json": json.dumps(SPEC),
    "v.yaml": "checks:\n- {type: contains, value: b}\n",
    "v.toml": '[[checks]]\ntype = "contains"\nvalue = "b"\n',
    "twice.json": '{"checks": [], "checks": []}',
    "deep.json": "[" * 100_000,
    "deep.yaml": "[" * 5_000,
    "deep.toml": "a = " + "[" * 5_000,
    "deepkey.toml": "a" + ".a" * 20_000 + " = 1\n",
    "bomb.yaml": "a: &a [x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)),
    "tag.yaml": "!!python/object/apply:os.system [true]\n",
    "number.json": '{"checks": [{"type": "max_length", "value": ' + "9" * 5_000 + "}]}",
    "float.json": '{"checks": [{"type": "contains", "value": "b", "weight": 1e999}]}',
    "float.yaml": "checks: [{type: contains, value: b, weight: 1e999}]\n",
    "number.toml": "a = " + "9" * 5_000,
    "nul.json": '{"checks": [{"type": "contains", "value": "\\u0000"}]}',
    "nul.yaml": "checks: [{type: contains, value: \0}]\n",
    "surrogate.json": '{"checks": [{"type": "contains", "value": "\\ud800"}], "id": "\\ud800"}',
    "id.json": json.dumps(SPEC | {"id": "a/b\n\x1b[31m"}),
    "large.json": " " * (5 << 20),
    "wide.json": '{"checks": [' + ",".join(['{"type": "contains", "value": "b"}'] * 300) + "]}",
    "empty.yaml": "",
    "list.json": "[]",
    "latin.json": '{"id": "\xe9"}'.encode("latin-1"),
    "refs.json": json.dumps({"checks": [{"type": "json_schema", "schema": {"$ref": "file:///etc/passwd"}}]}),
    "climbs.json": json.dumps({"checks": [{"type": "json_schema", "schema": {"$ref": "../../v.json#/checks"}}]}),
    "itself.json": json.dumps({"checks": [{"type": "json_schema", "schema": {"$ref": "#"}}]}),
    "pattern.json": json.dumps({"checks": [{"type": "regex", "pattern": "(?:" * 40 + "a" + ")+" * 40}]}),
    "v.txt": json.dumps(SPEC),
}
ENVIRONMENTS = (
    {}, {}, {}, {}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "nonsense"},
    {"PYTHONIOENCODING": "ascii:strict"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONWARNINGS": "error"},
    {"PYTHONOPTIMIZE": "2"}, {"PYTHONDEVMODE": "1"}, {"PYTHONUNBUFFERED": "1"}, {"PYTHONSAFEPATH": "1"},
    {"PYTHONDONTWRITEBYTECODE": "1"}, {"TERM": "dumb"}, {"COLUMNS": "0"}, {"COLUMNS": "1"}, {"COLUMNS": "x"},
    {"NO_COLOR": "1"}, {"TZ": "Nowhere/\x1b[31m"}, {"HOME": "/nonexistent"}, {"TMPDIR": "/nonexistent"},
    {"TMPDIR": "/dev/null"}, {"TMPDIR": "/proc"}, {"TMPDIR": ""}, {"POLARS_VERBOSE": "1"},
    {"POLARS_MAX_THREADS": "1"}, {"POLARS_IDEAL_MORSEL_SIZE": "1"}, {"POLARS_ENGINE_AFFINITY": "streaming"},
    {"RAY_ADDRESS": "nowhere:1"}, {"AWS_SECRET_ACCESS_KEY": SECRET},
)  # fmt: skip


ABOUT_RESULTS = {
    "verify": (
        ["--sample", (*TEXTS, "all", "5%")],
        ["--seed", TEXTS],
        ["--root", (*TEXTS, "0" * 64)],
        ["--rollouts", ("rows.jsonl", "fifo.jsonl", "missing.jsonl", "/dev/zero", "folder")],
        ["--tasks", ("tasks.jsonl", "fifo.yaml", "harbor", "/dev/null")],
        ["--import", (*MODULES,)],
        ["--checks", ("fine:rubric", "x", ":", "raises:x")],
        ["--any-version"],
        ["--overwrite"],
    ),
    "diff": (
        ["--on", TEXTS],
        ["--by", TEXTS],
        ["--max-flips", TEXTS],
        ["--allow-missing", TEXTS],
        ["--rescore"],
        ["--examples", TEXTS],
    ),
    "whatif": (
        ["--set", (*TEXTS, "contains=2", "contains.required=true")],
        ["--threshold", TEXTS],
        ["--drop", TEXTS],
        ["--rank", TEXTS],
    ),
    "groups": (["--k", TEXTS], ["--by", TEXTS], ["--vote", TEXTS], ["--eps", TEXTS], ["--group", ("task_id", *TEXTS)]),
    "report": (["--by", TEXTS], ["--examples", TEXTS], ["--format", ("html", "md", "json", *TEXTS)], ["--no-text"]),
    "forge": (["--rollouts", ("rows.jsonl", "folder", "/dev/zero")], ["--skip", ("bold", *TEXTS)], ["--sample", TEXTS]),
    "audit": (["--sample", TEXTS], ["--probe", ("bad.jsonl", "fifo.jsonl", "v.json")], ["--max-free", TEXTS]),
    "show": (
        ["--where", (*TEXTS, "reward < 1")],
        ["--sort", TEXTS],
        ["--limit", TEXTS],
        ["--row", TEXTS],
        ["--failed", TEXTS],
    ),
    "calibrate": (
        ["--next", ("2", *TEXTS)],
        ["--labels", ("v.json", "r.parquet", "fifo.json", "empty.yaml", "folder")],
        ["--on", ("task_id", *TEXTS)],
        ["--for", ("kappa", *TEXTS)],
        ["--with", ("reward", "completion", *TEXTS)],
        ["--suggest"],
    ),
    "suspects": (["--answer", ("contains", "completion", "reward", *TEXTS)], ["--limit", TEXTS]),
    "tripwire": (
        ["--by", ("task_id", *TEXTS)],
        ["--limits", ("v.json", "deep.yaml", "fifo.json", "empty.yaml")],
        ["--warn-only"],
    ),
}
"""The commands about results, with options that they take and values for these."""

NOT_RESULTS = (
    *("r.parquet", "html.parquet", "missing.parquet", "folder", "held", "old.parquet", "link.parquet", "loop.parquet"),
    *("dangling.parquet", "fifo.jsonl", "/dev/null", "/dev/zero", "", ".", "v.json", "-", "/proc/self/mem"),
)


@dataclass
class Case:
    """A command, and what is around it."""

    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str = "null"
    stdout: str = "file"
    stderr: str = "file"
    third: str = "file"
    out: str = ""
    limits: dict[int, int] = field(default_factory=dict)
    after: tuple[float, int] | None = None
    early: bool = False
    cwd: str = "there"


def case(seed, number):
    rng = random.Random(f"{seed}/{number}")
    drawn = Case(environment=dict(rng.choice(ENVIRONMENTS)))
    command = rng.choice(
        ["score"] * 12
        + ["check", "check", "explain", "bench", "presets", "checks", "schema", "--help", "--version", "bogus"]
        + [*ABOUT_RESULTS, "verify"]
    )
    drawn.stdin = rng.choice(["null", "lines", "lines", "pipe", "closed", "empty", "zero"])
    drawn.stdout = rng.choice(["file"] * 5 + ["full", "closed", "broken"])
    drawn.stderr = rng.choice(["file"] * 7 + ["full", "closed", "broken"])
    drawn.third = rng.choice(["file", "pipe", "closed"])
    drawn.arguments = [command]
    if command == "score":
        _score(rng, drawn)
    elif command == "bench":
        drawn.arguments += [_spec(rng), _input(rng), "--rows", "5"]
    elif command in ("check", "explain"):
        drawn.arguments += [_spec(rng) for _ in range(rng.randint(0, 2))]
        drawn.arguments += (
            rng.choice([[], ["--against", _input(rng)]]) if command == "check" else rng.choice([[], ["--json"]])
        )
    elif command in ABOUT_RESULTS:
        _about_results(rng, drawn)
    elif command in ("presets", "checks"):
        drawn.arguments += rng.choice([[], ["--json"], ["--markdown"], ["--schema"], ["x\x1b"]])
    if rng.random() < 0.1:
        drawn.arguments += rng.choice(
            [["--import", rng.choice([*MODULES])], [rng.choice(OPTIONS), rng.choice(TEXTS)], [rng.choice(FLAGS)]]
        )
    if rng.random() < 0.12:
        drawn.limits = rng.choice(
            [{resource.RLIMIT_FSIZE: 0}, {resource.RLIMIT_FSIZE: 300}, {resource.RLIMIT_NOFILE: rng.randint(8, 60)}]
        )
    if rng.random() < 0.15:
        drawn.after = (rng.choice([0.2, 0.5, 1.0, 1.5, 2.5]), rng.choice([signal.SIGINT, signal.SIGTERM]))
    if rng.random() < 0.04:
        drawn.cwd = rng.choice(["gone", "read-only"])
    return drawn


def _score(rng, drawn):
    drawn.arguments += [_input(rng) for _ in range(rng.choice([1, 1, 1, 1, 2]))]
    if rng.random() < 0.85:
        for _ in range(rng.choice([1, 1, 1, 2])):
            drawn.arguments += ["-s", _spec(rng)]
    else:
        drawn.arguments += [
            "--rubric",
            rng.choice([*MODULES, "fine", "fine"]) + rng.choice([":rubric", ":rubric", ":x", "", ":"]),
        ]
    places = (
        "", "-", "o.parquet", "o.parquet", "o.jsonl", "o.csv", "o/", "o/", "old.parquet", "old.jsonl", "r.jsonl",
        "held/", "link.parquet", "loop.parquet", "dangling.jsonl", "dangling/", "fifo.jsonl", "socket.csv", "folder",
        "folder/", "no/o.parquet", "/dev/null", "/dev/full", "/dev/stdout", "o.txt", "n" * 250 + ".parquet",
        "o\n\x1b[31m.csv", os.fsdecode(b"o\xff.jsonl"), "./", "..",
    )  # fmt: skip
    drawn.out = rng.choice(places)
    drawn.arguments += ["-o", drawn.out] if drawn.out or rng.random() < 0.1 else []
    drawn.arguments += ["--overwrite"] if rng.random() < 0.5 else []
    drawn.arguments += ["--reuse", _result(rng)] if rng.random() < 0.15 else []
    for option in (
        ["--seal"],
        ["--reuse-code"],
        ["--lengths"],
        ["--by", rng.choice(TEXTS)],
        ["--min-pass-rate", rng.choice(TEXTS)],
    ):
        drawn.arguments += option if rng.random() < 0.08 else []
    drawn.arguments += (
        ["--tasks", rng.choice(["tasks.jsonl", "fifo.yaml", "dangling.jsonl", "harbor", "tasks.yaml"])]
        if rng.random() < 0.1
        else []
    )
    drawn.arguments += ["--storage-option", f"aws_secret_access_key={SECRET}"] if rng.random() < 0.05 else []


def _about_results(rng, drawn):
    (command,) = drawn.arguments
    if command in ("audit", "forge"):
        drawn.arguments += [_spec(rng), *(["--golds"] if command == "forge" else []), _input(rng)]
    else:
        drawn.arguments += [_result(rng) for _ in range(1 + (command == "diff"))]
    drawn.arguments += ["--rollouts", "rows.jsonl"] if command == "verify" and rng.random() < 0.6 else []
    options = [*ABOUT_RESULTS[command], ["--json"], ["--bogus"]]
    options += [["--out", rng.choice(["o.md", "o.html", "o.json", "held/", "old.parquet", "no/o.md", "o.txt"])]] * (
        command != "show"
    )
    for option in rng.sample(options, rng.choice([0, 0, 1, 1, 2, 3])):
        drawn.arguments += [rng.choice(value) if isinstance(value, tuple) else value for value in option]


def _result(rng):
    return rng.choice([*["rewards.parquet"] * 6, "bare.parquet", "parts", "altered.parquet", *NOT_RESULTS])


def _input(rng):
    names = (
        "{}.jsonl", "{}.jsonl", "{}.parquet", "{}.csv", "{}.arrow", "-", "/dev/stdin", "/dev/fd/3", "/dev/fd/77",
        "fed.jsonl", "fifo.jsonl", "dangling.jsonl", "loop.jsonl", "socket.jsonl", "/dev/null", "/dev/zero", "folder",
        "empty.jsonl", "bad.jsonl", "link.jsonl", "*.jsonl", "folder/*", "**/*", "", ".", "/proc/self/mem",
        "html.parquet", "missing.jsonl", "/", "/dev/tty", "v.json",
    )  # fmt: skip
    return rng.choice([*names[:10] * 2, *names]).format(rng.choice(NAMES))


def _spec(rng):
    return rng.choice(
        [
            *["v.json"] * 8,
            *SPECS,
            "fifo.json",
            "fed.json",
            "dangling.json",
            "loop.json",
            "folder",
            "/dev/stdin",
            "/dev/null",
            "",
            "no.json",
        ]
    )


def furnish(folder, drawn):
    for name in {
        Path(argument).stem
        for argument in drawn.arguments
        if argument.endswith((".jsonl", ".parquet", ".csv", ".arrow"))
    } & {*NAMES}:
        with contextlib.suppress(OSError, ValueError):
            (folder / f"{name}.jsonl").write_text(LINES)
            for ending, write in (
                (".parquet", FRAME.write_parquet),
                (".csv", FRAME.write_csv),
                (".arrow", FRAME.write_ipc),
            ):
                with (folder / f"{name}{ending}").open("wb") as file:
                    write(file)
    for name, text in SPECS.items():
        if name in drawn.arguments or name == "v.json":
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, text in MODULES.items():
        if any(argument.split(":")[0] == name for argument in drawn.arguments):
            (folder / f"{name}.py").write_text(text)
    for name, text in {
        "empty.jsonl": "",
        "bad.jsonl": LINES + "nope\x1b[31m\n",
        "html.parquet": "<html>",
        "tasks.jsonl": LINES,
    }.items():
        (folder / name).write_text(text)
    (folder / "tasks.yaml").write_text("- {task_id: t1, answer: b}\n")
    for name in ("old.parquet", "old.jsonl"):
        (folder / name).write_bytes(OLD)
    for name, content in _results().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    _furnish_oddly(folder)


@cache
def _results():
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        folder = Path(name)
        (folder / "rows.jsonl").write_text(LINES)
        assay.score_file(folder / "rows.jsonl", SPEC, folder / "rewards.parquet")
        assay.score_file(folder / "rows.jsonl", SPEC, folder / "bare.parquet", details=False)
        assay.score_file(folder / "rows.jsonl", SPEC, f"{folder / 'parts'}/", part_bytes=500, isolate=False)
        footer = pq.read_metadata(folder / "rewards.parquet").metadata
        table = pq.read_table(folder / "rewards.parquet")
        at = table.schema.get_field_index("reward")
        table = table.set_column(at, "reward", pa.array([0.3] * ROWS)).replace_schema_metadata(footer)
        pq.write_table(table, folder / "altered.parquet")
        files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "_counts")
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _furnish_oddly(folder):
    for name in ("folder", "held", "home", "tmp", "harbor"):
        (folder / name).mkdir()
    (folder / "folder" / "a.jsonl").write_text(LINES)
    (folder / "held" / "theirs.txt").write_bytes(OLD)
    (folder / "link.parquet").symlink_to("old.parquet")
    (folder / "link.jsonl").symlink_to("folder/a.jsonl")
    for ending in (".jsonl", ".json", ""):
        (folder / f"dangling{ending}").symlink_to("nowhere" + ending)
    for ending in (".jsonl", ".json", ".parquet"):
        (folder / f"loop{ending}").symlink_to(f"loop{ending}")
    for name in ("fifo.jsonl", "fifo.json", "fifo.yaml", "fed.jsonl", "fed.json"):
        os.mkfifo(folder / name)
    for name in ("socket.jsonl", "socket.csv"):
        with socket.socket(socket.AF_UNIX) as made, contextlib.suppress(OSError):
            made.bind(str(folder / name))


@contextlib.contextmanager
def fed(folder, drawn):
    feeders = []
    for name, text in (("fed.jsonl", LINES), ("fed.json", json.dumps(SPEC))):
        if name in drawn.arguments:
            program = "import sys, signal\nsignal.alarm(60)\nopen(sys.argv[1], 'w').write(sys.argv[2])"
            feeders.append(
                subprocess.Popen([sys.executable, "-c", program, name, text], cwd=folder, stderr=subprocess.DEVNULL)
            )
    try:
        yield
    finally:
        for feeder in feeders:
            feeder.kill()
            feeder.wait()


def streams(folder, drawn, opened):
    def take(handle):
        opened.append(handle)
        return handle

    def piped():
        readable, writable = os.pipe()
        os.write(writable, LINES.encode())
        os.close(writable)
        return take(readable)

    def broken():
        readable, writable = os.pipe()
        os.close(readable)
        return take(writable)

    (folder / "lines").write_text(LINES)
    inputs = {
        "null": "/dev/null", "empty": "/dev/null", "lines": folder / "lines", "zero": "/dev/zero",
        "file": folder / "lines",
    }  # fmt: skip

    def readable(kind):
        if kind == "closed":
            return None
        return piped() if kind == "pipe" else take(os.open(inputs[kind], os.O_RDONLY))

    def writable(kind, name):
        if kind == "closed":
            return None
        if kind == "broken":
            return broken()
        return take(os.open("/dev/full" if kind == "full" else folder / name, os.O_WRONLY | os.O_CREAT, 0o644))

    return (
        readable(drawn.stdin),
        writable(drawn.stdout, "stdout"),
        writable(drawn.stderr, "stderr"),
        readable(drawn.third),
    )


def run(folder, drawn):  # noqa: C901  (what is around a process)
    work = folder / "work"
    work.mkdir()
    furnish(work, drawn)
    opened = []
    handles = streams(folder, drawn, opened)
    environment = (
        os.environ
        | {"HOME": str(work / "home"), "TMPDIR": str(work / "tmp"), "RAY_USAGE_STATS_ENABLED": "0"}
        | drawn.environment
    )

    def child():
        held = [None if one is None else os.dup2(one, 100 + at) for at, one in enumerate(handles)]
        for number, one in enumerate(held):
            with contextlib.suppress(OSError):  # it was not open
                os.close(number) if one is None else os.dup2(one, number)
        for number in range(4, 128):
            with contextlib.suppress(OSError):
                os.close(number)
        for kind, value in drawn.limits.items():
            resource.setrlimit(kind, (value, value))

    if drawn.cwd == "read-only":
        work.chmod(0o555)
    command = [sys.executable, "-P", "-m", "assay", *drawn.arguments]
    if drawn.cwd == "gone":  # gone when it starts
        command = ["/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh", *command]
    with fed(work, drawn):
        around = {"cwd": work, "env": environment, "preexec_fn": child, "close_fds": False, "start_new_session": True}
        process = subprocess.Popen(command, **around)
        for handle in opened:
            os.close(handle)
        timer = None
        if drawn.after is not None:

            def interrupt():
                drawn.early = drawn.after[0] < 1.5 or not is_caught(process.pid, signal.SIGTERM)
                process.send_signal(drawn.after[1])

            timer = threading.Timer(drawn.after[0], interrupt)
            timer.start()
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if timer is not None:
                timer.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (folder / "stderr").read_text("utf-8", "replace") if (folder / "stderr").exists() else ""
    return code, said


def wrong(folder, drawn, code, said):  # noqa: PLR0911  (one reason after another)
    early = drawn.early
    if code is None:
        return "it does not end"
    if code not in CODES and not (early and code in (-signal.SIGINT, -signal.SIGTERM)) and not _startless(drawn, said):
        return f"ends with {code}"
    if (
        "Traceback (most recent" in said
        and not early
        and not _startless(drawn, said)
        and drawn.environment.get("PYTHONWARNINGS") != "error"
    ):
        return "a traceback"
    if "internal error" in said and not drawn.limits:
        return "an internal error"
    if SECRET in said:
        return "a secret is shown"
    if (
        raw := {mark for mark in said if mark != "\n" and not mark.isprintable()} - {"\ufffd"}
    ) and "POLARS_VERBOSE" not in drawn.environment:
        return f"messages hold {sorted(raw)!r}"
    return _left(folder / "work", drawn, code)


def _startless(drawn, said):
    return bool(drawn.limits.get(resource.RLIMIT_NOFILE)) or "Fatal Python error" in said or drawn.cwd == "gone"


def _left(work, drawn, code):  # noqa: PLR0911
    if drawn.after is None or code in CODES:
        left = [path.name for path in work.rglob("*") if path.name.endswith((".tmp", ".lock")) or path.name == "_lock"]
        left += [path.name for path in (work / "tmp").iterdir() if path.name.startswith("assay-")]
        if left and drawn.stdin != "none":
            return f"leaves {left}"
    if (work / "held" / "theirs.txt").read_bytes() != OLD or (work / "folder" / "a.jsonl").read_text() != LINES:
        return "changes what is not its own"
    for name in ("old.parquet", "old.jsonl"):
        path = work / name
        allowed = "--overwrite" in drawn.arguments and drawn.out in (name, "link.parquet")
        if path.read_bytes() != OLD and not (allowed and _whole(path)):
            return f"{name} is neither old nor new"
    if drawn.out[:2] not in ("o.", "o\n", "o\udcff"):
        return ""
    place = work / drawn.out
    if place.is_file() and not place.is_symlink() and not _whole(place):
        return "the result is not whole"
    if (
        code == 0
        and drawn.out.startswith("o.")
        and drawn.arguments[0] == "score"
        and not place.is_file()
        and drawn.cwd == "there"
    ):
        return "there is no result"
    return ""


def _whole(path):
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path).height >= 0
        text = path.read_bytes()
        return not text or text.endswith(b"\n")
    except pl.exceptions.PolarsError:
        return False


def outcome(seed, number, _):
    drawn = case(seed, number)
    code, why, said = tried(drawn)
    return f"{drawn.arguments[0]} {code}", why and f"{why}: {drawn!a}\n{said[-1500:]}"


def tried(drawn):
    folder = Path(tempfile.mkdtemp(prefix="assay-commands-"))
    try:
        code, said = run(folder, drawn)
        return code, wrong(folder, drawn, code, said), said
    finally:
        (folder / "work").chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
