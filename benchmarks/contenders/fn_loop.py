"""The plain loop over ``assay.fns`` with golds that are parsed: what a trainer does with the verifier of each row."""

import json

from assay import fns


def prepare(spec, frame):
    del spec
    asked = [json.loads(entry) if isinstance(entry, str) else entry for entry in frame["verifier"].to_list()]
    return [
        (completion, entry["fn_name"], entry["expected"], entry.get("params") or {})
        for completion, entry in zip(frame["completion"].to_list(), asked, strict=True)
    ]


def run(prepared, frame):
    del frame
    return {"reward": [float(fns.get(name)(completion, gold, params)) for completion, name, gold, params in prepared]}
