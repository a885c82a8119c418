"""The tables of docs/from-other-tools.md: what stands there for what another tool has."""

import re

from cases import ROOT

from assay.system.documents import parse_text

TEXT = (ROOT / "docs" / "from-other-tools.md").read_text("utf-8")
NO_CHECK = "–"


def _cells(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _rows():
    """What is there, the check here, and the note, of each row."""
    for section in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for line in section.splitlines():
            if line.startswith("| ") and not line.startswith(("| there", "|---")):
                there, here, note = _cells(line)
                yield f"{title}: {there}", here, note


ROWS = {there: (here, note) for there, here, note in _rows()}
CHECKS = {
    there: parse_text(here.strip("`"), ".yaml", there).data for there, (here, _) in ROWS.items() if here != NO_CHECK
}


def verifier_of(there):
    """The verifier of a row: itself, or of the one check that stands there."""
    check = CHECKS[there]
    return check if "checks" in check and "combine" in check else {"checks": [check]}
