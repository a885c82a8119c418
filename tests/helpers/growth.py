"""How processor time grows with the size of what is done: compared with itself, never with a clock."""

import time

FACTOR = 4
FAR = 16
"""A larger factor, for what seems to grow faster: there, noise is no excuse."""
TRIES = 8
NOISE = 0.0001
"""Seconds added to the shorter time: of a few microseconds, the ratio is that of the processor's caches."""


def is_linear(work_of, size, tries=TRIES):
    """Whether processor time grows with the size, and not with its square.

    Four times the size must take less than eight times the time (a square would be sixteen) or, where that seems not so, sixteen
    times the size less than 64 times the time (a square would be 256). Noise only adds, so the least of several tries counts.

    Args:
        work_of: Takes a size and returns the work, a function without arguments. No two calls get the same size, because caches
            would answer for it.
        size: The smaller size.
        tries: How often to try before it seems not so; half as often for the verdict.
    """
    return _is_within(work_of, size, FACTOR, 8, tries) or _is_within(work_of, size, FAR, 64, (tries + 1) // 2)


def _is_within(work_of, size, factor, most, tries):
    least = [float("inf")] * 2
    for attempt in range(tries):
        for at, times in enumerate((1, factor)):
            work = work_of(times * (size + 40 * attempt))
            started = time.process_time()
            work()
            least[at] = min(least[at], time.process_time() - started)
        if least[1] <= most * (least[0] + NOISE):
            return True
    return False
