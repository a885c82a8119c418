"""The server of rewards: what clients send, and that each gets an answer or a status that says why not."""

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

import pytest
from cases import sized
from reward_client import Client, served
from waiting import PATIENCE, until

import assay
from assay.adapters.reward_server import ServerLimits, reward_app, serve
from assay.compiling.plan import Plan
from assay.errors import UsageError

SPEC = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "contains", "value": {"column": "answer"}},
        {"id": "short", "type": "max_length", "value": 40},
    ],
}


@pytest.fixture
def start():
    with served(SPEC) as start:
        yield start


def test_rewards_are_those_of_score(start):
    client = start()
    rows = [{"completion": f"it is {at}", "answer": [at % 3, "x"]} for at in range(20)]
    expected = assay.score(rows, SPEC, keep=()).to_dicts()
    assert client.post("/reward", {"rows": rows}) == (200, {"results": expected})
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(lambda row: client.post("/reward", row), rows)] == [(200, row) for row in expected]
    status, metrics = client.ask("GET", "/metrics")
    assert status == 200
    assert "assay_rows_scored_total 40\n" in metrics
    assert 'assay_requests_total{path="/reward",status="200"} 21\n' in metrics
    assert "assay_rows_waiting 0\n" in metrics


def test_openrlhf_gets_lists_of_numbers(start):
    client = start(unscored=-1.0)
    body = {"query": ["2+2? 4</s>", "3? 4"], "prompts": ["2+2?", "3?"], "labels": ["4", None]}
    status, answer = client.post("/get_reward", body)
    assert status == 200
    assert answer["rewards"] == answer["scores"] == [1.0, -1.0]
    assert answer["extra_logs"]["unscored"] == [0.0, 1.0]
    assert client.post("/get_reward", {"query": ["4"]})[1]["extra_logs"]["unscored"] == [1.0]
    assert client.post("/get_reward", body | {"labels": ["4"]})[0] == 400
    assert client.post("/get_reward", {"query": "4"})[0] == 400
    for other in ({"prompts": 5}, {"prompts": "2"}, {"labels": True}, {"labels": {"4": 4}}):
        assert client.post("/get_reward", {"query": ["4"], **other})[0] == 400
    with pytest.raises(UsageError, match="unscored=nan: expected a finite number"):
        reward_app(SPEC, unscored=float("nan"))


def test_a_row_that_cannot_be_scored_has_an_error_and_the_others_a_reward(start):
    status, answer = start().post("/reward", {"rows": [{"completion": 4}, {"completion": "4", "answer": 4}]})
    assert status == 200
    assert [result["reward"] for result in answer["results"]] == [None, 1.0]
    assert "not int" in answer["results"][0]["error"]


@pytest.mark.parametrize("body", ["", "[1", "[" * 100_000, '{"a": 1', "\ud800", "[]", "4", '{"rows": [4]}'])
def test_what_is_no_row_is_refused(start, body):
    status, text = start().ask("POST", "/reward", body.encode("utf-8", "surrogatepass"))
    assert status == 400
    assert json.loads(text)["error"]


def test_a_token_is_asked_for(start):
    client, row = start(token="secret"), {"completion": "4", "answer": 4}  # noqa: S106  (of this test)
    assert client.post("/reward", row)[0] == client.post("/reward", row, Authorization="Bearer other")[0] == 401
    assert client.post("/reward", row, Authorization="Bearer secret")[0] == 200
    assert client.ask("GET", "/metrics")[0] == 401
    assert client.ask("GET", "/health") == (200, '{"status":"ok"}')


def test_a_large_body_is_refused_whether_its_length_is_known_or_not(start):
    client = start(limits=ServerLimits(body=1000))
    assert client.post("/reward", {"completion": "4" * 2000})[0] == 413
    with client.connect() as connection:
        connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"400\r\n" + b"4" * 1024 + b"\r\n" + b"400\r\n" + b"4" * 1024 + b"\r\n")
        assert b"413" in connection.recv(100)
    assert client.post("/reward", {"completion": "4", "answer": 4})[0] == 200


