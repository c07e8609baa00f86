"""`scripts/soak` lists its runs; each writes down what came of it, and goes on when interrupted."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.soak import pytest_soak, soak, soak_record
from tests.support.soak.soak_record import Goal, Part, Record, RunningError, options, run_parts

ROOT = Path(__file__).parents[3]
TEST = "tests/unit/base/test_hresult.py::test_code_of_the_table_is_known_by_number_and_name"
MUTATION = """
[[mutation]]
points = ["MQMQ-error-0xC00E0001"]
at = "base.hresult.HResult.{name}"
old = "{old}"
new = "7"
test = "{test}[MQ_ERROR]"
"""
CAUGHT = MUTATION.format(name="MQ_ERROR", old="0xC00E0001", test=TEST)
SURVIVES = MUTATION.format(name="MQ_ERROR_IO_TIMEOUT", old="0xC00E001B", test=TEST)
EVIDENCE = "# Evidence\n\n<!-- What follows is written by `scripts/soak mutations`. -->\n\nOld.\n"


class Mutations:
    """`scripts/soak mutations` with mutations of its own, one in a part."""

    def __init__(self, folder: Path, *mutations: str) -> None:
        self.page = folder / "soak.md"
        (folder / "data.toml").write_text("".join(mutations))
        self.command = [sys.executable, "-m", "tests.support.soak.soak", "mutations"]
        self.command += ["--directory", str(folder), "--state", str(folder / "state")]
        self.command += ["--page", str(self.page), "--shards", str(len(mutations)), "--jobs", "1"]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    @property
    def row(self) -> list[str]:
        """The cells of the only row."""
        lines = self.page.read_text("utf-8").splitlines()
        assert lines[-2] == "|---" * 8 + "|"
        return [cell.strip() for cell in lines[-1].strip("|").split(" | ")]


def test_a_run_that_ended_early_goes_on_and_repeats_no_part(tmp_path: Path) -> None:
    run = Mutations(tmp_path, CAUGHT, CAUGHT)
    first = run.run("--parts", "1")
    assert first.returncode == 1, first.stderr
    assert first.stdout.startswith("part 1/2\nmutations: 1 of 2 parts: 1 mutations, 1 caught; ")
    assert run.row[:2] == ["mutations", "well so far"]
    second = run.run()
    assert second.returncode == 0, second.stderr
    assert second.stdout.startswith("part 2/2\nmutations: 2 of 2 parts: 2 mutations, 2 caught; ")
    assert run.row[1] == "well"
    assert run.row[3:5] == ["2 of 2 parts", "none"]
    assert run.row[7].startswith("`scripts/soak mutations --directory ")
    assert run.run().stdout.startswith("mutations: 2 of 2 parts: ")
    assert run.run("--again", "--parts", "1").stdout.startswith("part 1/2\nmutations: 1 of 2 ")


def test_a_run_that_was_killed_goes_on_with_the_part_that_it_was_at(tmp_path: Path) -> None:
    run = Mutations(tmp_path, CAUGHT, CAUGHT, CAUGHT)
    with subprocess.Popen(run.command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["part 1/3\n", "part 2/3\n"]
        process.kill()
    assert run.row[3] == "1 of 3 parts"
    assert run.run().stdout.startswith("part 2/3\npart 3/3\nmutations: 3 of 3 parts: ")


def test_what_has_failed_is_told_in_the_row_and_by_the_status(tmp_path: Path) -> None:
    run = Mutations(tmp_path, SURVIVES, CAUGHT)
    assert run.run("--parts", "1").returncode == 1
    assert run.run().returncode == 1
    assert run.row[1].startswith("**1 failed**: survived: MQMQ-error-0xC00E0001: base.hresult.")
    assert run.row[2].startswith("2 mutations, 1 survived, 1 caught; ")


def test_the_run_of_mutations_writes_its_figures_into_the_page_of_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence.md"
    evidence.write_text(EVIDENCE)
    Mutations(tmp_path, SURVIVES, CAUGHT).run()
    written = evidence.read_text()
    assert written.startswith(EVIDENCE.removesuffix("\nOld.\n"))
    assert "Old." not in written
    assert "\n2 mutations, 1 survived, 1 caught; " in written
    assert "\n2 of 2 parts were done.\n" in written
    assert "\n- survived: MQMQ-error-0xC00E0001: " in written


# The record itself.


def made() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("scripts/soak some")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    return options(parser)


def record_of(folder: Path, *words: str, name: str | None = None) -> Record:
    parser = made()
    given = parser.parse_args(["--state", str(folder / "state"), *words])
    return Record(parser, given, Goal(given.count), seed=given.first, name=name, neutral=["jobs"])


PARTS = ["one", "two", "three"]


def test_only_a_run_with_its_defaults_writes_into_the_documentation(tmp_path: Path) -> None:
    pages = [
        record_of(tmp_path, *words).page
        for words in ([], ["--first", "4"], ["--jobs", "2"], ["--count", "1"])
    ]
    assert pages == [ROOT / "docs" / "soak.md"] * 3 + [None]
    assert record_of(tmp_path, "--count", "1", "--page", "some.md").page == Path("some.md")


def test_rows_are_in_order_and_replace_those_of_their_run(tmp_path: Path) -> None:
    page = tmp_path / "soak.md"
    page.write_text(f"# Runs\n\n{soak_record.HEADER}\n{'|---' * 8}|\n\nAfter.\n")
    for name, count in (("network", 1), ("api", 2), ("network --http", 3), ("network", 4)):
        words = ["--page", str(page), "--count", "1", "--first", str(count)]
        record = record_of(tmp_path, *words, name=name)
        record.keep("one", Part({"things": count}))
    lines = page.read_text("utf-8").splitlines()
    assert [line.split(" | ")[0] for line in lines[4:7]] == [
        "| api",
        "| network",
        "| network --http",
    ]
    assert "| 4 things; " in lines[5]
    assert lines[:3] == ["# Runs", "", soak_record.HEADER]
    assert lines[7:] == ["", "After."]


def test_parts_are_those_of_a_commit_and_of_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(*words: str) -> list[str]:
        seen: list[str] = []

        def work(name: str) -> Part:
            seen.append(name)
            return Part()

        run_parts(record_of(tmp_path, "--page", str(tmp_path / "page.md"), *words), PARTS, work)
        return seen

    assert tried("--parts", "2") == ["one", "two"]
    assert tried("--jobs", "4", "--parts", "1") == ["three"]
    assert tried() == []
    assert tried("--first", "9", "--parts", "1") == ["one"]
    monkeypatch.setattr(soak_record, "commit_of", lambda root: "another")
    assert tried() == PARTS


def test_the_commit_is_told_and_changes_that_are_in_no_commit(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    (tmp_path / "docs").mkdir()
    for name in ("code.py", "docs/soak.md"):
        (tmp_path / name).write_text("old")
    git("add", ".")
    git("commit", "-qm", "all")
    commit = git("rev-parse", "HEAD")[:12]
    assert soak_record.commit_of(tmp_path) == commit
    (tmp_path / "docs" / "soak.md").write_text("written by a run")
    assert soak_record.commit_of(tmp_path) == commit
    (tmp_path / "code.py").write_text("new")
    changed = soak_record.commit_of(tmp_path)
    assert changed.startswith(f"{commit}+")
    (tmp_path / "code.py").write_text("newer")
    assert changed != soak_record.commit_of(tmp_path) != commit
    assert soak_record.commit_of(tmp_path / "nowhere") == "unknown"


def test_two_processes_do_not_do_the_same_run_at_a_time(tmp_path: Path) -> None:
    first = record_of(tmp_path)
    with pytest.raises(RunningError, match="another process does this run"):
        record_of(tmp_path, "--jobs", "2")
    assert record_of(tmp_path, "--first", "1").name == first.name


def test_a_part_that_raises_has_failed_and_the_others_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(name: str) -> Part:
        if name == "two":
            raise OSError(f"{ROOT}/some is | gone")
        return Part({"things": 2}, {"ms for one": 2.5 if name == "one" else 1})

    page = tmp_path / "page.md"
    assert run_parts(record_of(tmp_path, "--page", str(page)), PARTS, work) == 1
    told = "some: 3 of 3 parts: 4 things, at most 2.5 ms for one; 0.0 minutes of work\n"
    assert told in capsys.readouterr().out
    assert "| **1 failed**: two: OSError: some is \\| gone |" in page.read_text("utf-8")


# The runs.


@pytest.mark.parametrize("name", soak.RUNS)
def test_each_run_that_is_listed_has_a_help_of_its_own(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = soak.parser().format_help()
    assert f"    {name} " in listed or f"    {name}\n" in listed
    with pytest.raises(SystemExit) as ended:
        soak.main([name, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: scripts/soak {name} ")
    assert "--again" in told


def test_a_run_that_is_not_there_is_refused_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        soak.main(["netwrok"])
    assert ended.value.code == 2
    assert "'network'" in capsys.readouterr().err


TESTS = """\
import pytest

