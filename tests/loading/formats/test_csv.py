"""CSV files: the delimiter is found in the header, and told where it is not the usual one."""

import polars as pl
import pytest
from web import Web

import assay
from assay.loading.formats.documents import delimiter_of
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
ROWS = [
    {"id": "001", "completion": "a;b, c\td|e"},
    {"id": "1e5", "completion": 'two\nlines "quoted"'},
    {"id": "", "completion": "é"},
]
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def table(delimiter, rows=ROWS, **names):
    frame = pl.DataFrame(rows).rename(names)
    return frame.write_csv(separator=delimiter, quote_style="always" if names else "necessary")


def read(path):
    opened = open_rollouts(path, Reading())
    return opened.frame.collect(), list(opened.notes)


def test_the_delimiter_is_found_in_the_header(tmp_path):
    for line_end in ["\n", "\r\n"]:
        for bom in ["", "\ufeff"]:
            for delimiter in list(NAMES):
                for ending in ["csv", "tsv"]:
                    path = tmp_path / f"rows.{ending}"
                    text = bom + "id,completion,n\n1,a,x\n2,b,\n".replace(",", delimiter).replace("\n", line_end)
                    path.write_bytes(text.encode())
                    frame, notes = read(path)
                    assert frame.to_dicts() == [
                        {"id": "1", "completion": "a", "n": "x"},
                        {"id": "2", "completion": "b", "n": None},
                    ]
                    usual = {"csv": ",", "tsv": "\t"}[ending]
                    shown = "" if delimiter == "\t" else f" ({delimiter})"
                    told = [f"{path}: the delimiter in its header is the {NAMES[delimiter]}{shown}"]
                    assert notes == ([] if delimiter == usual else told)


def test_quoted_names_and_texts_may_hold_any_delimiter(tmp_path):
    for other in list(NAMES):
        for delimiter in list(NAMES):
            path = tmp_path / "rows.csv"
            path.write_text(table(delimiter, id=f"i{other}d{other}{other}"), newline="")
            assert read(path)[0]["completion"].to_list() == [row["completion"] for row in ROWS]
            path.write_text(table(delimiter), newline="")
            assert read(path)[0]["completion"].to_list() == [row["completion"] for row in ROWS]


def test_the_delimiter_is_what_the_header_has_most_of_and_the_first_row_as_many():
    for text, delimiter in [
        ("completion\na;b\n", ","),
        ("id,completion\n1;2,a;b\n", ","),
        ("id,tags (a;b;c)\n1,x\n", ","),
        ("id;name, first;completion\n1;x;y\n", ";"),
        ("id;name, first\n1;x\n", ";"),
        ("a;b,c", ","),
        ('"a;b;c",d\n1,2', ","),
        ("", ","),
        ("a\n\n", ","),
        ("a\tb\n1\t2", "\t"),
        ("a,b\tc\n1\t2", "\t"),
        ('a,b\n"1', ","),
        ("a;b\n\n1;2\n", ";"),
    ]:
        assert delimiter_of(text.encode(), "x.csv", whole=True) == delimiter


def test_a_first_row_that_is_cut_off_or_very_long_decides_nothing():
    assert delimiter_of(b"a;b;c,d\n1", "x.csv", whole=False) == ";"
    assert delimiter_of(b"a;b;c,d\n1", "x.csv", whole=True) == ";"
    assert delimiter_of(b"a;b\n" + b"x" * 200_000 + b";1\n", "x.csv", whole=True) == ";"
    assert delimiter_of(b"a\n1", "x.tsv", whole=True) == "\t"


def test_files_with_different_delimiters_are_one_table_in_memory_and_in_parts(tmp_path):
    for name, delimiter in (("a.csv", ";"), ("b.tsv", "\t"), ("c.csv", ",")):
        (tmp_path / name).write_text(table(delimiter), newline="")
    scored = assay.score(tmp_path, SPEC)
    assert scored["reward"].to_list() == [1.0, 0.0, 0.0] * 3
    summary = assay.score_file(tmp_path, SPEC, f"{tmp_path}/out/", part_bytes="1KB")
    assert pl.read_parquet(tmp_path / "out" / "*.parquet").equals(scored)
    assert [note for note in summary.notes if "delimiter" in note] == [
        f"{tmp_path / 'a.csv'}: the delimiter in its header is the semicolon (;)"
    ]


def test_a_url_with_another_delimiter_is_read_as_the_file_is(tmp_path):
    files = {f"/a{at}.csv": table(delimiter).encode() for at, delimiter in enumerate(NAMES)}
    files["/b.tsv"] = table("\t").encode()
    files["/c.csv"] = "id;completion\n1;caf\xe9\n".encode("latin-1")
    with Web(files) as web:
        for name in list(files)[:-1]:
            frame, notes = read(f"{web.url}{name}?signature=x")
            assert frame.to_dicts() == ROWS
            assert bool(notes) == (name not in ("/a0.csv", "/b.tsv"))
            assert not any("signature" in note for note in notes)
        with pytest.raises(assay.InputError, match="cannot be read"):
            assay.score(f"{web.url}/c.csv", SPEC)
