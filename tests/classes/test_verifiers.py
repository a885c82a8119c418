"""Verifier classes: the registry, the config in a spec, what a run shows of them."""

import json
import math
import pickle
from typing import Any, ClassVar

import polars as pl
import pytest
from cases import sized
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

import assay
from assay.calls.limits import is_score, to_reward
from assay.classes import registry as verifiers
from assay.classes.check import prompt_text, target_of
from assay.functions import registry as functions
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms, assert_verifier_conforms, hostile_texts

THINKS = "<think>a</think><answer>b</answer>"


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")

    least: int = 0
    names: list[str] = []


class Echo:
    """Says back what it was given."""

    name: ClassVar[str] = "echo"
    Config: ClassVar[type] = Config

    def __init__(self, *, least=0, names=()):
        self.least = least
        self.names = names

    def verify(self, *, prompt, completion, target):
        return assay.VerificationResult(
            float(len(completion)), {"prompt": prompt, "target": target, "names": self.names}
        )


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(verifiers, "_REGISTRY", dict(verifiers._REGISTRY))
    assay.register_verifier("echo")(Echo)


def given(verify, name="given"):
    """Register a class that verifies by a function of the completion."""
    attributes = {
        "name": name,
        "Config": Config,
        "__init__": lambda self, **_: None,
        "verify": lambda self, *, prompt, completion, target: verify(completion),
    }
    return assay.register_verifier(name)(type("Given", (), attributes))


# ── the registry ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("registry")
def test_a_class_is_registered_once_under_a_name():
    assert assay.get_verifier("echo") is Echo
    assert assay.list_verifiers() == ["echo", "format_only"]
    assert isinstance(Echo(), assay.Verifier)
    assay.register_verifier("echo")(Echo)  # the same one
    with pytest.raises(ValueError, match=r"'echo' is already registered, by .*test_verifiers\.Echo"):
        assay.register_verifier("echo")(type("Other", (Echo,), {}))
    with pytest.raises(ValueError, match=r"Did you mean `format_only`\? Known: native, echo, format_only"):
        assay.get_verifier("format_onyl")


class Loose(BaseModel):
    pass


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("name", "cls", "error", "said"),
    [
        ("native", Echo, ValueError, "cannot be the name"),
        ("in_process", Echo, ValueError, "cannot be the name"),
        ("a/b", Echo, ValueError, "cannot be the name"),
        ("", Echo, ValueError, "cannot be the name"),
        ("other", Echo, ValueError, "Echo.name is 'echo', but the class is registered as 'other'"),
        ("x", lambda: 1, TypeError, "a verifier is a class with a method `verify`"),
        ("x", type("NoVerify", (), {"Config": Config}), TypeError, "a verifier is a class with a method `verify`"),
        ("x", type("NoConfig", (), {"verify": print}), TypeError, "NoConfig.Config must be a pydantic model"),
        ("x", type("LooseConfig", (), {"verify": print, "Config": Loose}), TypeError, 'extra="forbid"'),
    ],
)
def test_misuse_is_found_at_registration(name, cls, error, said):
    with pytest.raises(error, match=said):
        assay.register_verifier(name)(cls)


def test_a_decorator_without_a_name_says_how():
    with pytest.raises(TypeError, match=r"@register_verifier\(\"length_band\"\)"):
        assay.register_verifier(Echo)


# ── specs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "kind: format_onyl\n",
            [
                '$.kind (line 1): unknown kind "format_onyl". Did you mean `format_only`? Known: native, echo, format_only.'
            ],
        ),
        (
            "kind: echo\nparams:\n  lest: 1\n  names: [1]\n",
            [
                "$.params.names[0] (line 4): a number (1): input should be a valid string",
                "$.params.lest (line 3): unknown field `lest`. Did you mean `least`?",
            ],
        ),
        ("kind: echo\nparams: 5\n", ["$.params (line 2): expected an object, got a number (5)."]),
        (
            "kind: echo\nchecks: []\n",
            [
                "$.checks (line 2): unknown field `checks`. Known: id, name, description, version, kind, passThreshold, params, tests."
            ],
        ),
        (
            "kind: native\nparams: {}\n",
            [
                "$.params (line 2): unknown field `params`. Known: id, name, description, version, kind, passThreshold, combine, range, checks, tests.",
                "$ (line 1): a verifier needs `checks`, a list of at least one",
            ],
        ),
        ("kind: 5\n", ["$.kind (line 1): expected a string, got a number (5)."]),
        (
            "verifier:\n  kind: echo\n  params: {x: 1}\n",
            ["$.verifier.params.x (line 3): unknown field `x`. Known: least, names."],
        ),
        ("verifier: [1]\n", ["$.verifier (line 1): expected an object, got a list"]),
        (
            "kind: in_process\n",
            [
                "$.kind (line 1): rows carry verifiers of kind in_process: score them without a spec, or with --verifier-name"
            ],
        ),
    ],
)
def test_problems_of_a_spec_have_their_place(tmp_path, text, problems):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(assay.SpecError) as caught:
        assay.load_verifier(path)
    assert [problem.split(" Write it in quotes")[0] for problem in caught.value.problems] == problems


