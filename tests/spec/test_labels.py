"""What a spec says for people: names and descriptions of checks, its version. They are kept and shown, and decide nothing."""

import json

import polars as pl
import pytest
from jsonschema import Draft7Validator

import assay
from assay.insight.explanation import explanation
from assay.spec.canonical import fingerprint, spec_of

PLAIN = {
    "id": "refund",
    "checks": [
        {"type": "contains", "value": "refund"},
        {"type": "any_of", "checks": [{"type": "regex", "pattern": "a"}]},
    ],
}
LABELLED = {
    "id": "refund",
    "version": 2,
    "description": "Follows the policy.",
    "checks": [
        {"type": "contains", "value": "refund", "name": "Refund", "description": "offers\na refund"},
        {"type": "any_of", "name": "Any", "checks": [{"type": "regex", "pattern": "a", "description": "an a"}]},
    ],
}
ROWS = [{"completion": "a refund"}, {"completion": "no"}]


@pytest.fixture
def result(tmp_path):
    rollouts, out = tmp_path / "rollouts.jsonl", tmp_path / "out.parquet"
    rollouts.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assay.score_file(rollouts, LABELLED, out)
    return out


def test_labels_are_kept_in_the_canonical_form():
    verifier = assay.load_verifier(LABELLED)
    form = json.loads(verifier.canonical)
    assert (
        (form["version"], form["description"])
        == (verifier.version, verifier.description)
        == ("2", "Follows the policy.")
    )
    assert (form["checks"][0]["name"], form["checks"][0]["description"]) == ("Refund", "offers\na refund")
    assert [check.name for check in verifier.nodes] == ["Refund", "Any", ""]
    assert assay.load_verifier(spec_of(form)) == verifier
    assert Draft7Validator(assay.json_schema()).is_valid(LABELLED)


def test_labels_decide_nothing():
    labelled, plain = (json.loads(assay.load_verifier(spec).canonical) for spec in (LABELLED, PLAIN))
    assert [*map(fingerprint, labelled["checks"])] == [*map(fingerprint, plain["checks"])]
    assert assay.score(ROWS, LABELLED).equals(assay.score(ROWS, PLAIN))
    assert not {"name", "description", "version"} & {*plain, *plain["checks"][0]} - {"name"}


def test_labels_are_shown(result):
    entry, *_ = explanation(assay.load_verifier(LABELLED))
    assert (entry["name"], entry["description"]) == ("Refund", "offers\na refund")
    card, *_ = assay.show(result).cards
    assert [verdict.title for verdict in card.checks] == ["Refund: offers a refund", "Any", "an a"]
    report = assay.report(result)
    assert [check["title"] for check in report.checks] == ["Refund: offers a refund", "Any", "an a"]
    assert "Refund: offers a refund" in report.markdown()
    assert "Refund: offers a refund" in report.html()
    assert report.markdown().startswith("# refund 2\n")


class Named(assay.Check):
    """A check with a param that is called as a label."""

    type = "named"

    class Params(assay.Params):
        name: str

    def row(self, row):
        return float(self.params.name in row["completion"])

    def expr(self):
        return assay.text().str.contains(self.params.name, literal=True)


def test_a_param_of_that_name_is_the_param():
    verifier = assay.load_verifier({"checks": [{"type": "named", "name": "refund"}]}, checks=[Named])
    assert verifier.checks[0].name == ""
    assert assay.score(pl.DataFrame(ROWS), verifier)["reward"].to_list() == [1.0, 0.0]
    nested = {"type": "named", "name": "label", "params": {"name": "refund"}}
    verifier = assay.load_verifier({"checks": [nested]}, checks=[Named])
    assert (verifier.checks[0].name, verifier.checks[0].params) == ("label", {"name": "refund"})


def test_labels_are_text():
    for slip in [{"version": True}, {"checks": [{"type": "contains", "value": "a", "name": 3}]}]:
        with pytest.raises(assay.SpecError, match="expected a string"):
            assay.load_verifier(PLAIN | slip)
