"""The ``verify`` of a resources server of NeMo-Gym, which gets one response of the model for each request.

Read from nemo-gym 0.4.0: ``base_resources_server.py``.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pydantic import BaseModel

from assay.adapters.golds import Unscored, number_of, with_gold
from assay.scoring.batching import Batcher, Verifiers
from assay.values.plain import plain


class Request(BaseModel, extra="allow"):
    """What NeMo-Gym posts to ``/verify``: a task with its fields, and the model's response.

    NOTE: FastAPI reads the body of a request by its type; one of ``Any`` would be a parameter of the address.
    """

    responses_create_params: dict[str, Any]
    response: dict[str, Any]


def nemo_gym(
    spec: Verifiers, *, gold: str = "expected_answer", unscored: Unscored = "raise", strict: bool = True
) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """Return ``verify(self, body)`` for a class of server; requests at the same time are scored together.

    Args:
        spec: Verifiers, a rubric, or a plan.
        gold: The field of a request with the gold; checks read it as ``answer``, and the other fields by their names.
        unscored: The reward of a response that cannot be scored; by default that is an error, a status of 500.
        strict: As of ``assay.compile``.

    Returns:
        A function whose result is the request with ``reward`` and ``reward_components``, the score of each check that ran.

    Raises:
        SpecError: A verifier cannot be used.
    """
    batcher = Batcher(spec, strict=strict)

    async def verify(self: Any, body: Request) -> dict[str, Any]:
        del self
        fields = plain(body)
        row = {name: value for name, value in fields.items() if name not in ("response", "responses_create_params")}
        row["completion"] = _text(fields.get("response") or {})
        result = await batcher.score(with_gold(row, gold) if gold in row else row)
        components = {name: value for name, value in result.items() if name.startswith("check/") and value is not None}
        return {**fields, "reward": number_of(result, unscored), "reward_components": components}

    return verify


def _text(response: Mapping[str, Any]) -> str | None:
    outputs = [output for output in response.get("output") or () if output.get("type", "message") == "message"]
    if not outputs:
        return None
    content = outputs[-1].get("content")
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content or ())
