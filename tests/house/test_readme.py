"""README.md and docs/ tell the truth: their code runs, the output they show is printed, their tables come from the code."""

import re
from pathlib import Path

import pytest
import yaml
from cases import ROOT
from pages import (
    DOCS,
    ELSEWHERE,
    EVALUATORS,
    PAGES,
    README,
    blocks_of,
    commands_of,
    comparable,
    name_of,
    run_page,
    runs,
    steps_of,
)
from readme import (
    BESIDE_GOLDS,
    COMMANDS,
    PARTS,
    SPEED,
    TABLES,
    benchmarks_of,
    charts,
    commands_as_markdown,
    generated,
    lines_of_benchmarks,
    part,
    replaced,
)

import assay
from assay.spec.verifier import load_verifier
from assay.system.documents import parse_text

TEXTS = {name_of(page): page.read_text("utf-8") for page in PAGES}
BLOCKS = {name: blocks_of(text) for name, text in TEXTS.items()}
RUNNABLE = [page for page in PAGES if steps_of(page)]
NAMES = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(page):
    results = run_page(page)
    assert not [f"{page.name}:{result.line}\n{result.failure}" for result in results if result.failure]
    for result in results:
        if result.shown is not None:
            assert comparable(result.printed) == comparable(result.shown.text), (
                f"{page.name}:{result.line}: run `make readme`"
            )


PAGE = """
```python
print("a")
```

```output
b
```

```python
raise ValueError
```

# page.yaml, with a spec that is no spec

```yaml
# page.yaml
checks: []
```

```sh
make nothing
assay check page.yaml   # exit 2
assay check page.yaml
```
"""


def test_a_page_that_does_not_do_what_it_says_is_noticed(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    printed, raised, written, refused = run_page(tmp_path / "page.md")
    assert (printed.line, printed.printed, printed.shown.text, printed.failure) == (2, "a\n", "b\n", "")
    assert "ValueError" in raised.failure
    assert not written.failure
    assert refused.failure.count("ended with 2") == 1


def test_programs_that_run_elsewhere_do():
    for page, module in ELSEWHERE.items():
        assert f'"{page}"' in next((ROOT / "tests").rglob(module)).read_text("utf-8")
        assert {block.kind for block in BLOCKS[f"docs/{page}"] if runs(block)} == {"python"}


def test_the_pages_about_evaluators_are_run_with_the_packages_themselves():
    programs = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "peers").glob("test_*.py"))
    assert all(re.search(rf'run_page\("(\.\./recipes/)?{re.escape(page)}"', programs) for page in EVALUATORS)


def test_output_follows_what_prints_it():
    for name, blocks in BLOCKS.items():
        for before, block in zip([None, *blocks], blocks, strict=False):
            assert block.kind != "output" or (before is not None and (runs(before) or before.kind == "sh")), (
                f"{name}:{block.line}"
            )
            assert block.kind in {"python", "sh", "output", "text", "yaml", "yml", "toml", "json"}, (
                f"{name}:{block.line}"
            )


def test_every_command_is_shown_in_use():
    used = {command.split()[1] for blocks in BLOCKS.values() for block in blocks for command in commands_of(block)}
    assert used >= set(COMMANDS)


@NAMES
def test_the_generated_parts_come_from_the_code(page):
    text = TEXTS[name_of(page)]
    assert generated(page) == text, "run `make readme`"
    marks = re.findall(r"^<!-- (\w+):begin -->$", text, re.MULTILINE)
    assert marks == (["stages"] if page.name == "stages.md" else [name for name, _ in PARTS.get(name_of(page), ())])


def test_generated_parts_are_not_empty():
    assert "| `task_expectations` |" in part(TEXTS["docs/spec/check-types.md"], "checks")
    assert "| `verl-dump` |" in part(TEXTS["docs/inputs.md"], "presets")
    assert "| decode | " in part(TEXTS["docs/stages.md"], "stages")
    assert part(TEXTS["README.md"], "few").count("\n") == 2 + len(SPEED)


def test_the_charts_come_from_the_table():
    page = TEXTS["docs/performance.md"]
    for path, svg in charts().items():
        assert path.read_text("utf-8") == svg, "run `make readme`"
        assert f"](performance/{path.name})" in page
        assert svg.count("<rect") > 2


