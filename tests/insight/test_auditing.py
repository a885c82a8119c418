"""What an audit says: the probes and what they earn, disguises, gates, tasks that lack something, and probes of users."""

import json

import polars as pl
import pytest
import yaml
from cases import ROOT
from insight_cases import golden

import assay
from assay import InputError, UsageError
from assay.insight.probes import CLASSES_OF_TASKS, DISGUISES, PROBES, Task, phrases_of, probes_of, task_of
from assay.spec.verifier import load_verifier

TONE = {"id": "tone", "checks": [{"id": "kind", "type": "contains", "value": "please"}]}


def of(audit, name):
    return next(probe for probe in audit.probes if probe["id"] == name)


def texts(tasks, spec=TONE):
    """The texts of the probes of the first task."""
    return {probe.id: probe.text for probe in probes_of(tasks, phrases_of([load_verifier(spec)])) if probe.task == 0}


def test_probes_of_a_small_spec():
    case = golden("audit.probes")
    rows = [{"task_id": "t", "prompt": case.input["prompt"], "completion": "A refund."}]
    audit = assay.audit(case.input["spec"], rows)
    made = texts([task_of(rows[0])], case.input["spec"])
    spec = load_verifier(case.input["spec"])
    for name, expected in case.expect.items():
        assert made[name] == expected["completion"]
        probe = of(audit, name)
        assert (probe["tasks"], probe["mean_reward"], probe["pass_share"]) == (
            1,
            expected["reward"],
            float(expected["passes"]),
        )
        assert probe["checks"] == expected["checks"]
        [row] = assay.score([{"completion": made[name]}], spec).to_dicts()
        assert {check: row[f"check/triage/{check}"] for check in expected["checks"]} == expected["checks"]


def test_disguises():
    case = golden("audit.disguise")
    assert {name: hide(case.input["phrase"]) for name, hide in DISGUISES.items()} == case.expect


def test_an_example_is_paid_for_less_than_it_should():
    folder = ROOT / "specs" / "answer-format"
    spec = {
        "checks": [
            {"id": "shape", "type": "regex", "pattern": r"(?s)\A<think>.*</think>\s*<answer>.*</answer>\Z"},
            {"id": "calm", "type": "not_contains", "value": "as an AI"},
        ]
    }
    audit = assay.audit(spec, folder / "rollouts.jsonl", max_passing=0, max_free=0.9, min_control="100%")
    assert of(audit, "shell_filler")["pass_share"] == 1.0
    assert of(audit, "empty")["stopped_by"] == ["shape"]
    assert audit.free_reward == 1.0
    assert [check["free"] for check in audit.checks] == [False, True]
    assert {(item["probe"], item["check"]) for item in audit.bypasses} == {(name, "calm") for name in DISGUISES}
    assert all(item["tasks"] == item["of"] == 25 for item in audit.bypasses)
    assert "--max-passing 0: shell_filler passes on 25 of 25 tasks" in audit.exceeded
    assert "--max-free 0.9: a free probe earns 1" in audit.exceeded
    assert not assay.audit(spec, folder / "rollouts.jsonl", max_passing="100%", max_free=1.0).exceeded


def test_look_alikes_that_pass_are_refused_by_the_check_that_the_note_suggests():
    folder = ROOT / "specs" / "answer-format"
    calm = {"id": "calm", "type": "not_contains", "value": "as an AI"}
    audit = assay.audit({"checks": [calm]}, folder / "rollouts.jsonl")
    (note,) = [note for note in audit.notes if "look-alikes" in note]
    suggested = yaml.safe_load(note[note.index("{") :])
    mended = assay.audit({"checks": [calm, suggested]}, folder / "rollouts.jsonl")
    assert (of(audit, "look_alike")["pass_share"], of(mended, "look_alike")["pass_share"]) == (1.0, 0.0)
    assert not [note for note in mended.notes if "look-alikes" in note]
    assert of(mended, "best_real")["pass_share"] == of(audit, "best_real")["pass_share"]