def test_ten_megabytes_are_scored(start):
    status, answer = start().post("/reward", {"completion": "4" * 10_000_000, "answer": 4})
    assert (status, answer["reward"]) == (200, 0.5)


def statuses(client):
    """How many requests for rewards ended with which status."""
    return dict(re.findall(r'path="/reward",status="(\d+)"} (\d+)', client.ask("GET", "/metrics")[1]))


@contextlib.contextmanager
def begun(client, count, start):
    """Connections that send the beginning of a request of 100 bytes."""
    with contextlib.ExitStack() as open_connections:
        connections = [open_connections.enter_context(client.connect()) for _ in range(count)]
        for connection in connections:
            connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + start)
        yield connections


def test_slow_and_cut_clients_harm_nobody(start):
    client, row = start(limits=ServerLimits(seconds=PATIENCE)), {"completion": "4", "answer": 4}
    body = json.dumps(row).ljust(100).encode()
    with begun(client, 20, body[:13]) as connections:
        for connection in connections[::2]:
            connection.close()
        assert client.post("/reward", row)[0] == 200
        until(lambda: statuses(client) == {"200": "1", "499": "10"})
        for connection in connections[1::2]:
            connection.sendall(body[13:])
            assert b"200 OK" in connection.recv(100)
    assert statuses(client) == {"200": "11", "499": "10"}


def test_a_body_that_does_not_arrive_is_not_waited_for(start):
    client = start(limits=ServerLimits(seconds=0.05))
    with begun(client, 10, b'{"completion"') as connections:
        assert all(b"408" in connection.recv(100) for connection in connections)
    assert statuses(client) == {"408": "10"}


def test_many_clients_among_broken_ones_get_their_own_answers(start):
    client = start(limits=ServerLimits(body=5_000_000, seconds=PATIENCE))
    requests, ends = sized(200, 4), threading.Event()

    def good(at):
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE)
        for number in range(requests):
            gold = at * requests + number
            connection.request(
                "POST", "/reward", json.dumps({"completion": f"it is {gold}.", "answer": [f"{gold}.", "no"]})
            )
            response = connection.getresponse()
            assert response.status == 200
            assert json.loads(response.read()) == expected
        connection.close()

    def cut(at):
        while not ends.wait(0.05):
            with client.connect() as connection:
                connection.sendall(b"POST /reward HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + b"4" * at)

    def large(_):
        while not ends.wait(0.2):
            with contextlib.suppress(OSError):  # refused before all of it was sent
                assert client.ask("POST", "/reward", b"4" * 10_000_000)[0] == 413

    expected = assay.score([{"completion": "it is 4.", "answer": 4}], SPEC, keep=()).row(0, named=True)
    with ThreadPoolExecutor(36) as threads:
        broken = [threads.submit(act, at) for act in (cut, large) for at in (0, 13)]
        clients = [threads.submit(good, at) for at in range(32)]
        try:
            assert [each.result() for each in clients] == [None] * 32
        finally:
            ends.set()
        assert [each.result() for each in broken] == [None] * 4
    metrics = client.ask("GET", "/metrics")[1]
    assert f'path="/reward",status="200"}} {32 * requests}\n' in metrics
    assert "assay_rows_waiting 0\n" in metrics


VALUES = (
    4,
    4.0,
    4.5,
    "4",
    "",
    True,
    None,
    [],
    ["4", 5],
    [[4]],
    {"a": 4},
    {"a": {"b": [None]}},
    2**70,
    -0.0,
    "\ud800",
    "\x1b",
)
MESSAGES = ([{"role": "assistant", "content": "it is 4"}], [{"role": "user", "content": None}], [None], [])


def body_drawn(draw):
    """Return a body of a few rows, or one that is refused; what a key holds is of any type."""
    names = draw.sample(("answer", "note", "metadata", "^a.*$", "task_id", "info"), draw.randrange(7))
    rows = [
        {"completion": draw.choice(("it is 4", "4.0", "", *MESSAGES, *VALUES))}
        | {name: draw.choice(VALUES) for name in names if draw.random() < 0.9}
        for _ in range(draw.choice((1, 1, 2, 5, 40)))
    ]
    kind = draw.randrange(12)
    body = rows[0] if kind < 3 else [rows, {"row": rows}, {"rows": [4]}][kind - 3] if kind < 6 else {"rows": rows}
    text = json.dumps(body)
    return text[: draw.randrange(len(text))] if kind == 6 else text


def test_two_clients_whose_rows_have_other_types_get_what_each_gets_alone(start):
    client, requests = start(), sized(200, 12)
    chances = [random.Random(seed) for seed in range(2)]
    bodies = [[body_drawn(draw) for _ in range(requests)] for draw in chances]

    def asked(contents):
        return [client.ask("POST", "/reward", content) for content in contents]

    alone = [asked(contents) for contents in bodies]
    for _ in range(3):
        with ThreadPoolExecutor(2) as threads:
            assert [*threads.map(asked, bodies)] == alone
    assert {status for answers in alone for status, _ in answers} == {200, 400, 422}


def test_a_server_that_is_killed_leaves_no_client_waiting(tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC), "utf-8")
    command = [sys.executable, "-m", "assay", "serve", str(spec), "--port", "0"]
    outcomes = []

    def ask(client):
        while True:
            try:
                outcomes.append(client.post("/reward", {"completion": "4", "answer": 4})[1]["reward"])
            except (OSError, http.client.HTTPException) as error:
                return type(error)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, ThreadPoolExecutor(8) as threads:
        client = Client(int(server.stderr.readline().rsplit(":", 1)[1]))
        clients = [threads.submit(ask, client) for _ in range(8)]
        until(lambda: len(outcomes) >= 20)
        server.kill()
        assert all(issubclass(each.result(PATIENCE), (OSError, http.client.HTTPException)) for each in clients)
    assert set(outcomes) == {1.0}


