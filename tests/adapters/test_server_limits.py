"""What a server of rewards refuses or lets wait: bodies that would take much memory, and connections that say nothing."""

import asyncio
import contextlib
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cases import sized
from reward_client import Client, served

import assay
from assay.adapters.bodies import Bodies, Body, Refused, ServerLimits, Structure, row_problem
from assay.adapters.connections import Connection
from assay.compiling.plan import Plan
from harness.bodies import SHAPES, content_of

SPEC = {
    "id": "v",
    "checks": [
        {"id": "right", "type": "equals", "value": {"column": "answer"}},
        {"id": "has", "type": "contains", "value": "apple"},
    ],
}
ROW = {"completion": "apple", "answer": "apple"}


# ── what a body holds ───────────────────────────────────────────────────────────────────────────────────────────────


def drawn(draw, depth):
    kind = draw.randrange(7 if depth else 4)
    if kind > 3:
        values = [drawn(draw, depth - 1) for _ in range(draw.randrange(4))]
        return values if kind < 6 else {text(draw) + str(at): value for at, value in enumerate(values)}
    return (draw.randrange(2000), draw.random(), text(draw), None)[kind]


def text(draw):
    return "".join(draw.choices('ab"\\[]{},: \n\u00e9\U0001f600', k=draw.randrange(8)))


def size_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    sizes = [size_of(each) for each in inner]
    is_nest = isinstance(value, dict | list)
    return 1 + sum(size for size, _ in sizes), is_nest + max((depth for _, depth in sizes), default=0)


def test_values_and_levels_are_counted_without_parsing_wherever_a_body_is_cut():
    draw = random.Random(28)
    for _ in range(sized(20_000, 2_000)):
        value = drawn(draw, 5)
        content = json.dumps(value, ensure_ascii=draw.random() < 0.5, indent=draw.choice((None, 1))).encode()
        structure, place = Structure(), 0
        while place < len(content):
            size = draw.choice((1, 2, 3, 7, 1000))
            structure.see(content[place : place + size])
            place += size
        assert (structure.values, structure.depth) == size_of(value), content


def test_a_parsed_body_is_what_json_says_and_its_bytes_are_gone():
    for content in (b"\xef\xbb\xbf[1]", b'"\\ud800"', b'{"a": 1, "a": NaN}', '"é\U0001f600"'.encode(), b"-0.0"):
        body = Body(bytearray(content), 1)
        assert repr(body.parsed()) == repr(json.loads(content))
        assert not body.content
    draw = random.Random(29)
    for _ in range(sized(20_000, 2_000)):
        number = draw.choice(
            (repr(draw.random() * 10 ** draw.randrange(-300, 300)), f"{draw.random():.30e}", str(draw.getrandbits(99)))
        )
        content = json.dumps([drawn(draw, 4), "number"]).replace('"number"', number).encode()
        assert repr(Body(bytearray(content), 1).parsed()) == repr(json.loads(content))
    for content in (b"", b"[1", b"\xff", b"1" * 5000, '"a"'.encode("utf-16")):
        with pytest.raises(Refused, match="The body is not JSON"):
            Body(bytearray(content), 1).parsed()


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("a" * 9_000_000, True),
        ("é" * 9_000_000, True),
        ("字" * 3_000_000, True),
        ("\U0001f600" * 2_000_000, True),
        ("\ud800" * 3_000_000, True),
        ("a" * 1_900_000 + "字", True),
        ("a" * 2_100_000 + "字", False),
        ("a" * 1_100_000 + "\U0001f600", False),
    ],
    ids=lambda value: f"{len(value)} {value[-1]!a}" if isinstance(value, str) else None,
)
def test_a_text_is_too_wide_if_a_few_characters_make_it_so(text, is_read):
    assert (row_problem([["a", {"b": text}]], ServerLimits()) is None) == is_read


# ── bodies together ─────────────────────────────────────────────────────────────────────────────────────────────────


