"""What workers of the tests do with an item."""

import os
import time

BALLAST = []


def warm_up():
    return ["greeting", os.getpid()]


def prepare(context, cell):
    if context == "refused":
        raise ValueError("no such context")
    if context == "endless":
        spin()
    if context == "deadly":
        os._exit(4)
    if context == "tell":
        return lambda item: [cell.tell(note) for note in item] and len(item)
    if context == "parts":
        return lambda item: parts(cell, item)
    return DOES[context]


def spin():
    while True:
        pass


def unheard():
    """Use the processor where Python looks for no signal."""
    while True:
        sum(range(10**7))


def die(item):
    if item == "die":
        os._exit(3)
    return item


def late(item):
    if item == "late":
        spin()
    return item


def grow(item):
    if item:
        BALLAST.append(bytearray(item))
    return os.getpid()


def parts(cell, item):
    for part, seconds in enumerate(item):
        cell.mark(part, time.monotonic() + 0.2)
        time.sleep(seconds)
    return "done"


def fail(item):
    raise KeyError(item)


DOES = {
    "same": lambda item: item,
    "fail": fail,
    "die": die,
    "late": late,
    "unheard": lambda item: item == "late" and 10**10_000_000 % 7,
    "grow": grow,
    "pid": lambda _: os.getpid(),
    "sleep": lambda item: time.sleep(item) or os.getpid(),
    "environment": lambda _: sorted(name for name in os.environ if name.startswith("PYTHON")),
}
