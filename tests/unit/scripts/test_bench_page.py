"""scripts/bench --page: the whole page, from what was recorded of one commit."""

import json
import re
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.project.git_repositories import Repository

BENCHES = Path(__file__).parents[3] / "scripts" / "bench.d"
DOCS = Path(__file__).parents[3] / "docs"
COMMIT = "0123456789ab"


def read(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHES)
    return import_module("page")


def machine() -> Any:
    return import_module("machine").Machine("2 of a kind", "Linux 6.1 (x86_64)", "ext4", "3.11.2")


def recorded(bench: str, **values: float) -> Any:
    """An outcome of a bench in which each row meets its target, but for some values."""
    figures, catalogue = import_module("figures"), import_module("catalogue")
    found = []
    for row in catalogue.rows_of(bench):
        value = values.get(row.name, row.target if row.target is not None else 1.0)
        made = figures.figure(row.name, value, "10/s against 5/s", target=2.0)
        profile = () if made.met else ("profile of one more round", "50.0% store.py write")
        found.append(replace(made, profile=profile))
    measuring = import_module("measuring")
    return measuring.Outcome(
        bench, tuple(found), 60.0, 0.01, 0.02, 9_700.0, "2026-11-27", machine()
    )


def everything(page: Any) -> list[Any]:
    return [recorded(bench) for bench in page.order()]


def template(page: Any) -> str:
    return read(page.TEMPLATE)


SENDS = "durable sends of 1 KiB over the C log server, 16 connections"


def test_the_page_names_the_commit_the_day_and_the_machine_and_has_every_row(page: Any) -> None:
    text = page.rendered(template(page), COMMIT, everything(page))
    head = text.split("## ", 1)[0]
    assert f"one run of commit `{COMMIT}`, 27 November 2026, which took" in head
    assert "2 of a kind; Linux 6.1 (x86_64); Python 3.11.2; data on ext4" in head
    assert "9,700 `fdatasync` of 1 KiB a second" in head
    assert "It was quiet: before each bench other programs used at most 2% of the" in head
    rows = import_module("catalogue").ROWS
    assert [name for name in rows if f"| {name} " not in text] == []
    assert "{{" not in text
    assert f"| {SENDS} *n* | 0.58 (10/s against 5/s) | 0.58 |" in text
    assert text.endswith("No row misses its target.\n")


def test_what_is_missed_stands_there_as_missed_with_its_profile(page: Any) -> None:
    outcomes = [recorded(bench, **{SENDS: 0.4}) for bench in page.order()]
    text = page.rendered(template(page), COMMIT, outcomes)
    assert f"| {SENDS} *n* | 0.4 (10/s against 5/s) | 0.58, **missed** |" in text
    below = text.split("## What is missed")[1]
    assert f"**{SENDS}**: 0.4 instead of 0.58." in below
    assert "```\nprofile of one more round\n50.0% store.py write\n```" in below


def test_a_row_that_failed_and_one_that_was_left_out_say_so_with_the_reason(page: Any) -> None:
    figures, measuring = import_module("figures"), import_module("measuring")
    outcomes = everything(page)
    first = outcomes[0]
    failed = figures.without_value(SENDS, "failed: RuntimeError: no answer")
    kept = tuple(failed if each.name == SENDS else each for each in first.figures)
    outcomes[0] = replace(first, figures=kept)
    outcomes[-1] = measuring.left_out(outcomes[-1].bench, measuring.OVER)
    text = page.rendered(template(page), COMMIT, outcomes)
    assert f"| {SENDS} *n* | **failed**: RuntimeError: no answer | 0.58 |" in text
    assert "| not measured: the time of the whole run was over |" in text
    assert "have none, 1 failed, and 1 were not measured" in text


def test_a_machine_that_others_used_is_not_quiet(page: Any) -> None:
    outcomes = everything(page)
    outcomes[0] = replace(outcomes[0], busy=0.6)
    text = page.rendered(template(page), COMMIT, outcomes)
    assert "It was **not** quiet: before each bench other programs used at most 60%" in text
    assert f"| {SENDS} *n* | 0.58 (10/s against 5/s), **not quiet** | 0.58 |" in text


def test_a_table_without_a_place_in_the_template_is_refused(page: Any) -> None:
    without = template(page).replace("{{rows sends}}", "")
    with pytest.raises(ValueError, match="no place for rows sends"):
        page.rendered(without, COMMIT, everything(page))


def test_links_from_the_page_and_to_it_lead_somewhere(page: Any) -> None:
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in template(page).splitlines()
        if line.startswith("#")
    }
    pages = DOCS.glob("*.md")
    asked = {name for each in pages for name in re.findall(r"performance\.md#([\w-]+)", read(each))}
    asked |= set(re.findall(r"\]\(#([\w-]+)\)", template(page)))
    assert "messages-over-http" in asked
    assert asked - headings == set()
    files = re.findall(r"\]\(([\w-]+\.md)", template(page))
    assert [name for name in files if not (DOCS / name).exists()] == []


def test_an_interrupted_run_goes_on_where_it_was_and_measures_what_is_named_again(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def measure(bench: str, end: float) -> Any:
        if len(measured) == 3:
            raise KeyboardInterrupt
        measured.append(bench)
        return recorded(bench)

    monkeypatch.setattr(page, "measure", measure)
    kept = import_module("kept").Kept(tmp_path, machine())
    with pytest.raises(KeyboardInterrupt):
        page.gathered(kept, [], 1e6)
    first = list(measured)
    measured[:] = []
    monkeypatch.setattr(page, "order", lambda: [*first, "samba"])
    assert len(page.gathered(kept, [first[0]], 1e6)) == 4
    assert measured == [first[0], "samba"]
    other = replace(kept, machine=replace(machine(), kernel="another"))
    assert other.load("samba") is None
    assert kept.load("samba") == recorded("samba")


def test_benches_beyond_the_budget_are_left_out(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "measure", lambda bench, end: pytest.fail(bench))
    kept = import_module("kept").Kept(tmp_path, machine())
    kept.save(replace(recorded("durable"), seconds=500.0))
    outcomes = page.gathered(kept, [], 400.0)
    assert outcomes[0] == kept.load("durable") or outcomes[0].bench != "durable"
    assert {each.missing for each in outcomes[-1].figures} == {f"not measured: {page.OVER}"}


def test_a_page_of_files_that_are_not_committed_is_refused(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository(tmp_path)
    repository.write("docs/performance.md", "old")
    repository.write("rpcqm/__init__.py", "")
    commit = repository.commit()
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "gathered", lambda *_: everything(page))
    repository.write("rpcqm/__init__.py", "changed = 1")
    assert page.main([]) == 2
    assert "commit or remove first rpcqm/__init__.py" in capsys.readouterr().out
    repository.write("rpcqm/__init__.py", "")
    repository.write("docs/performance.md", "a page that was written before")
    assert page.main([]) == 0
    assert f"commit `{commit[:12]}`" in (tmp_path / "docs/performance.md").read_text("utf-8")


def test_the_kind_of_file_system_is_that_of_the_longest_mount_point(page: Any) -> None:
    mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw 0 0\n"
    of = import_module("machine").file_system_of
    assert (of(Path("/data/var"), mounts), of(Path("/home"), mounts)) == ("xfs", "ext4")


def test_what_is_kept_has_no_name_of_a_machine(page: Any) -> None:
    told = json.dumps(asdict(import_module("machine").this_machine(BENCHES)))
    assert import_module("platform").node() not in told
