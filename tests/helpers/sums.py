"""A spec of two checks for tests of adapters, and what it says of a wrong answer."""

SPEC = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "contains", "value": {"column": "answer"}, "weight": 3},
        {"id": "short", "type": "max_length", "value": 10},
    ],
}
WRONG = 'right: does not contain "4"'