def test_that_passes(): pass

def test_that_fails(): assert 1 == 2, "not | equal"

@pytest.mark.skip(reason="no reason")
def test_that_is_skipped(): pass
"""


def test_tests_are_counted_and_those_that_failed_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    part = pytest_soak.ran([str(tmp_path), "-p", "no:cacheprovider"], {})
    assert part.figures == {"tests": 3, "skipped": 1}
    assert len(part.failures) == 1
    assert "test_that_fails: AssertionError: not | equal" in part.failures[0]
    (tmp_path / "test_some.py").write_text("import nothing_of_that_name\n")
    assert len(pytest_soak.ran([str(tmp_path), "-p", "no:cacheprovider"], {}).failures) == 1


def test_the_files_with_tests_that_take_long_are_the_parts_of_slow() -> None:
    found = pytest_soak.files_with_marks(["tests/crash", "tests/unit/base"])
    assert found == ["tests/crash/test_kill.py", "tests/crash/test_requests.py"]


def test_folders_are_the_parts_of_a_run_of_all_tests() -> None:
    single = "tests/unit/test_limits.py"
    found = pytest_soak.folders(["tests/crash", "tests/integration", single])
    assert found[:1] == ["tests/crash"]
    assert "tests/integration/cli" in found
    assert found[-1] == single
