"""Numbers for people: one form for each kind of number, and none that says more, or less, than it knows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.writing.numbers import change, count, interval, number, p_value, percent, plain, seconds, size, speed

FORMS = {
    number: {
        0.526: "0.526",
        0: "0",
        1: "1",
        -1.0: "-1",
        0.00049: "<0.001",
        0.0005: "0.001",
        0.99951: ">0.999",
        0.75: "0.750",
        -0.25: "-0.250",
        -0.0001: ">-0.001",
        -0.9999: "<-0.999",
        1.0001: "<1.001",
        2: "2",
        1234.5: "1,234.500",
        1e12: "1e+12",
        None: "–",
        math.nan: "–",
        math.inf: "–",
        -math.inf: "–",
    },
    change: {
        0.0308: "+0.031",
        -0.0308: "-0.031",
        0: "0",
        1: "+1",
        -1: "-1",
        1e-9: "<+0.001",
        -1e-9: ">-0.001",
        0.99999: ">+0.999",
        None: "–",
        math.nan: "–",
    },
    percent: {
        0.237: "23.7 %",
        0.0001: "<0.1 %",
        0.9999: ">99.9 %",
        0: "0 %",
        1.0: "100 %",
        0.5: "50.0 %",
        0.02: "2.0 %",
        None: "–",
        math.nan: "–",
    },
    count: {
        0: "0",
        5276: "5,276",
        9_999_999: "9,999,999",
        10**7: "10.0 M",
        12_345_678: "12.3 M",
        84.4: "84",
        0.3: "<1",
        None: "–",
        math.nan: "–",
    },
    plain: {0.5: "0.5", 1.0: "1", 3: "3", None: "–"},
    p_value: {
        0.0342: "0.034",
        0.00041: "0.0004",
        0.00004: "<0.0001",
        0.0: "<0.0001",
        1.0: "1",
        0.9999: ">0.999",
        0.5: "0.500",
        None: "–",
        math.nan: "–",
    },
    seconds: {
        0.42: "0.42 s",
        3.21: "3.2 s",
        8.04: "8 s",
        59.4: "59 s",
        59.6: "1 min 0 s",
        200: "3 min 20 s",
        0: "0 s",
        7500: "2 h 5 min",
        1e-5: "<0.001 s",
        None: "–",
        math.inf: "–",
    },
    size: {0: "0 B", 999: "999 B", 1_200: "1.2 kB", 1.2e9: "1.2 GB", 123_456_789: "123 MB", 1e13: "10.0 TB"},
    speed: {
        1254.3: "1,254 rows/s",
        812_000: "812,000 rows/s",
        1.3e6: "1.3 M rows/s",
        999_999.9: "1.0 M rows/s",
        0.53: "0.53 rows/s",
        None: "– rows/s",
    },
}


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [(form, value, shown) for form, forms in FORMS.items() for value, shown in forms.items()],
)
def test_a_kind_of_number_has_one_form(form, value, shown):
    assert form(value) == shown


@pytest.mark.parametrize(
    ("ends", "of_shares", "shown"),
    [
        ((0.516, 0.5361), False, "[0.516, 0.536]"),
        ((0.2222, 0.251), True, "[22.2, 25.1] %"),
        ((0, 1), True, "[0, 100] %"),
        ((0.00001, 0.99999), False, "[<0.001, >0.999]"),
        ((None, 1.0), False, ""),
        (None, True, ""),
    ],
)
def test_an_interval_has_its_unit_once(ends, of_shares, shown):
    assert interval(ends, of_shares=of_shares) == shown


@given(st.floats())
def test_only_what_is_none_or_all_reads_so(value):
    for form, whole in ((number, "1"), (change, "+1"), (percent, "100 %")):
        text = form(value)
        assert (text in {"0", "0 %"}) == (value == 0)
        assert (text == whole) == (value == 1)


@given(st.floats(-1e300, 1e300) | st.sampled_from([None, math.nan, math.inf]))
def test_a_number_keeps_its_sign_and_what_is_none_has_a_dash(value):
    for form in (number, change, percent, count, p_value, seconds):
        text = form(value)
        is_known = value is not None and math.isfinite(value)
        assert (text == "–") is not is_known
        assert not {"nan", "inf"} & {text.strip("-").lower()}
        assert form not in {number, change, percent} or not is_known or ("-" in text) == (value < 0)
