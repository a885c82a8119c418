"""The viewer's server: who gets an answer, what it never does, and what it answers."""

import contextlib
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from urllib.parse import quote, urlencode

import polars as pl
import pytest
from asgi import ask
from waiting import PATIENCE, until

import assay
from assay.errors import UsageError
from assay.insight.reports.showing import chosen_rows
from assay.insight.viewer.server import Viewer, view, viewer_app
from assay.writing.documents import label
from assay.writing.numbers import number, percent

PORT, TOKEN = 4321, "the-token"
HOST = f"127.0.0.1:{PORT}"
SPEC = {
    "id": "v",
    "checks": [
        {"id": "right", "type": "equals", "value": {"column": "answer"}},
        {"id": "polite", "type": "contains", "value": "please"},
    ],
}
ROWS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viewed")
    rows = [
        {
            "task_id": f"t{at % 40}",
            "model": "ab"[at % 2],
            "step": at // 100,
            "prompt": f"What is {at}?",
            "answer": str(at),
            "completion": f"{at}" if at % 3 else f"{at}, please",
        }
        for at in range(ROWS)
    ]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for name, weight in (("before", 1), ("after", 9)):
        spec = {**SPEC, "checks": [{**SPEC["checks"][0], "weight": weight}, SPEC["checks"][1]]}
        assay.score_file(folder / "rollouts.jsonl", spec, folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def app(folder):
    viewer = Viewer([folder / "before.parquet", folder / "after.parquet"])
    viewer.read()
    app = viewer_app(viewer, TOKEN)
    app.port = PORT
    return app


def asked(app, name, query="", **headers):
    query = query if isinstance(query, str) else urlencode(query, doseq=True)
    return ask(app, f"/{TOKEN}/api/{name}", query, **({"host": HOST} | headers))


PAGE, API = f"/{TOKEN}/", f"/{TOKEN}/api/overview"
REQUESTS = {
    "the page": (PAGE, {}, 200),
    "an answer": (API, {}, 200),
    "localhost": (API, {"host": f"localhost:{PORT}"}, 200),
    "LOCALHOST": (API, {"host": f"LOCALHOST:{PORT}"}, 200),
    "the page itself asks": (API, {"sec_fetch_site": "same-origin"}, 200),
    "typed": (PAGE, {"sec_fetch_site": "none"}, 200),
    "a link to the page": (PAGE, {"sec_fetch_site": "cross-site"}, 200),
    "another site asks": (API, {"sec_fetch_site": "cross-site"}, 403),
    "another port asks": (API, {"sec_fetch_site": "same-site"}, 403),
    "one of two sites": (API, {"sec_fetch_site": ["same-origin", "cross-site"]}, 403),
    "a name that leads here": (PAGE, {"host": f"evil.example:{PORT}"}, 403),
    "another port": (PAGE, {"host": "127.0.0.1:80"}, 403),
    "no port": (PAGE, {"host": "127.0.0.1"}, 403),
    "a longer port": (PAGE, {"host": f"{HOST}1"}, 403),
    "two hosts": (PAGE, {"host": [HOST, HOST]}, 403),
    "no host": (PAGE, {"host": []}, 403),
    "no token": ("/", {}, 404),
    "no token for an answer": ("/api/overview", {}, 404),
    "a part of the token": ("/the-toke/", {}, 404),
    "more than the token": ("/the-token1/", {}, 404),
    "another token": ("/the-tokem/", {}, 404),
    "another token, other letters": ("/tökén/api/overview", {}, 404),
    "no page": (f"/{TOKEN}/api/other", {}, 404),
    "no slash": (f"/{TOKEN}", {}, 404),
    "a slash too many": (f"/{TOKEN}/api/rows/", {}, 404),
    "a path": (f"/{TOKEN}/../../etc/passwd", {}, 404),
    "a path behind a name": (f"/{TOKEN}/api/rows/etc/passwd", {}, 404),
    "HEAD": (API, {"method": "HEAD"}, 200),
    **{method: (API, {"method": method}, 405) for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")},
}


@pytest.mark.parametrize("name", REQUESTS)
def test_who_gets_an_answer(app, name):
    path, headers, status = REQUESTS[name]
    answer = ask(app, path, **({"host": HOST} | headers))
    assert answer.status == status
    assert bool(answer.body) == (status == 200) or path.startswith(f"/{TOKEN}")
    if "token" in name or status in (403, 405):
        assert answer.body == b""
    policy = answer.headers["content-security-policy"]
    wanted = (
        "default-src 'none'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    assert {*wanted, "require-trusted-types-for 'script'"} <= {*policy.split("; ")}
    assert "script-src 'sha256-" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert not [header for header in answer.headers if header.startswith("access-control")]


def test_the_page_and_its_headers_allow_the_same_script(app):
    answer = ask(app, PAGE, host=HOST)
    policy = answer.headers["content-security-policy"].removesuffix("; frame-ancestors 'none'")
    assert policy.replace("'", "&#39;") in answer.body.decode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_overview_is_the_report_with_heat(app, folder):
    data = asked(app, "overview", {"result": 1}).data
    report = assay.report(folder / "after.parquet", examples=0).as_json()
    assert {name: data[name] for name in report} == report
    assert (data["complete"], data["scanned"]) == (True, ROWS)
    assert data["heat"]["models"] == ["a", "b"]
    assert [sum(cell["passes"] for cell in line) for line in zip(*data["heat"]["cells"], strict=True)] == [
        200,
        100,
    ]


QUERIES = [
    ({}, {}),
    ({"failed": "right", "model": "a"}, {"failed": ["right"], "where": ["model = 'a'"]}),
    ({"failed": ["right", "polite"]}, {"failed": ["right", "polite"]}),
    ({"passed": "polite", "step": ["0", "2"]}, {"passed": ["polite"], "where": ["step <> 1"]}),
    ({"where": "step > 0 and model = 'b'"}, {"where": ["step > 0 and model = 'b'"]}),
    (
        {"where": ["step > 0", "model = 'b'"], "failed": "right"},
        {"where": ["step > 0", "model = 'b'"], "failed": ["right"]},
    ),
    ({"where": "reward > avg(reward)"}, {"where": ["reward > avg(reward)"]}),
    ({"state": "pass"}, {"where": ["passed"]}),
    ({"bin": ["10"]}, {"where": ["reward = 0.5"]}),
    ({"rows": "7,3", "sort": "-row"}, {"row": [3, 7], "sort": ["-answer"]}),
    ({"task": "t7"}, {"where": ["task_id = 't7'"]}),
    ({"sort": "-model,step"}, {"sort": ["-model", "step"]}),
    ({"text": "9, PLEASE"}, {"where": ["cast(answer as int) % 10 = 9 and cast(answer as int) % 3 = 0"]}),
    ({"text": "t39"}, {"where": ["task_id = 't39'"]}),
    ({"text": ["t3", "please"]}, {"where": ["task_id like 't3%'"], "passed": ["polite"]}),
    ({"text": ".*"}, {"where": ["false"]}),
    ({"reason": "does not equal …"}, {"failed": ["right"]}),
    ({"reason": "nothing like it"}, {"where": ["false"]}),
]


@pytest.mark.parametrize(("query", "shown"), QUERIES)
def test_rows_are_those_that_show_keeps(app, folder, query, shown):
    opened = assay.insight.results.open_result(folder / "before.parquet")
    matching, rows = chosen_rows(opened, [], limit=ROWS, **shown)
    data = until(lambda: (answer := asked(app, "rows", query).data)["scanned"] == ROWS and answer)
    assert (data["matching"], data["total"]) == (matching, ROWS)
    assert [row["row"] for row in data["rows"]] == rows[:50]
    second = asked(app, "rows", query | {"offset": 50, "limit": 200}).data
    assert [row["row"] for row in second["rows"]] == rows[50:250]


def test_a_row_of_the_list_and_its_card(app):
    listed = asked(app, "rows", {"rows": "3", "check": "polite"}).data["rows"]
    card = asked(app, "row", {"row": 3}).data
    key = {"task_id": "t3", "model": "b", "step": 0}
    assert listed == [
        {"row": 3, "key": key, "state": "fail", "reward": 0.5, "scores": [0.0, 1.0]}
        | {"read": None, "expected": ["please"], "near": None}
    ]
    first_failing = asked(app, "rows", {"rows": "3"}).data["rows"][0]
    assert [first_failing[name] for name in ("read", "expected", "near")] == ["3, please", ["3"], "begins"]
    assert card["checks"][1]["evidence"]["spans"] == [{"start": 3, "end": 9, "kind": "matched"}]
    assert (card["text"], card["prompt"], card["messages"]) == ("3, please", "What is 3?", None)
    assert [other["row"] for other in card["same_task"]] == [43, 83, 123, 163, 203, 243, 283]


def test_two_results_are_compared(app, folder):
    difference = assay.diff(folder / "before.parquet", folder / "after.parquet").as_json()
    assert asked(app, "compare").data == difference
    assert asked(app, "compare", {"before": 1, "after": 0}).data["delta"]["up"] == difference["delta"]["down"]
    assert asked(app, "row", {"result": 1, "row": 3}).data["reward"] == 0.1


MISTAKES = [
    ("rows", {"limit": 201}, "limit 201: at most 200 rows."),
    ("rows", {"offset": "-1"}, "offset -1: expected a number from 0."),
    ("rows", {"offset": "٣"}, "offset ٣: expected a number from 0."),
    ("rows", {"limit": "9" * 4000}, f"limit {'9' * 50}: expected a number from 0."),
    ("rows", {"wehre": "x"}, "wehre: unknown."),
    ("rows", {"failed": "rigth"}, "no check is called `rigth`."),
    ("rows", {"passed": ""}, "no check is called ``."),
    ("rows", {"sort": "rewart"}, "sort rewart"),
    ("rows", {"where": "rewart > 1"}, "no column is called `rewart`"),
    ("rows", {"where": "reward in (select 1)"}, "`select` is not part of an expression"),
    ("rows", {"where": "read_csv('/etc/passwd')"}, "--where"),
    ("rows", {"where": "cast(answer as int) > 'x'"}, ""),
    ("rows", {"text": "x" * 1001}, "text: is too long."),
    ("rows", {"state": "ok"}, "state ok: unknown."),
    ("rows", {"bin": "one"}, "bin one: expected a number"),
    ("rows", {"step": "one"}, "step one: expected a number."),
    ("rows", {"result": 2}, "result 2: there are the results 0 to 1."),
    ("row", {}, "row : expected a number from 0."),
    ("row", {"row": ROWS}, f"row {ROWS}: "),
    ("row", {"row": 2**32}, f"row {2**32}: "),
    ("compare", {"before": 0, "after": 7}, "after 7"),
]


@pytest.mark.parametrize(("name", "query", "said"), MISTAKES)
def test_a_mistake_is_an_error_with_a_hint(app, name, query, said):
    answer = asked(app, name, query)
    assert answer.status == 400
    assert answer.data.keys() == {"error", "hint"}
    assert said in answer.data["error"]
    assert "Traceback" not in answer.body.decode()


def test_while_it_reads_it_answers_with_what_it_has(folder):
    app = viewer_app(Viewer([folder / "before.parquet"]), TOKEN)
    app.port = PORT
    data = asked(app, "overview").data
    assert (data["complete"], data["scanned"], data["summary"]["rows"]) == (False, 0, ROWS)
    assert asked(app, "rows", {"failed": "right"}).data | {"notes": []} == {
        "matching": 0,
        "scanned": 0,
        "total": ROWS,
        "rows": [],
        "notes": [],
    }
    card = asked(app, "row", {"row": 3}).data
    assert (card["row"], card["text"], card["same_task"]) == (3, "3, please", [])
    assert "0 of 300 rows have been read" in ask(app, PAGE, host=HOST).body.decode()


def test_results_of_other_rollouts_are_shown_and_not_compared(folder, tmp_path):
    pl.read_parquet(folder / "after.parquet").head(10).write_parquet(tmp_path / "few.parquet")
    viewer = Viewer([folder / "before.parquet", tmp_path / "few.parquet"])
    viewer.read()
    app = viewer_app(viewer, TOKEN)
    app.port = PORT
    assert asked(app, "compare").status == 400
    assert asked(app, "rows", {"result": 1}).data["matching"] == 10
    assert asked(app, "compare").data["error"] in ask(app, PAGE, host=HOST).body.decode().replace("&#39;", "'")


def test_any_result_is_looked_at():
    rows = {
        "task_id": [{"a": "x"}, {"a": "yY"}],
        "step": ["1", "b"],
        "reward": [float("nan"), 2.0],
        "check/v/a": [1, 0],
    }
    viewer = Viewer([pl.DataFrame(rows)])
    viewer.read()
    app = viewer_app(viewer, TOKEN)
    app.port = PORT
    for query, matching in (({}, 2), ({"text": "yy"}, 1), ({"bin": 0, "sort": "-task_id"}, 1), ({"reason": "x"}, 0)):
        data = until(lambda: (answer := asked(app, "rows", query).data)["scanned"] == 2 and answer)  # noqa: B023
        assert (data["matching"], len(data["rows"])) == (matching, matching)
        assert len(data["notes"]) == (matching > 0)
        assert all(note.startswith("no texts: the result does not say") for note in data["notes"])
    assert asked(app, "overview").data["complete"]
    assert "the frame" in ask(app, PAGE, host=HOST).body.decode()


def test_the_first_of_several_results_is_compared_with_each(folder, tmp_path):
    pl.read_parquet(folder / "after.parquet").head(10).write_parquet(tmp_path / "few.parquet")
    paths = [folder / "before.parquet", tmp_path / "few.parquet", folder / "after.parquet"]
    viewer = Viewer(paths)
    viewer.read()
    app = viewer_app(viewer, TOKEN)
    app.port = PORT
    differs = assay.diff(paths[0], paths[2]).as_json()
    assert asked(app, "compare", {"after": 2}).data == differs
    pages = [ask(app, PAGE, f"result={at}", host=HOST).body.decode() for at in range(3)]
    summary, changed = assay.report(paths[2]).summary, differs["changed"]
    for at, page in enumerate(pages):
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
        assert (data["result"], data["results"]) == (at, [*map(str, paths)])
        line = re.search(rf"<tr[^>]*><th[^>]*>(<a [^>]*>)?{re.escape(label(str(paths[2])))}.*", page)[0]
        assert re.findall('<td class="n">(.*?)</td>', line)[:4] == [
            "300",
            number(summary["mean"]),
            percent(summary["pass_rate"]),
            str(changed),
        ]
        assert ("?result=2" not in line) == ('aria-current="true"' in line) == (at == 2)
    assert [f"<h2>Compare <span>{label(str(paths[0]))} → {label(str(paths[2]))}" in page for page in pages] == [
        False,
        False,
        True,
    ]
    assert ask(app, PAGE, "result=3", host=HOST).status == 400


def test_a_port_that_is_taken_is_refused(folder):
    path = folder / "before.parquet"
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="in use"):
        view([path], port=taken.getsockname()[1], tell=print)


@contextlib.contextmanager
def started(*arguments, cwd):
    command = [sys.executable, "-m", "assay", "view", *arguments]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def fetched(address, path="", **headers):
    host, _, rest = address.removeprefix("http://").partition("/")
    with contextlib.closing(http.client.HTTPConnection(host, timeout=PATIENCE)) as connection:
        connection.request("GET", f"/{rest}{path}", headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_prints_its_address_and_ends_without_a_word(folder, number, code):
    with started("before.parquet", cwd=folder) as (server, address):
        assert address.startswith("http://127.0.0.1:")
        assert len(address.rstrip("/").rpartition("/")[2]) == 22  # 128 bits
        assert "before.parquet" in fetched(address)[1]
        until(lambda: json.loads(fetched(address, "api/overview")[1])["complete"])
        until(lambda: json.loads(fetched(address, f"api/rows?where={quote('step = 2')}")[1])["matching"] == 100)
        assert fetched(address, Host="evil.example")[0] == 403
        assert fetched(address[:-2] + "/") == (404, "")
        with socket.socket() as elsewhere:
            assert elsewhere.connect_ex(("127.0.0.2", int(address.split(":")[2].partition("/")[0]))) != 0
        server.send_signal(number)
        assert server.stderr.read() == ""
        assert server.stdout.read() == ""
    assert server.returncode == code


IN_MODIFY, IN_OPEN, IN_CREATE, IN_DELETE = 0x2, 0x20, 0x100, 0x200


@contextlib.contextmanager
def watched(folder):
    """Yield a function that returns what was opened in a folder, and what was changed, by whichever process."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(descriptor, os.fsencode(folder), IN_OPEN | IN_MODIFY | IN_CREATE | IN_DELETE) > 0

    def events():
        opened, changed, data = set(), set(), b""
        with contextlib.suppress(BlockingIOError):
            while True:
                data += os.read(descriptor, 1 << 16)
        while data:
            _, mask, _, size = struct.unpack_from("iIII", data)
            name, data = data[16 : 16 + size].rstrip(b"\0").decode(), data[16 + size :]
            (opened if mask & IN_OPEN else changed).add(name)
        return opened - {""}, changed

    yield events
    os.close(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel which files are opened")
def test_only_results_and_the_inputs_that_they_name_are_opened(folder, tmp_path):
    shutil.copy(folder / "rollouts.jsonl", tmp_path)
    assay.score_file(tmp_path / "rollouts.jsonl", SPEC, tmp_path / "before.parquet")
    (tmp_path / "secret.jsonl").write_text("{}\n")
    with watched(tmp_path) as events, started("before.parquet", cwd=tmp_path) as (server, address):
        until(lambda: json.loads(fetched(address, "api/overview")[1])["complete"])
        for path in ("", "api/rows?text=please", "api/rows?where=secret.jsonl", "api/row?row=3", "secret.jsonl"):
            fetched(address, path)
        fetched(address, "../secret.jsonl")
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
        assert events() == ({"rollouts.jsonl", "before.parquet"}, set())


@pytest.mark.parametrize("query", [{"text": "9, please"}, {"reason": "does not equal …"}, {"text": "t39"}])
def test_kept_texts_are_searched_part_by_part(app, folder, tmp_path, monkeypatch, query):
    monkeypatch.setattr("assay.insight.viewer.matches._PART", 7)
    assay.score_file(folder / "rollouts.jsonl", SPEC, tmp_path / "kept.parquet", keep=["+completion"])
    viewer = Viewer([tmp_path / "kept.parquet"])
    viewer.read()
    kept = viewer_app(viewer, TOKEN)
    kept.port = PORT

    def rows(app):
        answer = until(lambda: (answer := asked(app, "rows", query).data)["scanned"] == ROWS and answer)
        return answer["matching"], [row["row"] for row in answer["rows"]]

    assert rows(kept) == rows(app)
    assert rows(kept)[0]
