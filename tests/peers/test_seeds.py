"""The code samples of the documents that asked for functions and classes, run as written but for the import names.

The documents came without their indentation; here it is restored, and where they are at hand every line is compared with them.
"""

import json
import re

import pytest
import yaml
from cases import ROOT

import assay
from assay.classes import registry as verifiers
from assay.functions import registry as functions
from assay.verifiers import fns

SEEDS = ROOT.parent / "shared" / "seeds"

FUNCTION = """\
from evsys_sdk.verifiers.fns import register_fn

@register_fn("startswith")
def startswith(model_output: str, expected, params: dict) -> float:
    a = model_output or ""
    b = str(expected or "")
    if params.get("ignore_case"):
        a, b = a.lower(), b.lower()
    return 1.0 if b and a.startswith(b) else 0.0
"""
ROW = """\
- task_id: q0
  instruction: "What is 2 + 2? Put the answer in <answer></answer>."
  verifier:
    kind: in_process                # which verifier CLASS (RL supports only this today)
    fn_name: contains               # which scoring FUNCTION in the verifier-fn registry
    expected: "<answer>4</answer>"  # the gold value, carried per-row
    params: { ignore_case: true }
"""
GOLD = """\
verifier:
  kind: in_process
  fn_name: exact_match
  expected: "42"
  params: {ignore_case: true}
"""
NAMED = 'verifier: {kind: in_process, fn_name: startswith, expected: "Answer:", params: {ignore_case: true}}'
FORMAT = """\
verifier:
  kind: format_only
  params:
    has_think_reward: 0.5
    has_answer_reward: 0.5
"""
CLASS = """\
from typing import Any, ClassVar
from pydantic import BaseModel, ConfigDict
from evsys_sdk.protocols import VerificationResult
from evsys_sdk.registry import register_verifier

class LengthConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")
    target_len: int = 100  # ideal completion length in chars
    tolerance: int = 20

@register_verifier("length_band")  # registry key == YAML kind
class LengthBandVerifier:
    name: ClassVar[str] = "length_band"
    Config: ClassVar[type] = LengthConfig

    def __init__(self, *, target_len: int = 100, tolerance: int = 20) -> None:
        self.target_len = target_len
        self.tolerance = tolerance

    # Keyword-only args, exactly as the protocol declares.
    def verify(
        self, *, prompt: str, completion: str, target: dict[str, Any]
    ) -> VerificationResult:
        off = abs(len(completion) - self.target_len)
        reward = 1.0 if off <= self.tolerance else 0.0
        return VerificationResult(reward=reward, info={"chars_off": off})
"""
BAND = """\
verifier:
  kind: length_band
  params: {target_len: 120, tolerance: 30}
"""


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    monkeypatch.setattr(functions, "_REGISTRY", dict(functions._REGISTRY))
    monkeypatch.setattr(verifiers, "_REGISTRY", dict(verifiers._REGISTRY))


def run(code):
    """Execute a sample of the documents, with another name for the package."""
    space = {"__name__": "sample"}
    exec(code.replace("from evsys_sdk.", "from assay."), space)  # noqa: S102  (the documents' own code is what is tested)
    return space


def plain(text):
    """Lines without indentation, blank ones and the space before comments."""
    return [re.sub(r" +#", " #", line.strip()) for line in text.splitlines() if line.strip()]


@pytest.mark.skipif(not SEEDS.exists(), reason=f"the documents are not there: {SEEDS}")
@pytest.mark.parametrize(
    "sample", [FUNCTION, ROW, GOLD, NAMED, FORMAT, CLASS, BAND], ids=lambda text: text.split("\n")[0]
)
def test_the_samples_are_the_documents_own(sample):
    document = "\n".join(plain((SEEDS / "verifiers-on-the-row.txt").read_text("utf-8")))
    assert "\n".join(plain(sample)) in document


def test_a_function_is_registered_and_rows_name_it():
    startswith = run(FUNCTION)["startswith"]
    assert fns.get("startswith") is startswith
    rows = [{"completion": said, **yaml.safe_load(NAMED)} for said in ("answer: 4", "four")]
    assert assay.score(rows)["reward"].to_list() == [1.0, 0.0]
    rows = [{"completion": "Answer: 4", "expected": "Answer:"}]
    assert assay.score(rows, verifier_name="startswith")["verifier_fn"].to_list() == ["startswith"]
    assert (
        startswith("Answer: 4", "Answer:", {}) == assay.score(rows, verifier_name="startswith")["reward"].item() == 1.0
    )


def test_a_task_names_its_function_and_brings_its_gold(tmp_path):
    tasks = tmp_path / "tasks.yaml"
    tasks.write_text(ROW)
    rollouts = [{"task_id": "q0", "completion": said} for said in ("so <Answer>4</answer>", "4")]
    scored = assay.score(rollouts, tasks=tasks)
    assert scored["reward"].to_list() == [1.0, 0.0]
    assert scored["verifier_fn"].to_list() == ["contains", "contains"]
    assert assay.score([{"completion": " 42\n", **yaml.safe_load(GOLD)}])["reward"].to_list() == [1.0]


def test_a_class_is_registered_and_a_spec_names_it(tmp_path):
    run(CLASS)
    assert "length_band" in assay.list_verifiers()
    spec = tmp_path / "band.yaml"
    spec.write_text(BAND)
    scored = assay.score([{"completion": "x" * n} for n in (89, 90, 150, 151)], spec)
    assert scored["reward"].to_list() == [0.0, 1.0, 1.0, 0.0]
    assert [json.loads(info)["chars_off"] for info in scored["info/band"]] == [31, 30, 30, 31]


def test_the_built_in_class_is_named_by_a_spec(tmp_path):
    spec = tmp_path / "format.yaml"
    spec.write_text(FORMAT)
    scored = assay.score([{"completion": "<think>a</think>"}], spec)
    assert scored["reward"].to_list() == [0.5]
    assert scored["info/format"].to_list() == ['{"has_think":true,"has_answer":false}']
