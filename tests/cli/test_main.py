"""The command line as people meet it: exit codes, where what is printed, pipes, Ctrl-C."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import HELPERS, sized, some
from typer.testing import CliRunner
from waiting import PATIENCE, interrupt_at, until, without_waiting

import assay
from assay.cli.main import app
from assay.functions import registry as fns

ENV = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
ENV |= {"PYTHONPATH": os.pathsep.join([str(Path(assay.__file__).parents[1]), str(HELPERS)])}
HOSTILE = "[bold]x[/bold] \x1b[31m \x9b2J \u202e"
ESCAPED = r"[bold]x[/bold] \x1b[31m \x9b2J \u202e"
OLD = b"what was there before"


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """The folder that commands run in, with a verifier and three rollouts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    for name in ("my_fns", "gone"):  # what a test imports is forgotten
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("v.json").write_text('{"checks": [{"type": "contains", "value": "refund"}]}')
    Path("broken.json").write_text('{"checks": [{"type": "regex", "pattern": "("}, {"type": "json_valid"}]}')
    Path("unknown.json").write_text('{"checks": [{"type": "json_valid"}, {"type": "vibes"}]}')
    Path("bad.json").write_text('{"checks": [{"type": "contains", "value": "x", "wieght": 2}]}')
    rows = ["a refund", "no", None]
    Path("in.jsonl").write_text("".join(json.dumps({"id": n, "completion": row}) + "\n" for n, row in enumerate(rows)))
    return tmp_path


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A file that takes a second or two, with a verifier that asks Python about every row."""
    folder = tmp_path_factory.mktemp("big")
    text = pl.when(pl.col("id") % 100 > 0).then(pl.format("refund {}", pl.col("id").hash()))
    text = pl.when(pl.col("id") == 60_001).then(pl.lit("waits here")).otherwise(text)
    frame = pl.DataFrame({"id": range(sized(300_000, 120_000))}).with_columns(completion=text)
    frame.write_parquet(folder / "big.parquet", row_group_size=10_000)
    (folder / "slow.json").write_text('{"checks": [{"type": "regex", "pattern": "(\\\\d)(?=\\\\d*\\\\1\\\\1\\\\1)"}]}')
    return [str(folder / "big.parquet"), "--spec", str(folder / "slow.json")]


def run(command, code=0, **options):
    """Run a command inside this process."""
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "160"}, **options)
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    return done


def start(*args, **options):
    options = {"env": ENV, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([sys.executable, "-m", "assay", *args], **options)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("score missing.jsonl --spec v.json", "missing.jsonl: no such file"),
        ("score in.jsnol --spec v.json", "Did you mean `in.jsonl`"),
        ("score in.jsonl --spec missing.json", "missing.json: no such file"),
        ("score in.jsonl --spec bad.json", "Did you mean `weight`"),
        ("score in.jsonl --spec unknown.json --strict", "vibes"),
        ("score in.jsonl --spec broken.json --strict", "PatternError"),
        ("score in.jsonl", "Name a spec (--spec FILE)"),
        ("score in.jsonl --spce v.json", "No such option: --spce"),
        ("score in.jsonl --spec v.json --map completion", "expected NAME=COLUMN"),
        ("score in.jsonl --spec v.json --map completion=", "expected NAME=COLUMN"),
        ("score in.jsonl --spec v.json --map completion=output", "no column `output`"),
        ("score in.jsonl --spec v.json --map ident=id --keep id", "--keep: the rollouts have no column `id`"),
        ("score in.jsonl --spec v.json --max-errors x", "--max-errors x"),
        ("score in.jsonl --spec v.json --limit -1", "--limit"),
        ("score in.jsonl --spec v.json --tasks missing.jsonl", "missing.jsonl: no such file"),
        ("score in.jsonl --spec v.json --out old.parquet", "old.parquet: already exists"),
        ("score in.jsonl --spec v.json --out in.jsonl --overwrite", "is one of the inputs"),
        ("score in.jsonl --spec v.json --out out.txt", "the ending must be .parquet"),
        ("score in.jsonl --spec v.json --out rewards.parq", "Did you mean rewards.parquet?"),
        ("score in.jsonl --spec v.json --out rewards", "Did you mean rewards.parquet?"),
        ("init mine.yamml", "Did you mean mine.yaml?"),
        ("report old.parquet --out page.htlm", "Did you mean page.html?"),
        ("diff old.parquet old.parquet --out page.jsn", "Did you mean page.json?"),
        ("score old.parquet --spec v.json", "old.parquet: "),
        ("score v.json --spec v.json", "v.json: is a verifier's spec, not rollouts."),
        ("score renamed.jsonl --spec v.json", "Rename it with --map completion=response"),
        ("check missing.json", "missing.json: no such file"),
        ("check bad.json", "$.checks[0].wieght"),
        ("check v.json --against old.parquet", "old.parquet: "),
        ("explain bad.json", "Did you mean `weight`"),
        ("chekcs", "Did you mean 'checks'"),
        ("checks --jsn", "No such option: --jsn"),
    ],
)
def test_a_mistake_is_told_in_words_with_exit_code_2(args, said):
    Path("old.parquet").write_bytes(OLD)
    Path("renamed.jsonl").write_text('{"response": "x"}\n')
    done = run(args, code=2)
    assert said in done.stderr
    assert done.stdout == ""
    assert Path("old.parquet").read_bytes() == OLD


ROWS = """\
{"completion": "Answer: 4", "verifier": {"fn_name": "starts", "expected": "Answer:"}}
{"completion": "it is 4", "verifier": {"expected": 4}}
"""
MODULE = """\
from assay.fns import register_fn