ROWS = [
    {"task_id": "a", "prompt": "Say please.", "answer": "please", "completion": "please do"},
    {"task_id": "a", "prompt": "Say please.", "answer": "please", "completion": "do"},
    {"task_id": "b", "prompt": "Be kind.", "answer": ["yes", "no"][0], "completion": "thanks"},
    {"task_id": "c", "prompt": None, "answer": None, "completion": None},
]


def test_what_a_task_lacks_makes_no_probe():
    audit = assay.audit(TONE, ROWS)
    names = ("empty", "prompt_echo", "other_gold", "all_golds", "gold", "best_real", "other_best", "repeated")
    assert [of(audit, name)["tasks"] for name in names] == [3, 2, 3, 3, 2, 2, 2, 2]
    assert not {"task_phrases", "json_keys_empty", "look_alike"} & {probe["id"] for probe in audit.probes}
    assert audit.real == {"tasks": 3, "rows": 4, "scored": 3, "mean_reward": 1 / 3, "pass_rate": 1 / 3}


def test_percentiles_count_ties_half_and_gains_the_best():
    audit = assay.audit(TONE, ROWS)
    echo = of(audit, "prompt_echo")  # 1.0 and 0.0 beside real 1.0, 0.0, 0.0
    assert echo["percentile"] == pytest.approx((2.5 / 3 + 1 / 3) / 2 * 100)
    assert echo["beats_real"] == 0.5
    assert [of(audit, name)["gains"] for name in ("prompt_echo", "all_golds", "spec_phrases")] == [0, 1, 1]


def test_equal_rewards_do_not_beat_their_mean():
    spec = {"checks": [{"type": "contains", "value": "a"}, {"type": "contains", "value": "b", "weight": 9}]}
    for count in (3, 6, 7):
        rows = [{"task_id": "t", "prompt": "a", "completion": "a"}] * count
        assert of(assay.audit(spec, rows), "prompt_echo")["beats_real"] == 0.0


def test_texts_of_all_kinds():
    tasks = [
        Task("Why?", "4", ("four", "4"), ("as an AI",), ("sum",), "It is four."),
        Task("How?", "4", ("so",)),
        Task("Who?", "5", ("me", "four"), best="I, as such"),
    ]
    made = texts(tasks, {"checks": [{"type": "json_keys", "keys": ["tool"]}, {"type": "min_length", "value": 60}]})
    assert made["json_keys_empty"] == '{"tool": "", "sum": ""}'
    assert made["repeat_prompt"] == "\n".join(["Why?"] * 20)
    assert made["task_phrases"] == "four, 4"
    assert made["all_phrases"] == "four, 4, so, me"
    assert made["other_gold"] == "5"
    assert made["all_golds"] == "4\n5"
    assert "other_best" not in made  # the next task has no completion
    assert made["repeated"] == "It is four." * 5
    assert made["half"] == "It is"
    assert made["words_reversed"] == "four. is It"
    assert made["look_alike"] == "It is four.\n\u0430\u0455 \u0430n AI"
    assert json.loads(made["combined"]) == {"tool": "four, 4 . . . . . .", "sum": "four, 4 . . . . . ."}
    assert len(made["combined"]) >= 60
    plain = texts(tasks, {"checks": [{"type": "min_length", "value": 10}]})
    assert plain["combined"] == "four, 4 . ."
    shaped = texts([Task()], {"checks": [{"type": "regex", "pattern": "<answer>.+</answer>"}]})
    assert shaped["combined"] == "<think>x</think>\n<answer>x</answer>"
    long = texts([Task(gold=f"{at}" * 5_000) for at in range(10, 20)])
    assert long["all_golds"] == "\n".join(("10" * 5_000,))


def test_phrases_are_signed():
    spec = {
        "checks": [
            {"id": "has", "type": "contains_any", "values": ["a", "b"]},
            {"id": "not", "type": "contains", "value": "c", "negate": True},
            {"id": "never", "type": "not_contains", "value": "d"},
            {"id": "odd", "type": "not_contains", "value": "e", "negate": True},
            {
                "id": "none",
                "type": "none_of",
                "checks": [{"id": "in", "type": "equals", "value": "f"}, {"type": "min_length", "value": 90}],
            },
            {"id": "brought", "type": "contains", "value": {"column": "answer"}},
            {"id": "short", "type": "min_length", "value": 7.5},
        ]
    }
    phrases = phrases_of([load_verifier(spec)])
    assert phrases.wanted == ("a", "b", "e")
    assert phrases.forbidden == (("not", ("c",)), ("never", ("d",)), ("none.in", ("f",)))
    assert (phrases.min_length, phrases.json, phrases.answer_tag) == (8, False, False)


