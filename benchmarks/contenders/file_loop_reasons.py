"""The plain loop with reasons, from file to file."""

from functools import partial

from contenders import plain_loop_reasons
from contenders.file_loop import prepare, run

__all__ = ["prepare", "run"]

prepare = partial(prepare, loop=plain_loop_reasons)