@register_fn("starts")
def starts(model_output, expected, params):
    return float(model_output.startswith(str(expected)))
"""


def test_rows_name_their_functions_and_modules_register_them():
    Path("rows.jsonl").write_text(ROWS)
    Path("my_fns.py").write_text(MODULE)
    said = run("score rows.jsonl --verifier-name contains", code=2).stderr
    assert 'row 0: unknown verifier function "starts"' in said
    assert "--import MODULE" in said
    done = run("score rows.jsonl --verifier-name contains --import my_fns --out - --pass-threshold 0.5")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["reward"], row["verifier_fn"]) for row in rows] == [(1.0, "starts"), (1.0, "contains")]
    assert "my_fns" not in run("checks").stdout
    assert "contains, exact_match, regex_match, starts, tool_calls_match" in run("checks --import my_fns").stdout


@pytest.mark.parametrize("timeout", some([None, "20"]))
def test_user_code_runs_with_the_garbage_collector_and_in_the_users_environment(timeout):
    name = "OPENBLAS_THREAD_TIMEOUT"  # the command sets it for its own imports
    code = f"import gc, os\nassert gc.isenabled()\nassert gc.get_freeze_count()\nassert os.environ.get({name!r}) == {timeout!r}\n"
    Path("gone.py").write_text(code)
    environment = {key: value for key, value in ENV.items() if key != name} | ({name: timeout} if timeout else {})
    done = start("score", "in.jsonl", "--spec", "v.json", "--import", "gone", env=environment)
    assert "rewards: not written; name a file with --out" in done.communicate()[1].splitlines()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("", "--import gone: ModuleNotFoundError: No module named 'gone'"),
        ("import sys; sys.exit(3)", "--import gone: SystemExit: 3"),
        ("1 / 0", "--import gone: ZeroDivisionError: division by zero"),
        ("def", "--import gone: SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told(module, said):
    if module:
        Path("gone.py").write_text(module)
    importlib.invalidate_caches()
    done = run("score in.jsonl --import gone", code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_spec_names_a_verifier_class():
    Path("shape.yaml").write_text("kind: format_only\nparams: {has_think_reward: 0.25}\n")
    done = run("score in.jsonl --spec shape.yaml --spec v.json --out -")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["info/shape"] == '{"has_think":false,"has_answer":false}'
    assert rows[0]["score/shape"] == 0.0
    assert "columns: the class has a twin" in run("explain shape.yaml").stdout
    assert "ok: shape.yaml" in run("check shape.yaml").stderr
    Path("shape.yaml").write_text("kind: format_only\nparams: {has_thnk_reward: 0.25}\n")
    said = "$.params.has_thnk_reward (line 2): unknown field `has_thnk_reward`. Did you mean `has_think_reward`?"
    assert said in run("check shape.yaml", code=2).stderr


def test_bad_rows_end_a_run_with_3_unless_they_are_allowed():
    Path("bad.jsonl").write_bytes(Path("in.jsonl").read_bytes() + b'{"completion": "\xff"}\n{"compl')
    said = run("score bad.jsonl --spec v.json --out out.parquet", code=3).stderr
    assert "1 malformed line (limit 0; see --max-bad-rows)." in said
    assert not Path("out.parquet").exists()
    run("score bad.jsonl --spec v.json --max-bad-rows 1 --utf8 strict", code=3)
    said = run("score bad.jsonl --spec v.json --out out.parquet --max-bad-rows 2 --utf8 strict").stderr
    assert "note: 2 bad rows are unscored, and listed in out.parquet.bad_rows.parquet" in said
    for wrong in ("--max-bad-rows x", "--utf8 x", "--max-ratio 0", "--max-uncompressed 0"):
        assert wrong in run(f"score bad.jsonl --spec v.json {wrong}", code=2).stderr


def test_too_many_errors_exit_with_3_and_name_the_check():
    done = run("score in.jsonl --spec broken.json --out out.parquet --max-errors 50%", code=3)
    assert "3 of 3 rows have a scoring error; --max-errors allows 50%." in done.stderr
    assert "  regex: 2 rows" in done.stderr
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize("where", ["", "out.csv"])
def test_the_summary_goes_to_stderr_and_to_stdout_as_one_json_document_when_asked(where):
    command = "score in.jsonl --spec v.json" + (f" --out {where}" if where else "")
    done = run(command)
    assert done.stdout == ""
    assert "2 of 3 rows scored · mean reward 0.500 · pass rate 50.0 %" in done.stderr
    doubt = "unscored: 1 of 3 rows (33.3 %); most often: the completion is null (1 row)"
    assert f"warning: {doubt}\n" in done.stderr
    assert "1 row has an error:\n  unscored, the completion is null: 1\n" in done.stderr
    done = run(f"{command} --json --overwrite")
    found = json.loads(done.stdout)
    assert (found["rows"], found["mean_reward"], found["out"]) == (3, 0.5, where or None)
    assert found["warnings"] == [doubt]
    assert done.stderr == ""


@pytest.mark.parametrize("as_json", ["", "--json"])
def test_rollouts_come_and_go_through_pipes(as_json):
    lines = Path("in.jsonl").read_bytes()
    done = run(f"score - --spec v.json --out - --no-details {as_json}", input=lines)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["id"], row["reward"]) for row in rows] == [(0, 1.0), (1, 0.0), (2, None)]
    assert list(rows[0]) == ["id", "reward", "passed", "feedback", "error"]
    assert json.loads(done.stderr)["rows"] == 3 if as_json else "2 of 3 rows scored · mean reward 0.500" in done.stderr


@pytest.mark.parametrize(
    ("content", "place", "code"), [(b"", "standard input", 2), (b'{"completion": "x"}\n{"co', "input:2", 3)]
)
def test_a_broken_pipe_line_is_named(content, place, code):
    assert place in run("score - --spec v.json", code=code, input=content).stderr


def test_columns_are_mapped_and_kept():
    Path("renamed.jsonl").write_text('{"response": "refund", "a": 1, "b": 2, "c": 3}\n')
    done = run("score renamed.jsonl --spec v.json --out - --no-details --map completion=response --keep a,c --keep b")
    assert done.stdout.startswith('{"a":1,"c":3,"b":2,"reward":1.0,')


def test_the_command_is_part_of_what_made_a_file(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["assay", "score", "my rollouts.jsonl"])
    run("score in.jsonl --spec v.json --out out.parquet")
    assert assay.read_provenance("out.parquet")["command"] == "assay score 'my rollouts.jsonl'"


def test_nothing_from_data_reaches_the_terminal_as_a_command():
    spec = {"checks": [{"type": "contains", "value": HOSTILE}, {"type": "task_expectations"}]}
    Path("h.json").write_text(json.dumps(spec))
    metadata = json.dumps({"expectations": [{"text": "q", "message": HOSTILE}]})
    row = {"completion": HOSTILE[::-1], HOSTILE: 1, "metadata": metadata}
    Path("h\x1bc\u202e.jsonl").write_text(json.dumps(row) + "\n")
    seen = [
        run("score h\x1bc\u202e.jsonl --spec h.json --out \x1b[31m\u202e.csv").stderr,
        run("score h\x1bc\u202e.jsonl --spec v.json --keep \x9b", code=2).stderr,
        run("score \x1b]0;gone\x07 --spec v.json", code=2).stderr,
        run("explain h.json").stdout,
        run("check h.json --against h\x1bc\u202e.jsonl").stderr,
        run("check \x9b.json", code=2).stderr,
    ]
    assert seen[0].count(ESCAPED) == 2
    assert r"rewards: \x1b[31m\u202e.csv" in seen[0]
    assert r"`\x9b`" in seen[1]
    assert ESCAPED in seen[1]
    assert r"\x1b]0;gone\x07: no such file" in seen[2]
    assert [code for text in seen for code in text if not (code.isprintable() or code == "\n")] == []


@pytest.mark.parametrize(
    ("specs", "code", "said"),
    [
        ("v.json", 0, ["ok: v.json: 1 check, 200 sample texts scored the same"]),
        ("unknown.json", 2, ["error: unknown.json", "vibes"]),
        ("unknown.json --no-strict", 0, ["warning: unknown.json: vibes", "ok: unknown.json"]),
        ("broken.json", 2, ["error: broken.json: 1 problem", "the check cannot run: PatternError"]),
        ("v.json bad.json broken.json nix.json", 2, ["ok: v.json", "bad.json: 1 problem", "broken.json", "nix.json"]),
        ("v.json --against in.jsonl", 0, ["mean reward 0.500 on 3 rows of in.jsonl"]),
        ("v.json --rollouts in.jsonl", 0, ["mean reward 0.500 on 3 rows of in.jsonl"]),
    ],
)
def test_check_tells_every_problem_of_every_file(specs, code, said):
    done = run(f"check {specs}", code=code)
    assert done.stdout == ""
    assert all(words in done.stderr for words in said)
    assert ("error" in done.stderr) == bool(code)


GSM = {
    "checks": [
        {
            "type": "number",
            "on": ["afterThink", {"after": "A:"}],
            "value": {"column": "answer"},
            "goldOn": [{"after": "####"}],
            "gate": True,
        },
        {
            "type": "all_of",
            "checks": [
                {"type": "json_valid", "when": {"column": "level", "equals": 3}, "threshold": 0.5},
                {"type": "vibes"},
                {"type": "contains", "value": "${answer}", "negate": True},
            ],
        },
    ]
}


def test_check_tells_of_nested_checks_and_what_rollouts_have():
    Path("gsm.json").write_text(json.dumps(GSM))
    rows = [{"completion": f"A: {at}", "answer": f"#### {at}" if at else "zero", "level": 3} for at in range(4)]
    Path("gsm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("check gsm.json --against gsm.jsonl --no-strict")
    lines = done.stderr.splitlines()
    assert 'warning: gsm.json: all_of.vibes: skipped, unknown check type "vibes"' in lines
    assert any(line.startswith("warning: gsm.json: all_of.contains: `${answer}` is plain text here") for line in lines)
    assert "gsm/number, value: `answer` has a value in 4 of 4 rows" in lines
    assert 'gsm/number, value: `number` cannot use the values of 1 of 4 rows, such as "zero"' in lines
    assert "gsm/all_of.json_valid, when: holds in 4 of 4 rows" in lines
    assert lines[-1].endswith("; mean reward 0 on 4 rows of gsm.jsonl, 1 unscored")
    broken = {"type": "all_of", "checks": [{"type": "contains"}, {"type": "json_valid"}]}
    Path("gsm.json").write_text(json.dumps({"checks": [broken]}))
    refused = run("check gsm.json", code=2).stderr
    assert "$.checks[0].checks[0] (line 1): the check cannot run: ValueError: params.value is missing" in refused


def test_a_path_that_no_row_has_is_refused_with_a_guess_and_its_readers():
    checks = [
        {"type": "contains", "value": {"column": "anser"}, "on": {"column": "nte"}},
        {"type": "length_scaled", "max": 3, "unit": {"column": "anser"}, "check": {"type": "json_valid"}},
    ]
    Path("gsm.json").write_text(json.dumps({"checks": checks}))
    Path("gsm.jsonl").write_text('{"completion": "a", "answer": 1, "note": "b"}\n')
    for command, spec in (
        ("check gsm.json --against gsm.jsonl", "gsm.json: "),
        ("score gsm.jsonl --spec gsm.json", ""),
    ):
        assert run(command, code=2).stderr == (
            f"error: {spec}The table of rollouts has no `anser` (in the path `anser`).\n"
            "  read by gsm/contains (value), gsm/length_scaled (unit)\n"
            "The table of rollouts has no `nte` (in the path `nte`).\n"
            "  read by gsm/contains (on)\n\n"
            "Did you mean `answer`?\nDid you mean `note`?\n"
        )


def test_explain_shows_steps_golds_conditions_and_nested_checks(monkeypatch):
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    Path("gsm.json").write_text(json.dumps(GSM))
    listed = run("explain gsm.json").stdout
    heads = [re.split(r"  +", line.rstrip())[0 if line[0] != " " else 1] for line in listed.splitlines() if line]
    assert heads[2:] == [
        *(
            "number",
            "on: afterThink",
            'on: {after: "A:"}',
            "on: number",
            "value: {column: answer}",
            'goldOn: {after: "####"}',
        ),
        *("all_of", "all_of.json_valid", "when: {column: level, equals: 3}", "all_of.vibes", "all_of.contains"),
    ]
    assert re.search(r"number +number +gate +columns", listed)
    assert re.search(r"all_of.json_valid +json_valid +1 threshold 0.5 +columns", listed)
    number, group, *parts = json.loads(run("explain gsm.json --json").stdout)[0]["checks"]
    assert [*number] == ["id", "type", "role", "runs_as", "on", "golds", "gold_on"]
    assert number["role"] == "gate"
    assert [step["what"] for step in number["on"]] == ["afterThink", {"after": "A:"}, "number"]
    assert number["golds"] == [
        {"param": "value", "what": {"column": "answer"}, "runs_as": "columns; lists and objects in Python"}
    ]
    assert (group["runs_as"], [part["depth"] for part in parts]) == (
        "columns: from the scores of its checks",
        [1, 1, 1],
    )
    assert parts[0]["when"][0]["what"] == {"column": "level", "equals": 3}


def test_explain_names_the_lane_of_each_check(monkeypatch):
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    patterns = [{"type": "regex", "pattern": pattern} for pattern in ("a+", "b(?<=a)", r"(?i)(a)\1")]
    Path("x.json").write_text(json.dumps({"checks": patterns}))
    lanes = [check["runs_as"] for check in json.loads(run("explain x.json --json").stdout)[0]["checks"]]
    assert lanes == [
        "linear engine: the same verdict on every text",
        "Python's re in a separate process, and sets of positions where it takes long: look-around",
        "Python's re in a separate process, up to 0.2 s of processor time per match: a back-reference",
    ]
    listed = run("explain x.json v.json").stdout
    assert all(lane in listed for lane in lanes)
    assert re.findall(r"^\S+", listed, re.MULTILINE) == [
        *("x", "check", "regex", "regex-2", "regex-3"),
        *("v", "check", "contains"),
    ]


def test_a_match_that_takes_too_long_is_an_error_of_its_row():
    Path("loop.json").write_text(json.dumps({"checks": [{"type": "regex", "pattern": r"^(?:(a+))+\1$"}]}))
    Path("loop.jsonl").write_text("".join(json.dumps({"completion": text}) + "\n" for text in ("a" * 40 + "!", "a")))
    said = run("score loop.jsonl --spec loop.json --regex-timeout 0.05 --json --out -")
    assert [json.loads(line)["error"] for line in said.stdout.splitlines()] == [
        "regex: TimeoutError: no answer within 0.05 s; as that is a limit of time, another run may end otherwise",
        None,
    ]
    stopped = run("score loop.jsonl --spec loop.json --regex-timeout 0.05 --max-errors 0", code=3)
    assert "1 of 2 rows has a scoring error" in stopped.stderr


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_a_time_limit_that_is_none_is_one_line(seconds):
    done = run(f"score in.jsonl --spec v.json --regex-timeout {seconds}", code=2)
    assert f"--regex-timeout {float(seconds)}: expected a number of seconds; 0 for no limit." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_listings_agree_on_the_check_types():
    listed = [check["type"] for check in json.loads(run("checks --json").stdout)]
    assert listed[:4] == ["task_expectations", "contains", "not_contains", "contains_any"]
    assert {"all_of", "boxed", "squad"} < {*listed}
    assert re.findall(r"^\| `(\w+)`", run("checks --markdown").stdout, re.MULTILINE) == listed
    checks, _, rest = run("checks").stdout.partition("functions that rows may name (verifier.fn_name)\n")
    assert re.findall(r"^(\w+)", checks, re.MULTILINE) == listed
    assert rest == "  contains, exact_match, regex_match, tool_calls_match\n\nverifier classes (kind)\n  format_only\n"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("score", "ROLLOUTS…"),
        ("bench", "[SPEC] ROLLOUTS…"),
        ("explain", "[SPECS…]"),
        ("diff", "RESULTS…"),
        ("verifiers", "create|list|show|check [NAMES…]"),
    ],
)
def test_the_help_of_a_command_names_its_arguments_without_python_types(command, arguments):
    shown = CliRunner().invoke(app, [command, "--help"], prog_name="assay").output
    assert shown.splitlines()[0] == f"Usage: assay {command} {arguments} [OPTIONS]"
    assert not re.search(r"<\w", shown.partition("Arguments:")[2].partition("\n\n")[0])


def test_schema_and_version(monkeypatch):
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    assert json.loads(run("schema").stdout)["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert (
        run("--version").stdout
        == f"assay {assay.__version__} (polars {pl.__version__}, no kernel: off by ASSAY_KERNEL)\n"
    )
    assert "Score rollouts" in run("score --help").stdout


def test_ctrl_c_exits_with_130_and_leaves_the_old_file(big, desk):
    gate, folder = Path("gate"), Path("out")
    gate.mkdir()
    folder.mkdir()
    (folder / "out.parquet").write_bytes(OLD)
    Path("gated.json").write_text(json.dumps({"checks": [{"type": "gated", "expected": str(desk / gate)}]}))
    command = ["score", big[0], "--spec", "gated.json", "--import", "gated_rewards", "--out", "out/out.parquet"]
    with start(*command, "--overwrite") as child:
        until(lambda: len(list(folder.iterdir())) > 1)
        interrupt_at(gate, child, signal.SIGINT)
        printed, said = child.communicate(timeout=PATIENCE)
    assert (child.returncode, printed, without_waiting(said)) == (130, "", "interrupted; nothing was written\n")
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == [("out.parquet", OLD)]


@pytest.mark.parametrize(
    ("raised", "heard", "code"),
    [("KeyboardInterrupt", False, 130), ("SystemExit(143)", False, 143), ("KeyboardInterrupt", True, 0)],
)
def test_an_interrupt_that_falls_into_a_callback_ends_the_command(raised, heard, code):
    program = f"""
