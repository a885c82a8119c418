"""IFEval of lm-evaluation-harness, in the loop that its task makes over documents: the share of instructions followed, loosely."""

import importlib.machinery
import json
import logging
import os
import sys
import types
from pathlib import Path


def prepare(spec, frame):
    os.environ["LOCAL_RANK"] = "1"  # else it downloads data when it is imported
    import lm_eval

    # the package of the tasks imports what evaluates models; the task itself needs none of it
    tasks = types.ModuleType("lm_eval.tasks")
    tasks.__path__ = [str(Path(lm_eval.__file__).parent / "tasks")]
    tasks.__spec__ = importlib.machinery.ModuleSpec("lm_eval.tasks", None, is_package=True)
    sys.modules["lm_eval.tasks"] = tasks
    from lm_eval.tasks.ifeval import utils

    logging.disable(logging.CRITICAL)
    mode = json.loads(Path(spec).read_text("utf-8"))["checks"][0]["mode"]
    judge = getattr(utils, f"test_instruction_following_{mode}")
    examples = [
        (utils.InputExample(at, row["instruction_id_list"], row["prompt"], row["kwargs"]), row["completion"])
        for at, row in enumerate(frame.to_dicts())
    ]
    return judge, examples


def run(prepared, frame):
    del frame
    judge, examples = prepared
    followed = [judge(example, text).follow_instruction_list for example, text in examples]
    return {"reward": [sum(one) / len(one) for one in followed]}