def test_more_than_may_wait_is_refused_and_what_waits_is_scored(start, monkeypatch):
    score_rows, may_go_on = Plan.score_rows, threading.Event()
    monkeypatch.setattr(Plan, "score_rows", lambda plan, rows: may_go_on.wait(PATIENCE) and score_rows(plan, rows))
    client, row = start(limits=ServerLimits(rows=4)), {"completion": "4", "answer": 4}
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(client.post, "/reward", row) for _ in range(4)]
        until(lambda: "assay_rows_waiting 4" in client.ask("GET", "/metrics")[1])
        assert client.post("/reward", row)[0] == 503
        may_go_on.set()
        assert [each.result()[1]["reward"] for each in waiting] == [1.0] * 4
    assert client.post("/reward", row)[0] == 200


def test_other_machines_need_a_token_and_a_port_must_be_free():
    def tell(address):
        raise AssertionError(address)

    with pytest.raises(UsageError, match="without a token"):
        serve(None, host="0.0.0.0", port=0, token=None, tell=tell)  # noqa: S104  (refused)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="in use"):
        serve(None, host="127.0.0.1", port=taken.getsockname()[1], token=None, tell=tell)


def test_the_command_serves_until_it_is_told_to_stop(tmp_path):
    spec, token = tmp_path / "spec.json", tmp_path / "token"
    spec.write_text(json.dumps(SPEC), "utf-8")
    token.write_text("secret\n", "utf-8")
    command = [sys.executable, "-m", "assay", "serve", str(spec), "--port", "0", "--token-file", str(token)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        line = server.stderr.readline()
        client = Client(int(line.rsplit(":", 1)[1]))
        row = {"completion": "4", "answer": 4}
        assert client.post("/reward", row, Authorization="Bearer secret")[1]["reward"] == 1.0
        assert client.post("/reward", row)[0] == 401
        server.terminate()
        assert "Traceback" not in server.stderr.read()
    assert server.returncode == 143