import sys, weakref
from assay.cli import main
from assay.system import signals
class Lost: pass
def falls(_): raise {raised}
def work():
    lost = Lost()
    watched = weakref.ref(lost, falls)
    del lost
    print("went on")
main.app = work
if {heard}: signals._HEARD.append(None)
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, env=ENV, capture_output=True, text=True)
    said = ("went on\n", "") if heard else ("", "interrupted; nothing was written\n")
    assert (done.returncode, done.stdout, done.stderr) == (code, *said)


@pytest.mark.parametrize("attempt", range(sized(3, 1)))
def test_a_run_stopped_half_way_exits_with_3(big, attempt):
    with start("score", *big, "--out", f"{attempt}.parquet", "--max-errors", "5") as child:
        _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 3
    assert said.startswith("error: ")
    assert "\n  unscored: the completion is null: " in said
    assert said.endswith("Nothing was written. Fix the verifier or the rows, or allow more errors.\n")


@pytest.mark.parametrize("spec", some(["slow.json", "v.json"]))
def test_a_reader_that_has_had_enough_ends_the_run_quietly(big, spec):
    with start("score", big[0], "--spec", big[2] if spec == "slow.json" else spec, "--out", "-") as child:
        assert json.loads(child.stdout.readline())["id"] == 0
        child.stdout.close()
        said = child.stderr.read()
    assert (child.returncode, said) == (0, "")