def test_messages_get_texts_of_the_assistant():
    messages = [{"role": "user", "content": "Say please."}, {"role": "assistant", "content": "please"}]
    rows = [{"task_id": at, "completion": messages} for at in ("a", "b")]
    audit = assay.audit(TONE, rows)
    assert of(audit, "prompt_echo")["mean_reward"] == 1.0
    assert of(audit, "empty")["mean_reward"] == 0.0
    assert of(audit, "best_real")["pass_share"] == of(audit, "other_best")["pass_share"] == 1.0
    parts = [{"role": role, "content": [{"type": "text", "text": "please"}]} for role in ("user", "assistant")]
    audit = assay.audit(TONE, [{"task_id": "a", "completion": parts}])
    assert [of(audit, name)["mean_reward"] for name in ("empty", "spec_phrases", "prompt_echo")] == [0.0, 1.0, 1.0]


def test_errors_are_told_and_not_counted_as_stopped():
    spec = {"checks": [{"id": "keys", "type": "expected_output_schema"}]}
    schemas = [json.dumps({"required": ["a"]}), None]
    rows = [
        {"task_id": str(at), "completion": '{"a": 1}', "expected_output_schema": schema}
        for at, schema in enumerate(schemas)
    ]
    empty = of(assay.audit(spec, rows), "json_empty")
    assert (empty["tasks"], empty["errors"], empty["mean_reward"], empty["stopped_by"]) == (2, 1, 0.0, ["keys"])
    broken = of(assay.audit(spec, rows[1:]), "json_empty")
    assert (broken["errors"], broken["mean_reward"], broken["pass_share"], broken["stopped_by"]) == (1, None, None, [])


def test_several_verifiers_rows_that_name_functions_and_rubrics():
    other = {"id": "short", "checks": [{"id": "brief", "type": "max_length", "value": 5}]}
    audit = assay.audit([TONE, other], ROWS)
    assert [check["check"] for check in audit.checks] == ["tone/kind", "short/brief"]
    assert of(audit, "empty")["checks"] == {"tone/kind": 0.0, "short/brief": 1.0}
    rows = [{"task_id": "a", "completion": "4", "fn_name": "exact_match", "expected": "4"}]
    audit = assay.audit(None, rows)
    assert (of(audit, "gold")["pass_share"], of(audit, "empty")["stopped_by"]) == (1.0, ["verifier"])

    def kind(completion):
        return float("please" in completion)

    audit = assay.audit(assay.Rubric(funcs=[kind]), ROWS[:1])
    assert of(audit, "empty")["checks"] == {"kind": 0.0}
    assert of(audit, "gold")["checks"] == {"kind": 1.0}


