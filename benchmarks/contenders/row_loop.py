"""The loop over the ``row()`` faces: the definition, and what people write today."""

from assay import load_verifier
from assay.scoring.reference import score_rows


def prepare(spec, frame):
    return [load_verifier(spec)], frame.to_dicts()


def run(prepared, frame):
    del frame
    verifiers, rows = prepared
    scored = score_rows(rows, verifiers)
    return {name: [row[name] for row in scored] for name in scored[0] if name in {"reward", "feedback"} or "/" in name}