class Request:
    """A request whose body comes in pieces."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.headers = {"content-length": str(sum(map(len, pieces)))}

    async def stream(self):
        for piece in self.pieces:
            yield piece


def test_bodies_wait_for_each_other_and_small_ones_do_not():
    large = b'"' + b"a" * 99_998 + b'"'

    async def run():
        bodies = Bodies(ServerLimits(body=100_000))  # four of them at once
        order = []

        async def take(name, content):
            async with bodies.of(Request(content[:80_000], content[80_000:])) as body:
                assert body.content == content
                order.append(name)

        async with contextlib.AsyncExitStack() as stack:
            for _ in range(4):
                await stack.enter_async_context(bodies.of(Request(large)))
            waiting = [asyncio.create_task(take(name, large)) for name in ("first", "second")]
            await take("small", b"1" * 60_000)
        await asyncio.gather(*waiting)
        assert order == ["small", "first", "second"]

    asyncio.run(run())


def test_a_body_for_which_there_is_no_room_is_refused_in_the_end():
    large = b'"' + b"a" * 99_998 + b'"'

    async def run():
        bodies = Bodies(ServerLimits(body=100_000, seconds=0.05))
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(4):
                await stack.enter_async_context(bodies.of(Request(large)))
            with pytest.raises(Refused, match="try again later") as refused:
                await stack.enter_async_context(bodies.of(Request(large)))
            assert refused.value.status == 503
        async with bodies.of(Request(large)) as body:
            assert len(body.content) == 100_000

    asyncio.run(run())


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def start():
    with served(SPEC) as start:
        yield start


def test_a_body_of_many_values_is_refused_before_it_is_parsed(start, monkeypatch):
    parsed = []
    monkeypatch.setattr(Body, "parsed", lambda body: parsed.append(body) or ROW)
    client = start()
    for unit in (b"[],", b"{},", b'"",', b"1,", b'{"a":[]},'):
        status, answer = client.post("/reward", b'{"answer":[' + unit * 400_000 + b"1]}")
        assert status == 413
        error = r"The body has [\d,]+ JSON values or more; at most [\d,]+ are read of [\d,]+ bytes. Send fewer rows, .+ --max-values."
        assert re.fullmatch(error, answer["error"])
    status, answer = client.post("/reward", b"[" * 101 + b"]" * 101)
    assert (status, answer) == (400, {"error": "The body is nested 101 levels deep or deeper; at most 100 are read."})
    assert not parsed
    assert client.post("/reward", b'{"answer":[' + b"1," * 49_997 + b'"' + b" " * 100_000 + b'"]}')[0] == 200


def test_a_larger_body_may_have_more_values_if_they_are_large(start):
    client = start(limits=ServerLimits(values=1000), strict=False)
    long, short = json.dumps([["a" * 40] * 2000]).encode(), json.dumps([["a"] * 2000]).encode()
    assert client.post("/reward", b'{"other": ' + long + b"}")[0] == 200
    assert client.post("/reward", b'{"other": ' + short + b"}")[0] == 413


def test_more_rows_than_may_ever_wait_are_too_many(start):
    status, answer = start(limits=ServerLimits(rows=4)).post("/reward", {"rows": [ROW] * 5})
    assert status == 413
    assert answer["error"] == "The body has 5 rows; at most 4 may wait to be scored (--max-waiting)."


@pytest.mark.parametrize("padding", [0, 400_000])
def test_a_row_of_which_checks_would_read_too_much_has_an_error_and_the_others_a_reward(start, padding):
    client = start(limits=ServerLimits(row_values=50))
    rows = [
        *(ROW, ROW | {"answer": ["a"] * 60}, ROW | {"answer": [{"a": ["a"] * 30}] * 3}),
        *(ROW | {"unread": ["a"] * 60}, ROW | {"completion": "a" * 1_000_001 + "\U0001f600"} if padding else ROW),
        ROW | {"completion": "apple" + "é" * padding},
    ]
    status, answer = client.post("/reward", {"rows": rows})
    assert status == 200
    rewards = [1.0, None, None, 1.0, None if padding else 1.0, 0.5 if padding else 1.0]
    assert [result["reward"] for result in answer["results"]] == rewards
    error = "InputError: The columns that checks read have more than 50 JSON values in this row."
    assert answer["results"][1]["error"] == error
    if padding:
        assert "A text of 1,000,002 characters takes 4 MB of memory" in answer["results"][4]["error"]
    queries = {"query": ["apple", "apple"], "labels": ["apple", ["apple"] * 60]}
    status, answer = client.post("/get_reward", queries | {"prompts": ["", "" + " " * padding]})
    assert answer["rewards"] == [1.0, 0.0]
    assert answer["extra_logs"]["exceptions"] == [0.0, 1.0]


def test_large_bodies_are_scored_as_small_ones_are(start):
    client = start()
    rows = [
        {"completion": f"apple {at}" + "x" * 40_000 * (at % 3), "answer": [at, f"APPLE {at} "][: at % 4]}
        for at in range(90)
    ]
    expected = assay.score(rows, SPEC, keep=()).to_dicts()
    assert client.post("/reward", {"rows": rows}) == (200, {"results": expected})
    queries = [f"<s>{'?' * 9000} {row['completion']}</s>" for row in rows]
    body = {"query": queries, "prompts": ["?" * 9000] * 90, "labels": [row["answer"] for row in rows]}
    expected = [row["reward"] or 0.0 for row in assay.score(rows, SPEC, keep=()).to_dicts()]
    assert client.post("/get_reward", body)[1]["rewards"] == expected


def test_a_function_sees_the_row_of_a_large_body_alone(start):
    seen = []

    def length(completion, **_):
        seen.append(completion)
        return 1.0

    rubric = assay.Rubric(funcs=[length], weights=[1.0])
    status, answer = start(rubric).post("/reward", {"completion": "a" * 400_000})
    assert (status, answer["reward"]) == (200, 1.0)
    assert len(seen) == 1


@pytest.mark.parametrize("held", [(Body, "parsed"), (Plan, "score_rows")])
def test_a_small_request_is_answered_while_a_large_one_is_parsed_or_scored(start, monkeypatch, held):
    owner, name = held
    real, begun, may_go_on = getattr(owner, name), threading.Event(), threading.Event()

    def slow(self, *rows):
        if len(str(rows)) > 300_000 or len(getattr(self, "content", "")) > 300_000:
            begun.set()
            assert may_go_on.wait(60)
        return real(self, *rows)

    monkeypatch.setattr(owner, name, slow)
    client = start()
    with ThreadPoolExecutor(1) as thread:
        large = thread.submit(client.post, "/reward", {"completion": "apple" * 100_000, "answer": "apple"})
        try:
            assert begun.wait(60)
            assert client.post("/reward", ROW)[1]["reward"] == 1.0
            assert client.post("/get_reward", {"query": ["apple"], "labels": ["apple"]})[1]["rewards"] == [1.0]
            assert not large.done()
        finally:
            may_go_on.set()
        assert large.result()[1]["reward"] == 0.5


def test_a_refusal_reaches_a_client_that_still_sends(start):
    client = start(token="secret")  # noqa: S106  (of this test)
    assert client.post("/reward", b'"' + b"a" * 3_000_000 + b'"')[0] == 401
    header = {"Authorization": "Bearer secret"}
    assert client.post("/reward", b"[" * 3_000_000, **header)[0] == 400
    assert client.post("/reward", b"[" + b"1," * 1_500_000 + b"1]", **header)[0] == 413


def test_a_client_that_goes_away_after_a_refusal_leaves_no_trace(start, caplog):
    client = start()
    for body in (b"[" * 1000, b"[" + b"1," * 200_000):
        with client.connect() as connection:
            connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + body)
    while client.ask("GET", "/metrics")[1].count("status") < 2:
        assert client.post("/reward", ROW)[0] == 200
    assert not caplog.records


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_without_a_head_ends_and_an_idle_one_that_was_answered_stays(start):
    client = start()
    trainer = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    trainer.request("POST", "/reward", json.dumps(ROW))
    assert json.loads(trainer.getresponse().read())["reward"] == 1.0
    kept = trainer.sock
    client.connections.head_seconds = 0.01  # from now on
    for head in (b"", b"P", b"POST /reward HTTP/1.1\r\nHost: x\r\n"):
        with client.connect() as silent, contextlib.suppress(ConnectionError):  # it has ended before all was sent
            silent.sendall(head)
            assert silent.recv(100) == b""
    with client.connect() as slow, contextlib.suppress(OSError):
        slow.sendall(b"POST /reward HTTP/1.1\r\n")
        while True:  # until the server has ended it
            slow.sendall(b"a: b\r\n")
            slow.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                assert slow.recv(100) == b""
                break
    trainer.request("POST", "/reward", json.dumps(ROW))
    assert json.loads(trainer.getresponse().read())["reward"] == 1.0
    assert trainer.sock is kept
    trainer.close()


def test_a_second_head_must_come_to_its_end_too(start):
    client = start()
    body = json.dumps(ROW).encode()
    with client.connect() as connection, contextlib.suppress(ConnectionResetError):
        connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = b""
        while b'"reward":1.0' not in answer:
            answer += connection.recv(10_000)
        client.connections.head_seconds = 0.01  # from now on
        connection.sendall(b"POST /rew")
        while chunk := connection.recv(10_000):
            answer += chunk
    assert answer.count(b"HTTP/1.1 ") == 1


def test_the_oldest_silent_connection_makes_way(start):
    client = start(most=8)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(client.connect()) for _ in range(30)]
        assert client.post("/reward", ROW)[0] == 200
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(100) == b""


def test_a_head_without_end_is_cut(start):
    client = start()
    with client.connect() as connection, contextlib.suppress(OSError):
        for _ in range(1000):
            connection.sendall(b"a" * 10_000)
        while connection.recv(1000):
            pass
    assert client.post("/reward", ROW)[0] == 200


def test_a_client_that_takes_no_answer_is_cut(start, monkeypatch):
    real, ends = Connection.connection_lost, threading.Event()
    monkeypatch.setattr(Connection, "connection_lost", lambda self, exc: (real(self, exc), ends.set()))
    client = start(answer_seconds=0.2)
    body = json.dumps({"rows": [ROW] * 20_000}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", client.port))
        connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert ends.wait(60)
    assert client.post("/reward", ROW)[0] == 200


def test_only_an_admitted_client_keeps_its_connection(start):
    client = start(token="secret")  # noqa: S106  (of this test)
    header = {"Authorization": "Bearer secret"}
    requests = [("GET", "/health", {}, 200), ("GET", "/other", {}, 404), ("POST", "/reward", {}, 401)]
    requests += [("GET", "/metrics", {}, 401), ("GET", "/metrics", header, 200), ("POST", "/reward", header, 200)]
    for method, path, headers, status in requests:
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(ROW) if method == "POST" else None, headers)
            response = connection.getresponse()
            assert response.status == status
            assert (response.getheader("connection") == "close") == (not headers)
            response.read()


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory(process, name):
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_request_takes_at_most_ten_times_its_size_in_memory(tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC), "utf-8")
    command = [sys.executable, "-m", "assay", "serve", str(spec), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            client = Client(int(server.stderr.readline().rsplit(":", 1)[1]))
            assert client.post("/reward", ROW)[0] == 200
            for shape in SHAPES:
                path, content = content_of(shape, 3_000_000)
                before = memory(server.pid, "VmRSS")
                Path(f"/proc/{server.pid}/clear_refs").write_text("5", "ascii")  # the peak begins anew
                status, _ = client.post(path, content)
                assert status in ((400,) if shape == "brackets" else (200, 413))
                assert memory(server.pid, "VmHWM") - before <= 10 * len(content), shape
        finally:
            server.kill()