@pytest.mark.usefixtures("registry")
def test_a_class_that_cannot_be_made_is_told():
    def refuse(self, **_):
        raise RuntimeError("no")

    assay.register_verifier("never")(type("Never", (), {"Config": Config, "verify": print, "__init__": refuse}))
    with pytest.raises(assay.SpecError, match=r"\$\.params: Never cannot be created: RuntimeError: no"):
        assay.load_verifier({"kind": "never"})


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    depth: int = 0


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target_len: int = Field(0, alias="targetLen")
    least: int = Field(0, validation_alias=AliasChoices("min", AliasPath("bounds", 0)))
    one: Inner | None = None
    several: list[Inner] = []
    named: dict[str, Inner] = Field({}, alias="byName")
    pair: tuple[Inner, int] | None = None
    either: Inner | int = 0


class Both(Aliased):
    model_config = ConfigDict(populate_by_name=True)


class ByName(Aliased):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("config", "params", "problems"),
    [
        (Aliased, {"target_len": 1}, ["target_len: unknown field `target_len`. Did you mean `targetLen`?"]),
        (
            Aliased,
            {"lest": 1},
            ["lest: unknown field `lest`. Known: targetLen, min, bounds, one, several, byName, pair, either."],
        ),
        (Both, {"target_leng": 1}, ["target_leng: unknown field `target_leng`. Did you mean `target_len`?"]),
        (ByName, {"targetLen": 1}, ["targetLen: unknown field `targetLen`. Did you mean `target_len`?"]),
        (Aliased, {"one": {"dept": 1}}, ["one.dept: unknown field `dept`. Did you mean `depth`?"]),
        (Aliased, {"several": [{"x": 1}]}, ["several[0].x: unknown field `x`. Known: depth."]),
        (Aliased, {"byName": {"depth": {"x": 1}}}, ["byName.depth.x: unknown field `x`. Known: depth."]),
        (Aliased, {"pair": [{"x": 1}, 1]}, ["pair[0].x: unknown field `x`"]),
        (
            Aliased,
            {"either": {"x": 1}},
            ["either.Inner.x: unknown field `x`", "either.int: an object: input should be a valid integer"],
        ),
    ],
)
def test_an_unknown_field_is_told_the_names_that_the_config_takes(config, params, problems):
    made = type("Aka", (Echo,), {"name": "aka", "Config": config, "__init__": lambda self, **_: None})
    assay.register_verifier("aka")(made)
    with pytest.raises(assay.SpecError) as caught:
        assay.load_verifier({"kind": "aka", "params": params})
    assert list(caught.value.problems) == [f"$.params.{problem}" for problem in problems]


@pytest.mark.usefixtures("registry")
def test_a_config_that_raises_is_a_problem_of_the_spec():
    class Odd(BaseModel):
        model_config = ConfigDict(extra="forbid")

        how: str = ""
        held: Any = None

        @model_validator(mode="before")
        @classmethod
        def look(cls, data):
            raised = {"key": KeyError("how"), "type": TypeError("no"), "exit": SystemExit(3)}
            if data["how"] in raised:
                raise raised[data["how"]]
            if data["how"] == "curt":
                raise PydanticCustomError("x", "")
            held = {"object": object(), "bytes": b"\xff"}
            return {**data, "held": held[data["how"]]}

    assay.register_verifier("odd")(
        type("Held", (Echo,), {"name": "odd", "Config": Odd, "__init__": lambda self, **_: None})
    )
    said = {
        "key": "cannot read the params: KeyError: 'how'",
        "type": "cannot read the params: TypeError: no",
        "exit": "cannot read the params: SystemExit: 3",
        "curt": r"\$\.params: an object: is not valid",
        "object": "cannot be written as JSON: PydanticSerializationError: Unable to serialize unknown type",
        "bytes": "cannot be written as JSON: (PydanticSerialization|UnicodeDecode)Error: ",
    }
    for how, words in said.items():
        with pytest.raises(assay.SpecError, match=words) as caught:
            assay.load_verifier({"kind": "odd", "params": {"how": how}})
        [problem] = caught.value.problems
        assert problem.startswith("$.params: ")