@pytest.mark.parametrize("args", some(["score in.jsonl --spec v.json --out -", "checks", "schema"]))
def test_a_pipe_closed_from_the_start_is_no_trouble(args):
    ours, theirs = os.pipe()
    os.close(ours)
    with start(*args.split(), stdout=theirs) as child:
        os.close(theirs)
        said = child.stderr.read()
    assert (child.returncode, said) == (0, "")


def test_a_full_standard_output_exits_with_1():
    command = ["score", "in.jsonl", "--spec", "v.json", "--out", "-"]
    with Path("/dev/full").open("w") as full, start(*command, stdout=full) as child:
        said = child.stderr.read()
    assert "Traceback" not in said
    assert "No space left on device" in said
    assert child.returncode == 1


def test_check_lists_every_problem_in_one_round(tmp_path):
    spec = tmp_path / "v.yaml"
    spec.write_text(
        "checks:\n- type: contians\n  value: x\n- type: regex\n  pattern: '['\n- type: json_valid\n  weigth: 2\n"
    )
    said = CliRunner().invoke(app, ["check", str(spec)]).stderr
    for part in (
        "3 problems",
        "$.checks[0].type (line 2)",
        "Did you mean `contains`?",
        "(line 4): the check cannot run",
        "Did you mean `weight`?",
    ):
        assert part in said


