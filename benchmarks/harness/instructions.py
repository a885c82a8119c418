"""Rollouts of prompts with instructions in the words of IFEval: eight for each prompt, drawn by seed."""

import random
import zlib
from pathlib import Path

import polars as pl
import pyarrow as pa

from harness.draws import SEED
from harness.generate import kept
from harness.texts import texts

__all__ = ["instructions", "instructions_file"]

_SAMPLES = 8
"""Rollouts of a prompt."""
_LEAST = "at least"
_POOL = {
    "keywords:existence": {"keywords": ["refund", "order"]},
    "keywords:frequency": {"keyword": "policy", "frequency": 3, "relation": _LEAST},
    "keywords:forbidden_words": {"forbidden_words": ["price", "never"]},
    "keywords:letter_frequency": {"letter": "q", "let_frequency": 6, "let_relation": "less than"},
    "length_constraints:number_words": {"num_words": 200, "relation": _LEAST},
    "length_constraints:number_paragraphs": {"num_paragraphs": 2},
    "length_constraints:nth_paragraph_first_word": {"num_paragraphs": 3, "nth_paragraph": 1, "first_word": "the"},
    "detectable_content:number_placeholders": {"num_placeholders": 2},
    "detectable_content:postscript": {"postscript_marker": "P.S."},
    "detectable_format:number_bullet_lists": {"num_bullets": 3},
    "detectable_format:constrained_response": {},
    "detectable_format:number_highlighted_sections": {"num_highlights": 2},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 2},
    "detectable_format:json_format": {},
    "detectable_format:title": {},
    "combination:two_responses": {},
    "combination:repeat_prompt": {"prompt_to_repeat": "Explain the policy."},
    "startend:end_checker": {"end_phrase": "Anything else?"},
    "punctuation:no_comma": {},
    "startend:quotation": {},
}
"""The instructions that need nothing: what langdetect and nltk take is theirs."""


def instructions_file(rows: int) -> Path:
    """Return texts with one to three instructions each, as the data set has them."""
    edition = zlib.crc32(Path(__file__).read_bytes())
    return kept(
        f"instructions-{SEED}-{rows}-{edition:08x}", lambda path: instructions(rows, SEED, _SAMPLES).write_parquet(path)
    )


def instructions(rows: int, seed: int, samples: int = 1) -> pl.DataFrame:
    """Return the same as a frame, with a number of rollouts for each prompt."""
    rng = random.Random(seed)
    tasks = [rng.sample(sorted(_POOL), rng.choice((1, 1, 2, 3))) for _ in range(-(-rows // samples))]
    chosen = [tasks[at // samples] for at in range(rows)]
    columns = {
        "completion": [*texts("chat", rows, seed)],
        "prompt": [f"Explain the policy. Prompt {at // samples}" for at in range(rows)],
        "instruction_id_list": chosen,
        "kwargs": [[_POOL[ident] for ident in task] for task in chosen],
    }
    return pl.DataFrame(pa.table(columns))  # with a null for each argument that an instruction does not take
