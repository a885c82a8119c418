"""The models around rollouts: fields of the document, two names for ids, nothing lost."""

import pytest
from cases import each
from pydantic import ValidationError

from assay.types import GenerateInputs, GenerateMetadata, GenerateOutputs, ProcessedOutputs, RolloutScore, RolloutScores

FIELDS = {
    GenerateInputs: ["prompt", "answer", "info", "task", "completion", "id"],
    GenerateOutputs: [
        *("prompt", "completion", "answer", "state", "info", "task", "id", "reward", "metrics", "metadata")
    ],
    RolloutScore: ["reward", "metrics"],
    RolloutScores: ["reward", "metrics"],
    ProcessedOutputs: [
        *("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "completion_logprobs", "rewards")
    ],
}
OUTPUTS = {
    "prompt": ["a"], "completion": [[{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]],
    "answer": ["1"], "state": [{"turn": 1}], "info": [{"x": {"y": [1, None]}}], "task": ["t"], "reward": [None],
    "metadata": GenerateMetadata(model="m"),
}  # fmt: skip


@each("model", FIELDS, ids=lambda model: model.__name__)
def test_fields_are_those_of_the_document(model):
    assert list(model.model_fields) == FIELDS[model]


@each("name", ["id", "example_id"])
def test_ids_are_read_and_to_be_had_by_both_names(name):
    for model, rest in ((GenerateInputs, {"prompt": ["a"]}), (GenerateOutputs, OUTPUTS)):
        found = model(**rest, **{name: [7]})
        assert (found.id, found.example_id) == ([7], [7])
        found.example_id = [8]
        assert (found.id, found.example_id) == ([8], [8])
        assert model(**found.model_dump()) == found


def test_ids_that_differ_are_refused():
    assert GenerateInputs(prompt=["a"], id=[1], example_id=[1]).id == [1]
    with pytest.raises(ValidationError, match="two names of the same list"):
        GenerateInputs(prompt=["a"], id=[1], example_id=[2])


def test_ids_may_be_absent_from_inputs_and_not_from_outputs():
    assert GenerateInputs(prompt=["a"], example_id=None).id is None
    with pytest.raises(ValidationError, match="id"):
        GenerateOutputs(**OUTPUTS)


def test_nothing_of_messages_states_and_info_is_lost():
    outputs = GenerateOutputs(**OUTPUTS, id=[1])
    assert {name: getattr(outputs, name) for name in OUTPUTS} == OUTPUTS
