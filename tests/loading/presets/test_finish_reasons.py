"""How the rollouts of other tools ended: the column ``finish_reason`` that a preset gives with ``outcome``, and only then."""

import copy
import json

import polars as pl
import pytest
from cases import LONG, each
from samples import RECORDS, jsonl, parquet

import assay
from assay.loading.presets.preset import presets

WRITERS = {"jsonl": jsonl, "parquet": parquet}
SPEC = {"id": "v", "checks": [{"id": "four", "type": "contains", "value": "4"}]}


def put(record, path, value):
    """Set a value at a path of keys and places in a record."""
    *steps, last = path
    for step in steps:
        record = record[step]
    record[last] = value


# of each preset where its tool says why a rollout ended, in two ways: of a limit, and of another reason
ENDS = {
    "nemo-gym": (["response", "incomplete_details"], {"reason": "max_output_tokens"}, {"reason": "content_filter"}),
    "nemo-gym-verify": (["response", "incomplete_details"], {"reason": "max_output_tokens"}, {"reason": "content_filter"}),
    "openai-responses": (["incomplete_details"], {"reason": "max_output_tokens"}, {"reason": "content_filter"}),
    "promptfoo": (["response", "finishReason"], "length", "stop"),
    "verifiers": (["traces", 0, "calls"], [{"finish_reason": "stop"}, {"finish_reason": "length"}], [{"finish_reason": "length"}, {"finish_reason": "stop"}]),
    "openai-batch": (["response", "body", "choices", 0, "finish_reason"], "length", "stop"),
    "openai-chat": (["choices", 0, "finish_reason"], "length", "stop"),
    "skyrl": (["stop_reason"], "length", "stop"),
    "verifiers-v0": (["is_truncated"], True, False),
}  # fmt: skip


def test_every_preset_that_reads_an_end_has_a_case():
    reading = {preset.name for preset in presets() if preset.finish_reason or "finish_reason" in preset.fields}
    assert reading <= {*ENDS}


@each(
    "name,kind", [(name, kind) for at, name in enumerate(ENDS) for kind in (WRITERS if LONG else [[*WRITERS][at % 2]])]
)
def test_a_rollout_is_cut_off_where_its_tool_says_so(tmp_path, name, kind):
    path, limit, other = ENDS[name]
    first = copy.deepcopy(RECORDS[name][0])
    records = [copy.deepcopy(first) for _ in range(3)]
    for record, value in zip(records, (limit, other, limit), strict=True):
        put(record, path, value)
    source = WRITERS[kind](tmp_path / f"{name}.{kind}", records)
    spec = {"id": "v", "checks": [{"id": "never", "type": "contains", "value": "\u2603"}]}
    plain, frame = assay.score(source, spec), assay.score(source, spec, outcome=True)
    firsts = frame.filter(sample_idx=0) if "sample_idx" in frame.columns else frame
    assert firsts["cut_off"].to_list() == [True, False, True]
    assert firsts["outcome"].to_list() == ["truncated", "fail", "truncated"]
    cut = int(frame["cut_off"].sum())
    added = {"cut_off", "outcome", *(["finish_reason"] if "finish_reason" not in plain.columns else [])}
    assert {*frame.columns} - {*plain.columns} <= added
    assert frame.select(plain.columns).equals(plain)
    # a limit counts the same without any such column, and what is written is what was written before
    out, gated = tmp_path / f"{name}.{kind}.out.parquet", tmp_path / f"{name}.{kind}.gated.parquet"
    made = assay.score_file(source, spec, out)
    counted = assay.score_file(source, spec, gated, max_truncated=0, lenient=True)
    assert (counted.root, counted.gates[0].value, counted.gates[0].met) == (made.root, cut, False)
    assert pl.read_parquet_schema(gated) == pl.read_parquet_schema(out)


def test_a_column_that_the_user_names_wins(tmp_path):
    record = copy.deepcopy(RECORDS["promptfoo"][0]) | {"why": "max_tokens"}
    record["response"]["finishReason"] = "stop"
    source = jsonl(tmp_path / "in.jsonl", [record])
    assert assay.score(source, SPEC, outcome=True)["cut_off"].to_list() == [False]
    mapping = {"finish_reason": "$.why"}
    assert assay.score(source, SPEC, outcome=True, mapping=mapping)["cut_off"].to_list() == [True]
    assert assay.score_file(source, SPEC, max_truncated="50%", mapping=mapping).outcomes["pass"] == 1


def test_a_preset_of_ones_own_says_where_it_is(tmp_path):
    (tmp_path / "own.json").write_text(
        json.dumps(
            {
                "name": "own",
                "title": "ours",
                "signature": {"required": {"said": "text"}},
                "fields": {"completion": "said"},
                "finish_reason": "meta.why",
            }
        )
    )
    source = jsonl(tmp_path / "in.jsonl", [{"said": "no", "meta": {"why": why}} for why in ("length", "stop", None)])
    summary = assay.score_file(source, SPEC, tmp_path / "out.parquet", preset=tmp_path / "own.json", outcome=True)
    assert summary.as_json()["outcomes"] == dict.fromkeys(("pass", "not_found", "error", "unscored"), 0) | {"fail": 2, "truncated": 1}  # fmt: skip
    assert pl.read_parquet(tmp_path / "out.parquet")["finish_reason"].to_list() == ["length", "stop", None]
    assert assay.verify(tmp_path / "out.parquet").intact
    settings = [assay.read_provenance(tmp_path / "out.parquet")["settings"]]
    assay.score_file(source, SPEC, tmp_path / "plain.parquet", preset=tmp_path / "own.json")
    settings.append(assay.read_provenance(tmp_path / "plain.parquet")["settings"])
    assert ["finish_reason" in one["preset"] for one in settings] == [True, False]


@pytest.mark.parametrize("option", ["max_truncated", "max_not_found"])
def test_a_column_of_a_reserved_name_is_still_refused(tmp_path, option):
    source = jsonl(tmp_path / "in.jsonl", [{"completion": "4", "__assay/finish_reason": "length"}])
    with pytest.raises(assay.InputError, match="reserved"):
        assay.score_file(source, SPEC, **{option: 3})