def test_the_canonical_form_has_the_params_written_out():
    verifier = assay.load_verifier({"kind": "format_only", "params": {"has_think_reward": 1}})
    assert json.loads(verifier.canonical) == {
        "id": "verifier",
        "kind": "format_only",
        "name": "verifier",
        "params": {"has_answer_reward": 0.5, "has_think_reward": 1.0},
        "passThreshold": 1.0,
    }
    assert verifier == assay.load_verifier({"verifier": {"kind": "format_only", "params": {"has_think_reward": 1.0}}})
    assert verifier != assay.load_verifier({"kind": "format_only"})
    assert pickle.loads(pickle.dumps(verifier)) == verifier  # noqa: S301  (our own)


# ── scoring ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "reward", "info"),
    [
        (THINKS, 1.0, '{"has_think":true,"has_answer":true}'),
        ("<think></think>", 0.25, '{"has_think":true,"has_answer":false}'),
        ("</answer><answer>", 0.75, '{"has_think":false,"has_answer":true}'),
        ("<THINK></THINK>", 0.0, '{"has_think":false,"has_answer":false}'),
    ],
)
def test_format_only(text, reward, info):
    spec = {"id": "format", "kind": "format_only", "params": {"has_think_reward": 0.25, "has_answer_reward": 0.75}}
    [row] = assay.score([{"completion": text}], spec).to_dicts()
    assert row == {
        "reward": reward,
        "passed": reward == 1.0,
        "feedback": "" if reward == 1.0 else f"format_only: {info}",
        "error": None,
        "info/format": info,
        "score/format": reward,
    }


def test_format_only_conforms():
    params = [
        {},
        {"has_think_reward": 0.1, "has_answer_reward": 0.2},
        {"has_think_reward": -1e308, "has_answer_reward": -1e308},
    ]
    tags = ["<think>", "</think>", "<answer>", "</answer>"]
    rows = [{"completion": "".join(tag for at, tag in enumerate(tags) if mask >> at & 1)} for mask in range(16)]
    assert (
        assert_verifier_conforms("format_only", params=params, rows=rows, cases=(cases := sized(7_000, 1_500)))
        >= 2 * cases
    )


def test_classes_mix_with_native_verifiers():
    native = {"id": "short", "checks": [{"type": "max_length", "value": 40}]}
    shape = {"id": "shape", "kind": "format_only", "passThreshold": 0.5}
    rows = [{"id": at, "completion": text} for at, text in enumerate([THINKS, "<think></think>", "x" * 50, None])]
    scored = assay.score(rows, [native, shape])
    assert scored["reward"].to_list() == [1.0, 0.75, 0.0, None]
    assert scored["passed"].to_list() == [True, True, False, None]
    assert scored["feedback"].to_list() == [
        "",
        'shape/format_only: {"has_think":true,"has_answer":false}',
        'short/max_length: has more than 40 characters\nshape/format_only: {"has_think":false,"has_answer":false}',
        None,
    ]
    assert scored.columns[5:] == ["info/shape", "score/short", "score/shape", "check/short/max_length"]
    alone = assay.score(rows, native)
    assert scored["check/short/max_length"].equals(alone["check/short/max_length"])
    assert assay.score(rows, [native, shape], details=False).columns == ["id", "reward", "passed", "feedback", "error"]
    verifiers_ = [assay.load_verifier(native), assay.load_verifier(shape)]
    assert_plan_conforms(verifiers_, [{"completion": text} for text in hostile_texts(500)])


@pytest.mark.usefixtures("registry")
def test_a_class_gets_prompt_and_target():
    rows = [
        {"completion": "abc", "prompt": "Say it.", "answer": "42", "metadata": {"a": None}, "other": 1},
        {
            "completion": "",
            "prompt": [{"role": "system", "content": "Be."}, {"role": "user", "content": [{"text": "Go."}]}],
        },
    ]
    wanted = [
        {"prompt": "Say it.", "target": {"answer": "42", "metadata": {"a": None}}, "names": ["n"]},
        {"prompt": "Be.\n\nGo.", "target": {}, "names": ["n"]},
    ]
    spec = {"id": "e", "kind": "echo", "params": {"names": ["n"]}}
    for row, info in zip(rows, wanted, strict=True):
        [found] = assay.score([row], spec).to_dicts()
        assert json.loads(found["info/e"]) == info
    targets = [{"completion": "a", "target": value} for value in ({"x": 1}, '{"x": 1}', "x", 5)]
    found = [json.loads(assay.score([row], spec)["info/e"].item())["target"] for row in targets]
    assert found == [{"x": 1}, {"x": 1}, {"target": "x"}, {"target": 5}]
    assert_plan_conforms([assay.load_verifier(spec)], rows[:1])


