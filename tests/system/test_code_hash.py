"""What a run says of the code that made it: the same for the same code, another for other code."""

import hashlib
import inspect
import os
import subprocess
import sys
from functools import partial

from cases import each

from assay.system.code_hash import described


def scale(output, expected, params, *, by=1):
    return len(output) * by


class Length:
    def __call__(self, output, expected, params):
        return len(output)


class Unsaid:
    def __repr__(self):
        raise RuntimeError("no")


def made(source):
    names = {}
    # a name of its own: from 3.13 on, what -c runs passes for the source of any "<string>", and test processes run so
    exec(compile(source, "<made>", "exec"), names)  # noqa: S102  (our own)
    return names["f"]


def hashed(thing):
    return described(thing)["sha256"]


@each(("thing", "owner"), [(scale, scale), (Length, Length), (Length(), Length)])
def test_a_function_or_a_class_is_known_by_its_source(thing, owner):
    sha256 = hashlib.sha256(inspect.getsource(owner).encode()).hexdigest()
    assert described(thing) == {
        "module": __name__,
        "qualname": owner.__qualname__,
        "sha256": sha256,
        "hash_of": "source",
    }


def test_a_partial_is_known_by_its_function_and_what_it_gives():
    found = described(partial(scale, by=2))
    assert (found["module"], found["qualname"], found["hash_of"]) == (__name__, "scale", "source")
    assert found == described(partial(partial(scale), by=2))
    several = (
        partial(scale, by=2), partial(scale, by=3), partial(scale, "x"), partial(partial(scale, "x"), by=2), scale,
    )  # fmt: skip
    assert len({hashed(one) for one in several}) == 5
    assert hashed(partial(scale, by=1, a={"x", "y"})) == hashed(partial(scale, a={"y", "x"}, by=1))
    assert hashed(partial(scale, by=scale)) == hashed(partial(scale, by=scale)) != hashed(partial(scale, by=Length))
    assert hashed(partial(scale, by=object())) == hashed(partial(scale, by=object()))
    assert hashed(partial(scale, by=Unsaid())) == hashed(partial(scale, by=Unsaid()))


SETS = "def f(output, expected, params):\n    return any(one in {'a', 'b', 'c', ('d', 1.5)} for one in (lambda: output)())\n"


def test_bytecode_is_known_by_what_it_does_not_by_the_run():
    found = described(made(SETS))
    assert (found["qualname"], found["hash_of"]) == ("f", "bytecode")
    assert hashed(made(SETS)) == hashed(made("\n\n" + SETS)) == hashed(partial(partial(made(SETS))).func)
    assert hashed(made(SETS)) != hashed(made(SETS.replace("'b'", "'x'")))
    assert hashed(made(SETS)) != hashed(made(SETS.replace("lambda: output", "lambda: expected")))
    code = f"names = {{}}; exec({SETS!r}, names); from assay.system.code_hash import described; print(described(names['f'])['sha256'])"
    for seed in "12":
        done = subprocess.run(
            [sys.executable, "-"],  # from 3.13 on, what -c runs passes for the source of what it executes
            input=code,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == hashed(made(SETS))


def test_what_has_neither_says_so():
    assert described(len) == {"module": "builtins", "qualname": "len", "sha256": None, "hash_of": None}