def test_each_line_of_the_benchmarks_is_on_one_page():
    shown, lines = "".join(map(benchmarks_of, TABLES)), lines_of_benchmarks()
    tables, _, golds = shown.partition("\n### a gold for each row\n")
    rows, cases = (
        [
            line
            for line in text.splitlines()
            if line.startswith("| ") and not line.startswith(("| contender |", "| case |"))
        ]
        for text in (tables, golds)
    )
    names = [row.split(" | ")[0].removeprefix("| ") for row in cases]
    assert sorted([*re.findall(r"(?m)^### (.*)$", tables), *names]) == sorted({line["measured"] for line in lines})
    assert len(rows) + len(BESIDE_GOLDS) * len(cases) == len(lines)


def test_the_reference_of_commands_has_every_option():
    text = commands_as_markdown()
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("## ")][: len(COMMANDS)] == list(COMMANDS)
    for option in ("`--spec ", "`--max-bad-rows", "`--no-isolate`", "`--regex-timeout"):
        assert option in text
    assert "| `ROLLOUTS…` |" in text
    score = text.partition("## assay score")[2].partition("\n## ")[0]
    assert "| options |" not in score  # every option is in a group


def test_another_table_replaces_one():
    text = "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n"
    assert replaced(text, "x", "new\n") == text.replace("old", "new")
    assert part(text, "x") == "old\n"


def test_readme_can_be_read_to_its_end():
    lines = TEXTS["README.md"].splitlines()
    assert len(lines) <= 120
    assert {"make demo", "make test"} <= {line.partition(" #")[0].strip() for line in lines[:20]}


def test_verifiers_that_pages_show_are_valid():
    count = 0
    for blocks in BLOCKS.values():
        for block in blocks:
            if block.kind == "yaml":
                verifier = load_verifier(parse_text(block.text, ".yaml", str(block.line)).data, strict=True)
                assert verifier.checks
                count += 1
    assert count >= 5


@NAMES
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[name_of(page)]):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = Path(page.parent, path).resolve() if path else page
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place.read_text("utf-8")), target


def anchors(text):
    """The anchors of the headings of a page, as GitHub and MkDocs make them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@NAMES
def test_paths_named_in_a_page_exist(page):
    prose = re.sub(r"^```output.*?^```$", "", TEXTS[name_of(page)], flags=re.DOTALL | re.MULTILINE)
    for path in re.findall(r"(?<![\w/])((?:engine|specs|tests|benchmarks|docs)/[\w./-]*\w)", prose):
        assert Path(ROOT, path).exists(), path


def test_pages_that_messages_name_exist():
    for source in (ROOT / "engine").rglob("*.py"):
        for path in re.findall(r"docs/[\w./-]*\w\.md", source.read_text("utf-8")):
            assert Path(ROOT, path).exists(), (source.name, path)


def test_every_page_is_on_the_site():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    outside = {"index.md", "samples.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    own = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(pages_of(site["nav"])) == sorted(outside | own)
    linked = "".join(TEXTS.values())
    assert [page.name for page in DOCS.rglob("*.md") if f"{page.name}" not in linked] == []


def test_the_api_reference_has_every_public_name_once():
    text = "".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    shown = re.findall(r"^(?:::: |`|\| `)assay\.([\w.]+)", text, re.MULTILINE)
    adapters = re.findall(r"heading: assay\.(adapters\.\w+)", text)
    modules = {"fns": assay.fns, "testing": assay.testing, "adapters": assay.adapters}
    wanted = {name for name in assay.__all__ if name not in {*modules, "__version__"}}
    wanted |= {f"{module}.{name}" for module, names in modules.items() for name in names.__all__}
    assert sorted([*(name for name in shown if not name.startswith("adapters.")), *adapters]) == sorted(wanted)


def pages_of(entries):
    """The pages of a part of the navigation, and of the parts within it."""
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from pages_of(value) if isinstance(value, list) else [value]


def test_the_front_page_names_every_job():
    for job in ("gold-answers", "json-output", "think-blocks", "trainers", "prompt-optimisers", "ci-gate", "scale"):
        assert f"(docs/{job}.md)" in TEXTS["README.md"], README