def test_prompts_and_targets_of_any_shape():
    assert prompt_text(None) == ""
    assert prompt_text(5) == ""
    assert prompt_text([None, {"role": "user"}, "a"]) == "\n\n\n\na"
    assert prompt_text('[{"role": "user", "content": "a"}]') == "a"
    assert prompt_text('[{"user": "a"}]') == '[{"user": "a"}]'
    assert prompt_text("[{") == "[{"
    assert target_of({"target": None, "expected": '{"a": 1', "metadata": "[1]"}) == {
        "expected": '{"a": 1',
        "metadata": "[1]",
    }


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("result", "reward", "error", "info"),
    [
        (assay.VerificationResult(2.5, {"a": 1}), 2.5, None, '{"a":1}'),
        (assay.VerificationResult(-1), -1.0, None, "{}"),
        (assay.VerificationResult(True), 1.0, None, "{}"),
        (
            assay.VerificationResult(0.5, {"é": "\ud800", "n": math.nan, "o": {1}}),
            0.5,
            None,
            '{"é":"\ufffd","n":null,"o":"{1}"}',
        ),
        (assay.VerificationResult(math.nan, {"a": 1}), 0.0, "ValueError: the reward is not a finite number", '{"a":1}'),
        (assay.VerificationResult("1"), 0.0, "ValueError: the reward is not a finite number", "{}"),
        (assay.VerificationResult(1.0, [1]), 0.0, "TypeError: info is list, not a dict", None),
        (1.0, 0.0, "AttributeError: 'float' object has no attribute 'reward'", None),
        (KeyError("x"), 0.0, "KeyError: 'x'", None),
    ],
    ids=repr,
)
def test_what_a_class_returns_or_raises(result, reward, error, info):
    def verify(completion):
        if isinstance(result, Exception):
            raise result
        return result

    given(verify)
    spec = assay.load_verifier({"id": "v", "kind": "given"})
    [row] = assay.score([{"completion": "a"}], spec).to_dicts()
    assert (row["reward"], row["error"], row["info/v"]) == (reward, error and f"given: {error}", info)
    reason = error or ("the reward is below 1" if info == "{}" else info)
    assert row["feedback"] == (f"given: {reason}" if reward < 1 else "")
    assert_plan_conforms([spec], [{"completion": "a"}, {"completion": None}])


class Scalar:
    """Stands for an array without dimensions, or a scalar of an array library: no ``numbers.Real``."""

    ndim = 0

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value

    def __float__(self):
        return float(self.value)


def scalars():
    """The same by numpy, where it is installed."""
    made = [Scalar(True), Scalar(0.25), Scalar("1"), Scalar(math.nan), Scalar(None)]
    try:
        import numpy as np
    except ImportError:
        return made
    return [*made, np.bool_(True), np.array(0.25), np.array("1"), np.float32("nan"), np.array([0.25])]