def test_tasks_are_evenly_spaced_over_all():
    rows = [{"task_id": f"t{at % 10}", "completion": f"please {at}"} for at in range(30)]
    audit = assay.audit(TONE, pl.DataFrame(rows).lazy(), sample=4)
    assert audit.real["tasks"] == of(audit, "empty")["tasks"] == 4
    assert audit.real["rows"] == 12
    assert "4 of 10 tasks, evenly spaced" in audit.notes
    named = [{"case": at // 2, "part": at % 2, "completion": "please"} for at in range(8)]
    assert assay.audit(TONE, named, task=["case", "part"]).real["tasks"] == 8


def test_no_task_is_an_error():
    for rows in (ROWS[3:][:0] or pl.DataFrame(ROWS).clear(), pl.DataFrame(ROWS).with_columns(task_id=None)):
        with pytest.raises(InputError, match="no task"):
            assay.audit(TONE, rows)
    with pytest.raises(InputError, match="no column `task_id`"):
        assay.audit(TONE, [{"completion": "x"}])
    with pytest.raises(UsageError, match="no such column"):
        assay.audit(TONE, ROWS, task=["tasks"])


def test_tasks_without_any_reward_have_no_controls():
    audit = assay.audit(TONE, [{"task_id": "a", "prompt": "please", "completion": None}])
    assert audit.real == {"tasks": 1, "rows": 1, "scored": 0, "mean_reward": None, "pass_rate": None}
    echo = of(audit, "prompt_echo")
    assert (echo["mean_reward"], echo["percentile"], echo["beats_real"], echo["gains"]) == (1.0, None, None, 0)
    assert not {"best_real", "half", "gold"} & {probe["id"] for probe in audit.probes}


def test_a_probe_of_one_task_goes_by_the_column_that_names_tasks():
    rows = [{"example_id": at, "completion": "no"} for at in range(3)]
    mine = {"probe": "mine", "class": "hack", "completion": "please", "task_id": "2"}
    assert of(assay.audit(TONE, rows, probes=[mine]), "mine")["tasks"] == 1


@pytest.mark.parametrize("completion", ["no", [{"role": "assistant", "content": "no"}]])
def test_half_of_a_surrogate_pair_in_a_probe_is_what_it_is_in_a_rollout(completion):
    spec = {"checks": [{"type": "contains", "value": "\ud800"}, {"type": "contains", "value": "\ufffd"}]}
    mine = {"probe": "mine", "class": "hack", "completion": "\ud800"}
    audit = assay.audit(spec, [{"task_id": 1, "completion": completion}], probes=[mine])
    assert (of(audit, "mine")["mean_reward"], of(audit, "spec_phrases")["mean_reward"]) == (0.5, 0.5)


def test_probes_of_users(tmp_path):
    path = tmp_path / "probes.jsonl"
    mine = {"probe": "thanks", "class": "hack", "completion": "Thank you, please!"}
    path.write_text(
        "\n".join(map(json.dumps, (mine, {**mine, "probe": "one", "task_id": "b"}, {**mine, "task_id": "x"})))
    )
    audit = assay.audit(TONE, ROWS, probes=path, max_passing=2)
    assert (of(audit, "thanks")["tasks"], of(audit, "one")["tasks"]) == (3, 1)
    assert "--max-passing 2: thanks passes on 3 of 3 tasks" in audit.exceeded
    assert audit.notes[-1] == "user probes of 1 task not among those probed"
    for line, message in (
        ("{", r"probes.jsonl:1: not JSON"),
        ('{"probe": "a"}', "not a probe"),
        (json.dumps({**mine, "class": "good"}), "class is 'good'"),
        (json.dumps({**mine, "probe": "empty"}), "a probe of Assay's"),
        (json.dumps({**mine, "completion": 3}), "must be texts"),
    ):
        path.write_text(line)
        with pytest.raises(InputError, match=message):
            assay.audit(TONE, ROWS, probes=path)


@pytest.mark.parametrize(
    "options", [{"max_passing": "few"}, {"max_free": float("nan")}, {"min_control": "90"}, {"sample": 0}]
)
def test_limits_that_mean_nothing_are_refused(options):
    with pytest.raises(UsageError):
        assay.audit(TONE, ROWS, **options)


def test_the_same_input_gives_the_same_json():
    first, second = (assay.audit(TONE, ROWS).as_json() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    assert first["insight"] == 1
    classes = [probe["class"] for probe in first["probes"]]
    assert {*classes} <= {*CLASSES_OF_TASKS}
    order = [
        (CLASSES_OF_TASKS.index(kind), PROBES[kind].index(probe["id"]))
        for kind, probe in zip(classes, first["probes"], strict=True)
    ]
    assert order == sorted(set(order))


def test_hostile_rows_run_through():
    rows = [
        {"task_id": f"t{at}", "prompt": text, "answer": text, "completion": text}
        for at, text in enumerate(("\0\u202e\x1b[31m", "\ud83d\ude00" * 2_000, "a\u0301" * 500, "", "'\"|<script>"))
    ]
    audit = assay.audit({"checks": [{"type": "equals", "value": {"column": "answer"}}]}, rows)
    assert of(audit, "gold")["pass_share"] == 1.0
    json.dumps(audit.as_json(), allow_nan=False)
