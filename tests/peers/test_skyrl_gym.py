"""skyrl-gym makes and steps an environment whose rewards are Assay's."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import assay

skyrl_gym = pytest.importorskip("skyrl_gym", reason="pip install skyrl-gym==0.4.0")

SPEC = {"id": "math", "checks": [{"id": "right", "type": "contains", "value": {"column": "answer"}}]}


def test_an_environment_is_registered_made_and_stepped():
    skyrl_gym.register("assay", entry_point=assay.adapters.skyrl(SPEC, unscored=0.0))

    def episode(at):
        extras = {"reward_spec": {"method": "rule", "ground_truth": None if at == 7 else at}, "data_source": "numbers"}
        environment = skyrl_gym.make("assay", env_config={}, extras=extras)
        prompt = [{"role": "user", "content": "?"}]
        assert environment.init(prompt) == (prompt, {})
        step = environment.step("it is 4 or 5")
        metrics = environment.get_metrics()
        environment.close()
        return step, metrics

    with ThreadPoolExecutor(8) as threads:
        steps = [*threads.map(episode, range(8))]
    assert [step["reward"] for step, _ in steps] == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert all(step["done"] and step["observations"] == [] for step, _ in steps)
    assert steps[3][0]["metadata"]["feedback"] == 'right: does not contain "3"'
    assert steps[7][0]["metadata"]["error"] == "gold is missing: answer"
    assert [metrics for _, metrics in steps[4:8:3]] == [{"check/math/right": 1.0}, {}]
