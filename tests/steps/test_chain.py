"""Chains: shared lanes, which step found nothing, `notFound: keep`, and plain data."""

import pickle

import polars as pl
import pytest
from step_cases import TEXT, assert_steps_conform, lazy, step_texts

from assay.expressions.shared_columns import SharedColumn, layers, text
from assay.steps.base import Step
from assay.steps.chain import Chain, step_lane
from assay.steps.reader import read_steps

CHAINS = (
    [],
    ["afterThink", {"after": "A:"}, "lower"],
    ["afterThink", {"tag": "a", "notFound": "keep"}, {"line": "last"}, "lower"],
    {"after": "A:", "not_found": "keep"},
    [{"regex": r"A: *(\S*)", "notFound": "keep"}, {"regex": r"\d+"}],
    [{"firstOf": [["boxed"], [{"after": "A:"}]]}, "strip", {"map": {"4": "four"}}],
    {"firstOf": [[{"after": "A:", "notFound": "keep"}]], "notFound": "keep"},
    [{"remove": ["a"]}, {"line": 2, "notFound": "keep"}, "boxed"],
)


class Words(Step):
    """The words of a text; none are nothing found."""

    name = "words"
    gives_list = True

    def row(self, text):
        return text.split() or None


@pytest.mark.parametrize("data", CHAINS, ids=str)
def test_columns_give_what_rows_give(data):
    assert assert_steps_conform(data, step_texts(300, 4), small=3) == 301


def test_a_step_without_a_definition_cannot_be_made():
    with pytest.raises(TypeError, match="row"):
        Step()


def test_the_step_that_finds_nothing_is_told():
    chain = Chain(read_steps(["afterThink", {"after": "A:"}, {"regex": r"\d+"}]))
    texts = ["<think>", "<think></think>4", "A: four", "A: 4", None]
    missing = ["afterThink", "after", "regex", None, None]
    assert [text and chain.run(text)[1] for text in texts] == missing
    assert lazy(chain, pl.DataFrame({TEXT: texts})).collect()["missing"].to_list() == missing


@pytest.mark.parametrize("keeps", [False, True])
def test_a_list_comes_last_and_kept_it_has_one_text(keeps):
    words = Words()
    words.keeps = keeps
    chain = Chain((*read_steps("strip"), words))
    assert chain.gives_list
    texts = ["a b", " ", None]
    expected = [["a", "b"], [""] if keeps else None, None]
    assert [text if text is None else chain.row(text) for text in texts] == expected
    assert lazy(chain, pl.DataFrame({TEXT: texts})).collect()["value"].to_list() == expected


def test_chains_with_the_same_beginning_share_its_lanes():
    one, other = (Chain(read_steps(["afterThink", {"after": mark}])) for mark in ("A:", "B:"))
    assert one.lanes()[0] == other.lanes()[0]
    assert one.lanes()[1] != other.lanes()[1]
    assert step_lane(one.lanes()[0], one.steps[1]) == one.lane()
    built = layers([*one.lanes(), *other.lanes()], pl.Schema({TEXT: pl.String}))
    assert [len(expressions) for expressions in built] == [1, 2]


def test_a_chain_may_begin_at_another_lane():
    reverse = SharedColumn("reverse", lambda _: text().str.reverse())
    chain = Chain(read_steps({"after": "x"}))
    result = pl.DataFrame({TEXT: ["4x", "4"]})
    for expressions in layers([chain.lane(reverse)], result.schema):
        result = result.with_columns(expressions)
    assert result.select(chain.lane(reverse).col).to_series().to_list() == ["4", None]
    assert result.select(chain.missing_expr(reverse)).to_series().to_list() == [None, "after"]
    assert Chain().lane(reverse) is reverse
    assert Chain().lane() is None


@pytest.mark.parametrize("data", CHAINS, ids=str)
def test_a_chain_is_a_value(data):
    chain = Chain(read_steps(data))
    again = Chain(read_steps(chain.outline()))
    assert again == chain
    assert hash(again) == hash(chain)
    assert again.outline() == chain.outline()
    assert pickle.loads(pickle.dumps(chain)) == chain  # noqa: S301  (our own)
    assert chain != Chain((*chain.steps, *read_steps("upper")))
