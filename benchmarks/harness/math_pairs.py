"""Pairs of an answer and a gold that mathematics may find equal, by seed."""

import random

__all__ = ["math_pairs"]


def math_pairs(seed: float, count: int) -> list[tuple[str, str]]:
    """Return pairs of an answer and a gold: numbers, fractions, surds, polynomials, sets and intervals."""
    draw = random.Random(seed)

    def pair() -> tuple[str, str]:
        a, b, c = (draw.randint(1, 999) for _ in range(3))
        forms = (
            (f"{a}.0", str(draw.choice((a, b)))),
            (rf"\frac{{{a}}}{{{b}}}", draw.choice((f"{2 * a}/{2 * b}", f"{a}/{c}"))),
            (rf"{a}\sqrt{{{b}}}", rf"\sqrt{{{a * a * draw.choice((b, c))}}}"),
            (f"x^2+{a + b}x+{a * b}", f"(x+{a})(x+{draw.choice((b, c))})"),
            (rf"\{{{a}, {b}\}}", rf"\{{{b}, {draw.choice((a, c))}\}}"),
            (f"({a}, {a + b})", f"({a}, {a + draw.choice((b, c))}]"),
        )
        return draw.choice(forms)

    return [pair() for _ in range(count)]
