"""The loop over the ``row()`` faces: the definition, and what people write today."""

from assay.scoring.reference import score_rows


def prepare(verifiers, frame):
    return verifiers, frame.to_dicts()


def run(prepared, frame):
    del frame
    verifiers, rows = prepared
    return {"reward": [row["reward"] for row in score_rows(rows, verifiers)]}