@pytest.mark.usefixtures("registry")
def test_a_reward_may_be_a_scalar_of_an_array_library():
    made = scalars()
    given(lambda completion: assay.VerificationResult(made[int(completion)]))
    assay.fns.register("given_scalar", lambda output, expected, params: made[int(output)])
    rows = [{"completion": str(at)} for at in range(len(made))]
    try:
        by_class = assay.score(rows, {"kind": "given"})
        by_fn = assay.score(rows, verifier_name="given_scalar")
    finally:
        del functions._REGISTRY["given_scalar"]
    wanted = [1.0, 0.25, 0.0, 0.0, 0.0]
    assert by_class["reward"].to_list() == by_fn["reward"].to_list() == wanted * (len(made) // 5)
    assert by_class["error"].is_null().to_list() == [True, True, False, False, False] * (len(made) // 5)
    assert [is_score(one) for one in made] == [True, True, False, False, False] * (len(made) // 5)
    assert to_reward(Scalar(2)) == (2.0, None)
    assert is_score(Scalar(2)) is False


class Unsaid:
    """It has no str()."""

    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("info", "text"),
    [
        ({"a": {(1, 2): {3: None}}, "b": [{4: (1, "x")}]}, '{"a":{"(1, 2)":{"3":null}},"b":[{"4":[1,"x"]}]}'),
        ({1: "first", "1": "later"}, '{"1":"later"}'),
        ({"a": math.nan, "b": [math.inf, -math.inf, 1.5], "c": True}, '{"a":null,"b":[null,null,1.5],"c":true}'),
        ({"s": {1}, "n": Scalar(2), "f": Scalar(math.nan), "c": 1j}, '{"s":"{1}","n":2,"f":null,"c":"1j"}'),
        ({"a": Unsaid()}, '{"info":"RuntimeError: no"}'),
    ],
)
@pytest.mark.usefixtures("registry")
def test_no_info_costs_a_good_reward(info, text):
    given(lambda _: assay.VerificationResult(0.5, info))
    [row] = assay.score([{"completion": "a"}], {"id": "v", "kind": "given"}).to_dicts()
    assert (row["reward"], row["error"], row["info/v"]) == (0.5, None, text)


@pytest.mark.usefixtures("registry")
def test_info_may_hold_itself_and_scalars_of_numpy():
    np = pytest.importorskip("numpy")
    itself = {}
    itself["itself"] = itself
    infos = [itself, {"n": {np.int64(1): np.float32(0.5)}, "b": np.bool_(True), "a": np.array(3)}]
    given(lambda completion: assay.VerificationResult(1.0, infos[int(completion)]))
    out = assay.score([{"completion": "0"}, {"completion": "1"}], {"id": "v", "kind": "given"})
    assert out["reward"].to_list() == [1.0, 1.0]
    assert json.loads(out["info/v"][0])["info"].startswith("RecursionError")
    assert out["info/v"][1] == '{"n":{"1":0.5},"b":true,"a":3}'


@pytest.mark.usefixtures("registry")
def test_two_instances_of_one_class_keep_their_params():
    band = [{"id": f"b{n}", "kind": "echo", "params": {"least": n, "names": [str(n)]}} for n in (1, 2)]
    scored = assay.score([{"completion": "abc"}], band)
    assert [json.loads(scored[f"info/b{n}"].item())["names"] for n in (1, 2)] == [["1"], ["2"]]


@pytest.mark.usefixtures("registry")
def test_a_twin_that_disagrees_or_cannot_run_is_found():
    class Wrong(Echo):
        name = "wrong"

        def verify(self, *, prompt, completion, target):
            return assay.VerificationResult(1.0)

        def verify_expr(self, *, prompt, completion):
            return pl.struct(reward=completion.str.len_chars() > 3, info=pl.struct(a=1))

    class Broken(Wrong):
        name = "broken"

        def verify_expr(self, *, prompt, completion):
            return pl.struct(reward=completion.str.nothing())

    assay.register_verifier("wrong")(Wrong)
    assay.register_verifier("broken")(Broken)
    with pytest.raises(AssertionError, match="differ"):
        assert_verifier_conforms("wrong", cases=20)
    with pytest.raises(assay.SpecError, match="verifier/broken: the expression of"):
        assay.score([{"completion": "a"}], {"kind": "broken"})


def twinned(twin, name="twinned"):
    """Register a class whose twin is a function of the completion."""

    class Twinned(Echo):
        def verify(self, *, prompt, completion, target):
            return assay.VerificationResult(1.0)

        def verify_expr(self, *, prompt, completion):
            return twin(completion)

    Twinned.name = name
    return assay.register_verifier(name)(Twinned)


def no_zero(text):
    if text == "0":
        raise SystemExit(3)
    return 1 / int(text)


INFO = pl.struct(a=pl.lit(1))


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (
            lambda text: text.map_elements(lambda _: 1 / 0, return_dtype=pl.Float64),
            "ZeroDivisionError: division by zero",
        ),
        (lambda text: text.map_elements(no_zero, return_dtype=pl.Float64), "SystemExit: 3"),
        # with one thread the engine gives it the null row too, as an empty text
        (lambda text: text.str.to_integer(base=2), "ComputeError: strict integer parsing failed for [12] value"),
        (
            lambda text: text.map_batches(lambda _: pl.Series(["x"] * 3), return_dtype=pl.Float64),
            "(InvalidOperation|Schema)Error",
        ),
        (lambda text: text.cast(pl.Float64).head(2), "(Shape|InvalidOperation|Compute)Error"),
    ],
)
def test_a_twin_that_raises_scores_zero_and_says_so_and_never_ends_a_run(reward, said):
    twinned(lambda text: pl.struct(reward=reward(text), info=INFO))
    spec = {"id": "t", "kind": "twinned"}
    rows = pl.DataFrame({"completion": ["0", "2", "0", None]})
    plan = assay.compile(spec, rows)
    out = plan.lazy(rows.lazy()).collect(engine="in-memory")
    told = rf"^twinned: the twin of twinned\.<locals>\.Twinned cannot run: {said}"
    assert out["reward"].to_list() == [0.0, 0.0, 0.0, None]
    assert out["info/t"].null_count() == 4
    assert out["error"].str.contains(told).to_list() == [True, True, True, False]
    assert out["feedback"].to_list() == [*out["error"][:3], None]
    assert plan.lazy(rows.lazy()).collect(engine="streaming").height == 4  # its batches are as the engine likes
    with pytest.raises(AssertionError, match="differ"):
        assert_verifier_conforms("twinned", cases=5)


