"""The plain loop over ``assay.fns`` with golds that are parsed: what a trainer does with the verifier of each row."""

import json

from assay import fns


def prepare(spec, frame):
    del spec
    asked = [json.loads(one) if isinstance(one, str) else one for one in frame["verifier"].to_list()]
    return [
        (completion, one["fn_name"], one["expected"], one.get("params") or {})
        for completion, one in zip(frame["completion"].to_list(), asked, strict=True)
    ]


def run(prepared, frame):
    del frame
    return {"reward": [float(fns.get(name)(completion, gold, params)) for completion, name, gold, params in prepared]}
