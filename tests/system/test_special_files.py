"""Paths that are no regular files, names that are odd, streams that are closed or full: said in words, read where they can be."""

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from cases import some
from waiting import PATIENCE

import assay
from assay.errors import path_text, shown_path
from assay.system import atomic_file as newfile

SPEC = {"checks": [{"type": "contains", "value": "b"}]}
LINES = '{"completion": "b"}\n{"completion": "c"}\n'


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.jsonl").write_text(LINES)
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    return tmp_path


def run(command, shell="sh", **environment):
    command = f'assay() {{ "{sys.executable}" -m assay "$@"; }}\n{command}'
    done = subprocess.run(
        [shell, "-c", command], env=os.environ | environment, capture_output=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout


def refused(source, **options):
    with pytest.raises(assay.AssayError) as caught:
        assay.score(source, SPEC, **options)
    return str(caught.value)


def test_what_stands_at_a_path_is_said_and_never_taken_for_a_slip(work, monkeypatch):
    monkeypatch.setattr("assay.system.special_files._PATIENCE", 0.05)
    os.mkfifo("fifo.jsonl")
    Path("dangling.jsonl").symlink_to("nowhere")
    Path("loop.jsonl").symlink_to("loop.jsonl")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.jsonl")
    said = {
        "fifo.jsonl": "is a named pipe without a writer", "dangling.jsonl": "is a broken link",
        "loop.jsonl": "is a link that leads to itself", "socket.jsonl": "is a socket", "/dev/zero": "is a device",
    }  # fmt: skip
    for path, words in said.items():
        assert refused(path).startswith(f"{path}: {words}.")
        assert "Did you mean" not in refused(path)
    assert refused("fifo.jsonk").endswith("Did you mean `fifo.jsonl`?")


@pytest.mark.parametrize("kind", ["spec", "tasks", "preset"])
def test_what_is_read_besides_is_no_pipe_that_nobody_writes_to(work, monkeypatch, kind):
    monkeypatch.setattr("assay.system.special_files._PATIENCE", 0.05)
    path = "fifo.yaml" if kind == "tasks" else "fifo.json"
    os.mkfifo(path)
    spec, options = (path, {}) if kind == "spec" else (SPEC, {kind: path})
    with pytest.raises(assay.AssayError, match=f"{path}: is a named pipe without a writer"):
        assay.score("r.jsonl", spec, **options)


@pytest.mark.parametrize("out", ["fifo.jsonl", "loop.jsonl"])
def test_a_result_replaces_files_only(work, out):
    os.mkfifo("fifo.jsonl")
    Path("loop.jsonl").symlink_to("loop.jsonl")
    before = os.lstat(out)
    with pytest.raises(assay.UsageError, match=f"^{out}: is a "):
        assay.score_file("r.jsonl", SPEC, out, overwrite=True)
    assert os.lstat(out).st_ino == before.st_ino


def test_a_named_pipe_is_read(work):
    os.mkfifo("fifo.jsonl")
    writer = threading.Thread(target=lambda: (work / "fifo.jsonl").write_text(LINES))
    writer.start()
    assert assay.score("fifo.jsonl", SPEC)["reward"].to_list() == [1.0, 0.0]
    writer.join()


@pytest.mark.parametrize(
    ("command", "rows", "name"),
    some(
        [
            ("cat r.jsonl | assay score /dev/stdin -s v.json -o o.parquet", 2, "/dev/stdin"),
            ("assay score /dev/fd/3 -s v.json -o o.parquet 3<r.jsonl", 2, "r.jsonl"),
            ("assay score <(cat r.jsonl) <(gzip -c r.jsonl | zcat) -s v.json -o o.parquet", 4, "/dev/fd/"),
        ]
    ),
)
def test_descriptors_are_read(work, command, rows, name):
    code, said, _ = run(command, "bash")
    assert code == 0, said
    assert pl.read_parquet("o.parquet").height == rows
    assert name in assay.read_provenance("o.parquet")["inputs"][0]["name"]


@pytest.mark.parametrize(
    ("command", "words"),
    some(
        [
            ("assay score - -s v.json <&-", "Standard input is closed."),
            (
                "assay score /dev/fd/3 -s v.json 3<&-",
                "/dev/fd/3: Bad file descriptor.",
            ),  # a run has opened it for itself
            ("cat r.jsonl | assay score /dev/stdin r.jsonl -s v.json", "Pipes cannot be combined with files."),
            ("cat r.jsonl | assay score /dev/stdin -s v.json -o parts/", "parts/: a run in parts reads files."),
            ("assay score /dev/stdin -s v.json </dev/zero", "/dev/stdin: is a device without an end."),
        ]
    ),
)
def test_what_cannot_be_read_is_refused_in_words(work, command, words):
    code, said, _ = run(command)
    assert code == 2
    assert said.startswith(f"error: {words}")


ODD = "a\nb\x1b[31m\u202e"
ESCAPED = r"a\nb\x1b[31m\u202e"


def test_a_path_is_shown_on_one_line_with_nothing_that_a_terminal_obeys():
    assert shown_path(ODD) == ESCAPED
    assert shown_path(os.fsencode("é\udcff")) == r"é\xff"
    assert shown_path("lone \ud800") == path_text("lone \ud800") == r"lone \ud800"
    assert path_text(ODD) == ODD


def test_names_are_escaped_in_every_message(work):
    (work / f"{ODD}.jsonl").write_text(LINES + "nope\n")
    (work / f"{ODD}.parquet").write_text("<html>")
    (work / f"{ODD}.json").write_text("{")
    for source in (f"{ODD}.jsonl", f"{ODD}.parquet", f"{ODD}", f"{ODD}/x.csv"):
        said = refused(source)
        assert ESCAPED in said
        assert "\x1b" not in said
    with pytest.raises(assay.SpecError, match=r"a\\nb"):
        assay.score("r.jsonl", f"{ODD}.json")
    for out in (f"{ODD}/o.parquet", f"{ODD}.txt", f"{ODD}.jsonl"):
        with pytest.raises(assay.UsageError, match=r"a\\nb"):
            assay.score_file("r.jsonl", SPEC, out)
    code, said, _ = run(f"assay score '{ODD}.jsonl' -s v.json -o '{ODD}.csv' --max-bad-rows 1")
    assert code == 0
    assert f"rewards: {ESCAPED}.csv\n" in said
    assert f"listed in {ESCAPED}.csv.bad_rows.parquet\n" in said


def test_names_are_utf_8_whatever_the_locale(work):
    for name, write in {"é.parquet": "write_parquet", "é.csv": "write_csv", "é.arrow": "write_ipc"}.items():
        getattr(pl.DataFrame({"completion": ["b", "c"]}), write)(name)
    (work / "é.jsonl").write_text(LINES + "nope\n")
    (work / "é.json").write_text(json.dumps(SPEC))
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = "assay score é.parquet é.csv é.arrow é.jsonl -s é.json -o ö.parquet --max-bad-rows 1"
    code, said, _ = run(command, **locale)
    assert code == 0, said
    made = assay.read_provenance("ö.parquet")
    assert [one["name"] for one in made["inputs"]] == ["é.parquet", "é.csv", "é.arrow", "é.jsonl"]
    assert shlex.split(made["command"]) == command.split()
    assert (made["verifiers"][0]["source"], made["verifiers"][0]["id"]) == ("é.json", "é")
    assert pl.read_parquet("ö.parquet.bad_rows.parquet")["file"].to_list() == ["é.jsonl"]
    code, said, _ = run("assay explain é.json && assay presets --json", **locale)
    assert code == 0, said


def test_a_name_that_is_too_long_for_a_result_and_its_draft_is_refused_before_anything_is_read(work):
    for out in (f"{'a' * 247}.parquet", f"{'a' * 300}.parquet", f"{'a' * 300}/o.parquet", f"{'a/' * 3000}o.parquet"):
        with pytest.raises(assay.UsageError, match=r"File name too long\.") as caught:
            assay.score_file("nowhere.jsonl", SPEC, out)
        assert caught.value.fact.startswith(out[:200])
    with pytest.raises(assay.UsageError, match=r"x\\x00\.parquet: a NUL in its name\."):
        assay.score_file("nowhere.jsonl", SPEC, "x\0.parquet")
    assert {path.name for path in work.iterdir()} == {"r.jsonl", "v.json"}


@pytest.mark.parametrize("out", [f"{'a' * 222}.parquet", f"{'a' * 240}/"])
def test_so_is_one_that_is_too_long_for_the_list_of_bad_rows(work, out):
    with Path("r.jsonl").open("a") as file:
        file.write("nope")
    with pytest.raises(assay.UsageError, match=r"a\.(parquet\.)?bad_rows\.parquet: File name too long\."):
        assay.score_file("r.jsonl", SPEC, out, max_bad_rows=1)
    assert {path.name for path in work.iterdir()} == {"r.jsonl", "v.json"}
    Path("r.jsonl").write_text(LINES)
    assert assay.score_file("r.jsonl", SPEC, out).rows == 2


def test_a_folder_where_the_list_of_bad_rows_would_be_is_nothing_to_remove(work):
    Path("o.parquet.bad_rows.parquet").mkdir()
    assert assay.score_file("r.jsonl", SPEC, "o.parquet").rows == 2


COMMANDS = (
    "score r.jsonl -s v.json --json", "score r.jsonl -s v.json -o -", "explain v.json", "presets", "schema", "--help",
    "--version",
)  # fmt: skip


@pytest.mark.parametrize("command", some(COMMANDS))
def test_a_full_disk_behind_standard_output_is_an_error_in_words(work, command):
    code, said, _ = run(f"assay {command} >/dev/full")
    assert (code, said.splitlines()[-1]) == (1, "error: standard output: No space left on device.")


@pytest.mark.parametrize("command", some(COMMANDS[:3]))
def test_so_is_a_closed_one(work, command):
    code, said, _ = run(f"assay {command} >&-")
    assert (code, said.splitlines()[-1]) == (1, "error: Standard output is closed.")


@pytest.mark.parametrize("taken", some(["2>/dev/full", "2>&-", "2>&1 >/dev/null | true"]))
def test_messages_that_nobody_can_take_end_no_run(work, taken):
    (work / "own.py").write_text(
        "import sys, assay\ndef prints(completion):\n    print('x' * 9999, flush=True)\n    return 1.0\n"
        "rubric = assay.Rubric(funcs=[prints])\n"
    )
    code, said, _ = run(f"set -o pipefail; assay score r.jsonl --rubric own:rubric -o o.parquet {taken}", "bash")
    assert (code, said) == (0, "")
    assert pl.read_parquet("o.parquet")["reward"].to_list() == [1.0, 1.0]


def test_drafts_and_locks_are_not_written_through_links(work, monkeypatch):
    (work / "theirs").write_text("theirs")
    (work / ".o.parquet.lock").symlink_to("theirs")
    with pytest.raises(assay.OutputError, match=r"\.o\.parquet\.lock is a link"):
        assay.score_file("r.jsonl", SPEC, "o.parquet")
    (work / ".o.parquet.lock").unlink()
    unlink = os.unlink

    def planted(path, **options):  # in the moment after a draft of an earlier run is removed
        unlink(path, **options)
        if str(path).endswith(".tmp"):
            Path(path).symlink_to("theirs")

    monkeypatch.setattr(os, "unlink", planted)
    (work / f".o.parquet.{os.getpid()}-{newfile._HOST:08x}.tmp").write_text("left")
    with pytest.raises(assay.OutputError, match="File exists"):
        assay.score_file("r.jsonl", SPEC, "o.parquet")
    assert (work / "theirs").read_text() == "theirs"


def test_a_result_whose_place_becomes_a_link_meanwhile_replaces_the_link(work):
    def swap(done, total):
        if not (work / "o.jsonl").is_symlink():
            (work / "o.jsonl").symlink_to("theirs")

    (work / "theirs").write_text("theirs")
    assay.score_file("r.jsonl", SPEC, "o.jsonl", progress=swap)
    assert (work / "theirs").read_text() == "theirs"
    assert (work / "o.jsonl").read_text().count("\n") == 2
    assert not (work / "o.jsonl").is_symlink()


def test_a_file_in_the_current_folder_does_not_stand_for_a_module_of_pythons_in_a_process_that_scores_parts(work):
    (work / "json.py").write_text("raise RuntimeError('not the json that was meant')")
    command = f'"{sys.executable}" -P -m assay score r.jsonl -s v.json -o parts/'
    code, said, _ = run(command)
    assert code == 0, said


@pytest.mark.parametrize(
    "command", some(["--rubric own:rubric", "-s {}/v.json --import own", "-s {}/v.json -o o.parquet"])
)
def test_a_current_folder_that_is_gone_is_said(work, command):
    code, said, _ = run(f"mkdir gone && cd gone && rmdir ../gone && assay score {work}/r.jsonl {command.format(work)}")
    assert (code, said) == (1, "error: The current folder no longer exists.\n\nChange to another folder.\n")
