"""The functions of a rubric in a plain loop, with nothing around them: what no rubric can save."""

import assay
from contenders.five_functions import make
from contenders.rubric_rollouts import arguments


def prepare(spec, frame):
    del spec
    rubric = make(assay)
    given = arguments(frame)
    named = {plural.removesuffix("s"): values for plural, values in given.items()}
    return rubric, [dict(zip(named, values, strict=True)) for values in zip(*named.values(), strict=True)]


def run(prepared, frame):
    del frame
    rubric, rows = prepared
    correct, well_formed, brief, offers_refund, easy = rubric.get_reward_funcs()
    parser = rubric.parser
    scored = [
        (
            correct(parser, row["completion"], row["answer"]),
            well_formed(row["completion"]),
            brief(row["completion"]),
            offers_refund(row["completion"]),
            easy(**row, parser=parser),
        )
        for row in rows
    ]
    metrics = dict(zip(rubric.get_reward_func_names(), map(list, zip(*scored, strict=True)), strict=True))
    weights = rubric.get_reward_weights()
    rewards = [sum(score * weight for score, weight in zip(row, weights, strict=True)) for row in scored]
    return {"reward": rewards, **metrics}