def test_a_run_that_is_told_to_end_leaves_nothing_behind(tmp_path):
    pl.DataFrame({"completion": ["x" * 50 + str(at) for at in range(300_000)]}).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "slow.json").write_text(json.dumps({"checks": [{"type": "regex", "pattern": r"(\d)(?=\d*\1\1\1)"}]}))
    command = [sys.executable, "-m", "assay", "score", "in.parquet", "--spec", "slow.json", "--out", "out.parquet"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    until(lambda: list(tmp_path.glob(".out*")) or child.poll() is not None)
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=PATIENCE)
    assert b"Traceback" not in said
    # a signal that comes after the last row finds the result complete, before or after the command has its exit code
    assert child.returncode in (143, 0)
    assert not list(tmp_path.glob(".out*"))
    assert child.returncode == 143 or (tmp_path / "out.parquet").exists()
    if (tmp_path / "out.parquet").exists():
        assert pl.read_parquet(tmp_path / "out.parquet").height == 300_000


ENDINGS = """
import os, signal, sys
from assay.cli import main as cli

run, clean_up = cli._run, cli._clean_up
at = sys.argv.pop(1)

def ended():
    code = run()
    if at == "ended":
        os.kill(os.getpid(), signal.SIGTERM)
    return code

def cleaning():
    if at == "cleaning":
        os.kill(os.getpid(), signal.SIGTERM)
    clean_up()
    print("cleaned", file=sys.stderr)
    sys.stderr.flush()

cli._run, cli._clean_up = ended, cleaning
cli.main()
"""


@pytest.mark.parametrize(("moment", "code"), [("ended", 143), ("cleaning", 0)])
def test_a_signal_at_the_end_of_a_command_leaves_its_last_steps_whole(moment, code):
    """The signal comes at a moment of the main thread that no clock decides."""
    done = subprocess.run(
        [sys.executable, "-c", ENDINGS, moment, "checks"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, "cleaned\n")
