"""A resources server of NeMo-Gym, asked over HTTP as its agents ask it."""

import json
from unittest.mock import MagicMock

import pytest
from real_packages import MOST_GLUE, glue_of

import assay

pytest.importorskip("nemo_gym", reason="pip install nemo-gym==0.4.0, on Python 3.12")

pytestmark = pytest.mark.filterwarnings("ignore")  # nemo-gym, ray and wandb have many

SPEC = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "number", "value": {"column": "answer"}, "weight": 3},
        {"id": "short", "type": "max_length", "value": 20},
    ],
}


def client_of(spec=SPEC, base="SimpleResourcesServer", **options):
    from fastapi.testclient import TestClient
    from nemo_gym import base_resources_server
    from nemo_gym.server_utils import ServerClient

    server = type(
        "Server", (getattr(base_resources_server, base),), {"verify": assay.adapters.nemo_gym(spec, **options)}
    )
    config = base_resources_server.BaseResourcesServerConfig(host="127.0.0.1", port=8080, entrypoint="", name="quiz")
    app = server(config=config, server_client=MagicMock(spec=ServerClient)).setup_webserver()
    return TestClient(app, raise_server_exceptions=False)


def posted(text, **fields):
    """A request as an agent makes it of the package's own models."""
    from nemo_gym.base_resources_server import BaseVerifyRequest

    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    response = {
        "id": "r",
        "created_at": 1.0,
        "model": "m",
        "object": "response",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    request = BaseVerifyRequest.model_validate(
        {"responses_create_params": {"input": [{"role": "user", "content": "2 + 2?"}]}, "response": response}
    )
    return request.model_dump(mode="json") | fields


@pytest.mark.parametrize("base", ["SimpleResourcesServer", "MCPResourcesServer"])
def test_a_request_is_answered_with_its_reward(base):
    from nemo_gym.base_resources_server import BaseVerifyResponse

    client = client_of(base=base)
    request = posted("It is 4.", expected_answer="4", verifier_metadata={"level": 1})
    reply = client.post("/verify", json=request)
    assert reply.status_code == 200, reply.text
    body = reply.json()
    assert BaseVerifyResponse.model_validate(body).reward == 1.0
    assert body == request | {"reward": 1.0, "reward_components": {"check/math/right": 1.0, "check/math/short": 1.0}}
    assert client.post("/verify", json=posted("It is 5.", expected_answer="4")).json()["reward"] == 0.25


def test_the_servers_own_metrics_are_made_of_its_replies():
    client = client_of()
    replies = [client.post("/verify", json=posted(text, expected_answer="4")).json() for text in ("4", "5")]
    rows = [reply | {"_ng_task_index": 0, "_ng_rollout_index": at} for at, reply in enumerate(replies)]
    metrics = client.post("/aggregate_metrics", json={"verify_responses": rows}).json()
    assert metrics["agent_metrics"]["mean/reward"] == 0.625


def test_an_unscored_response_is_an_error_or_gets_the_number():
    request = posted("4", expected_answer=None)
    assert client_of().post("/verify", json=request).status_code == 500
    assert client_of(unscored=-1.0).post("/verify", json=request).json()["reward"] == -1.0
    assert client_of().post("/verify", json={"response": "4"}).status_code == 422


def test_the_page_is_the_glue_of_a_server(tmp_path, monkeypatch):
    assert len(glue_of("nemo.md", "app.py")) <= MOST_GLUE
    (tmp_path / "spec.yaml").write_text(json.dumps(SPEC), "utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(glue_of("nemo.md", "app.py")), names := {})  # noqa: S102  (our own page)
    assert not names["Server"].__abstractmethods__