@pytest.mark.usefixtures("registry")
def test_a_twin_may_be_a_literal_or_leave_info_null_and_gets_no_null():
    twinned(lambda _: pl.struct(reward=pl.lit(True), info=INFO), "fixed")
    twinned(
        lambda text: pl.struct(
            reward=text.map_elements(len, return_dtype=pl.Int64, skip_nulls=False), info=pl.when(False).then(INFO)
        ),
        "long",
    )
    twinned(lambda text: pl.struct(reward=pl.fold(0, lambda a, b: a + b, [text.str.len_chars()]), info=INFO), "folded")
    rows = [{"completion": text} for text in ("a", "", None)]
    out = assay.score(rows, [{"id": kind, "kind": kind} for kind in ("fixed", "long", "folded")])
    assert out["score/folded"].to_list() == [1.0, 0.0, None]
    assert out["score/fixed"].to_list() == [1.0, 1.0, None]
    assert out["info/fixed"].to_list() == ['{"a":1}', '{"a":1}', None]
    assert out["score/long"].to_list() == [1.0, 0.0, None]
    assert out["info/long"].to_list() == ["{}", "{}", None]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("twin", "said"),
    [
        (
            lambda text: pl.struct(reward=text.str.len_chars()),
            "TypeError: it gives Struct({'reward': UInt32}), not a struct of",
        ),
        (
            lambda text: pl.struct(reward=text.str.len_chars(), info=text),
            "not a struct of `reward`, a number, and `info`, a struct",
        ),
        (lambda text: pl.struct(reward=text, info=INFO), "not a struct of"),
        (lambda text: text.str.len_chars(), "TypeError: it gives UInt32, not a struct of"),
        (lambda text: 5, "TypeError: it gives Int32, not a struct of"),
        (lambda text: pl.struct(reward=pl.col("nowhere"), info=INFO), "ColumnNotFoundError"),
        (
            lambda text: pl.struct(reward=text.rank(), info=INFO),
            "TypeError: what it says of a row depends on other rows",
        ),
        (lambda text: pl.struct(reward=pl.len(), info=INFO), "TypeError: what it says of a row depends on other rows"),
        (no_zero, "TypeError"),
    ],
)
def test_a_twin_of_the_wrong_type_is_refused_before_a_row_is_read(twin, said):
    twinned(twin)
    with pytest.raises(assay.SpecError) as caught:
        assay.compile({"kind": "twinned"})
    assert "verifier/twinned: the expression of Twinned cannot run: " in caught.value.fact
    assert said in caught.value.fact
    assert "assay.testing.assert_verifier_conforms" in caught.value.hint


@pytest.mark.usefixtures("registry")
def test_the_file_says_which_class_made_it(tmp_path):
    specs = [{"id": "a", "kind": "echo"}, {"id": "b", "kind": "format_only"}]
    assay.score_file([{"completion": "a"}], specs, tmp_path / "out.parquet")
    echo, shape = assay.read_provenance(tmp_path / "out.parquet")["verifiers"]
    assert (echo["kind"], echo["code"][0]["qualname"], len(echo["code"][0]["sha256"])) == ("echo", "Echo", 64)
    assert (shape["kind"], shape["code"]) == ("format_only", [])


def test_the_row_loop_and_the_columns_agree_on_the_order_of_columns():
    spec = assay.load_verifier({"kind": "format_only"})
    [row] = score_rows([{"completion": THINKS}], [spec])
    assert [*row] == assay.score([{"completion": THINKS}], spec).columns
