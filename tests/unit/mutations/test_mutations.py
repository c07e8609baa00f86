"""scripts/mutate: changes of the product are found by their syntax, and told by what they do."""

import datetime
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.mutations import campaign, evidence, hook, names, syntax
from tests.mutations.campaign import Fate, block, shard, shard_of_day, trial
from tests.mutations.data import Mutation, MutationError, read_mutations
from tests.mutations.idl import mutate_idl
from tests.mutations.moving import Moves
from tests.mutations.named_tests import require_test
from tests.mutations.running import TOOK_TOO_LONG, Outcome, change_of, require_place

ROOT = Path(__file__).parents[3]
Divided = Callable[[Sequence[Mutation], int, int], list[Mutation]]
CODES = "tests/unit/base/test_hresult.py::test_code_of_the_table_is_known_by_number_and_name"
SOURCE = """\
class Reader:
    limit = 5

    def read(self, count):
        self.note(count)
        if count > self.limit:
            raise ValueError(count)
        return self.take(count, wait=True), {"left": self.limit - count, "more": count > 0}

    def peek(self, count):
        return self.take(count, wait=True)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A product of one module, qm/readers.py."""
    module = tmp_path / "qm" / "readers.py"
    module.parent.mkdir()
    module.write_text(SOURCE)
    monkeypatch.setattr(names, "PACKAGE", tmp_path)
    # What was parsed of a file is kept, and these tests move files.
    monkeypatch.setattr(names, "kept", names.parsed)
    monkeypatch.setattr(names, "index", names.index.__wrapped__)
    return module


def mutation(at: str, old: str, new: str, nth: int | None = None) -> Mutation:
    return Mutation(("MQRR-op-7",), at, old, new, "tests/unit/test.py::test_reading", nth)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("count > self.limit", "count >= self.limit", "if count >= self.limit:"),
        ("self.note( count )", "None", "        None\n"),
        ("raise ValueError(count)", "pass", "            pass\n"),
        ("wait=True", "wait=False", "self.take(count, wait=False), {"),
        ('"left": self.limit - count', '"left": 0', "{'left': 0, 'more': count > 0}"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_piece_is_found_by_its_syntax(old: str, new: str, told: str) -> None:
    changed = syntax.mutate(mutation("qm.readers.Reader.read", old, new))
    assert changed.module == "rpcqm.qm.readers"
    assert told in changed.source
    assert "def peek(self, count):\n        return self.take(count, wait=True)" in changed.source


@pytest.mark.usefixtures("package")
def test_what_is_assigned_to_a_name_can_be_changed() -> None:
    assert "limit = 6" in syntax.mutate(mutation("qm.readers.Reader.limit", "5", "6")).source


@pytest.mark.usefixtures("package")
def test_a_definition_that_has_moved_is_found_by_the_rest_of_its_name() -> None:
    moved = mutation("qm.chunks.Reader.read", "self.note(count)", "None")
    assert syntax.mutate(moved).module == "rpcqm.qm.readers"


def test_a_definition_is_followed_into_no_room_but_the_fast_one(package: Path) -> None:
    moved = mutation("store.chunks.Reader.read", "self.note(count)", "None")
    with pytest.raises(MutationError, match=r"nothing is named .*; a read is in qm$"):
        syntax.mutate(moved)
    (fast := package.parents[1] / "fast").mkdir()
    package.rename(fast / package.name)
    assert syntax.mutate(moved).module == "rpcqm.fast.readers"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("at", "old", "reason"),
    [
        ("qm.readers.Reader.read", "count < self.limit", "no longer applies"),
        ("qm.readers.Reader", "True", "applies 2 times"),
        ("qm.readers.Reader.write", "count", "nothing is named qm.readers.Reader.write"),
        ("qm.readers.Reader.read", "count +", "no piece of Python"),
    ],
)
def test_a_mutation_that_does_not_apply_says_why(at: str, old: str, reason: str) -> None:
    with pytest.raises(MutationError, match=reason):
        syntax.mutate(mutation(at, old, "0"))


def test_a_name_that_two_definitions_have_is_refused(package: Path) -> None:
    package.with_name("writers.py").write_text(SOURCE)
    with pytest.raises(MutationError, match=r"may be qm\.readers\.Reader.*qm\.writers\.Reader"):
        syntax.mutate(mutation("qm.moved.Reader", "5", "6"))


def test_a_name_that_several_have_is_of_the_one_with_the_old_piece(package: Path) -> None:
    package.with_name("writers.py").write_text(SOURCE.replace("self.note(count)", "pass"))
    moved = mutation("qm.gone.Reader.read", "self.note(count)", "None")
    assert syntax.mutate(moved).module == "rpcqm.qm.readers"


def test_a_definition_whose_name_is_all_there_is_never_another_one(package: Path) -> None:
    """Another one of its name may have the piece that it has lost."""
    package.with_name("writers.py").write_text(SOURCE.replace("self.note(count)", "pass"))
    with pytest.raises(MutationError, match="the old piece is there 0 times"):
        syntax.mutate(mutation("qm.writers.Reader.read", "self.note(count)", "None"))


@pytest.mark.usefixtures("package")
def test_a_piece_that_another_definition_of_the_module_has_is_told() -> None:
    lost = mutation("qm.readers.Reader.peek", "self.note(count)", "None")
    with pytest.raises(MutationError, match=r"not there, but in qm\.readers\.Reader\.read$"):
        syntax.mutate(lost)


def test_the_data_is_written_anew_when_a_module_has_moved(package: Path, tmp_path: Path) -> None:
    data = '''\
# A comment stays.
[[mutation]]
rule = "It is counted."
at = "{place}.Reader.read"  # so do these
old = "self.note( count )"
new = "None"
test = "tests/unit/test.py::test_reading"

[[mutation]]
rule = "at = \\"qm.readers.Reader\\""
at = "{place}.Reader.read"
old = """
raise ValueError(count)
"""
new = "pass"
test = "tests/unit/test.py::test_reading"
'''
    path = tmp_path / "some.toml"
    path.write_text(data.format(place="qm.readers"))
    (package.parent / "far").mkdir()
    package.rename(package.parent / "far" / "columns.py")
    moves = Moves()
    moves.follow(tmp_path)
    assert path.read_text() == data.format(place="qm.far.columns")
    assert moves.told == ["qm.readers.Reader.read is now qm.far.columns.Reader.read"] * 2
    assert moves.lost == []


def test_the_command_writes_what_has_moved_and_tells_what_is_lost(tmp_path: Path) -> None:
    moved, lost = "base.gone.HResult.MQ_ERROR", "base.hresult.HResult.MQ_ERROR_GONE"
    mutations = (moved, "0xC00E0001", "7"), (lost, "1", "2")
    done = tried(tmp_path, *mutations, options=["--moved"])
    assert done.returncode == 1
    assert f"{moved} is now {ERROR}\n" in done.stdout
    assert f"nothing is named {lost}\n1 moved, 1 not found\n" in done.stdout
    assert f'\nat = "{ERROR}"\n' in (tmp_path / "some.toml").read_text()
    assert f'\nat = "{lost}"\n' in (tmp_path / "some.toml").read_text()


@pytest.mark.usefixtures("package")
def test_one_of_equal_places_is_named_by_its_number() -> None:
    changed = syntax.mutate(mutation("qm.Reader", "wait=True", "wait=False", nth=2))
    assert "def peek(self, count):\n        return self.take(count, wait=False)" in changed.source
    assert "wait=True" in changed.source


def test_words_of_a_declaration_of_the_idl_can_be_changed() -> None:
    changed = mutate_idl(mutation("idl.remoteread.R_CloseCursor", "[in]  DWORD", "[in] USHORT"))
    assert "HRESULT R_CloseCursor(" in changed.source
    assert changed.source.count("[in] USHORT hCursor") == 1
    with pytest.raises(MutationError, match="no longer applies"):
        mutate_idl(mutation("idl.remoteread.R_CloseCursor", "DWORD hCursors", ""))


def test_a_process_that_a_test_starts_is_mutated_too(tmp_path: Path) -> None:
    change = change_of(mutation("base.hresult.HResult.MQ_ERROR", "0xC00E0001", "7"), tmp_path)
    variables = os.environ | hook.environment(tmp_path, change)
    program = "from rpcqm.base.hresult import HResult; print(HResult.MQ_ERROR.value)"
    command = [sys.executable, "-c", program]
    told = [
        subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=True).stdout
        for env in (variables, None)
    ]
    assert told == [b"7\n", b"3222142977\n"]


def test_a_queue_manager_that_a_test_starts_is_mutated_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "f\"rpcqm {metadata.version('rpcqm')}\""
    change = change_of(mutation("cli.main._Version.__call__", told, "'mutated'"), tmp_path)
    for name, value in hook.environment(tmp_path, change).items():
        monkeypatch.setenv(name, value)
    assert PrivateQueueManager(tmp_path / "data").run("--version").stdout == "mutated\n"


def tried(
    tmp_path: Path, *mutations: tuple[str, str, str], options: Sequence[str] = ("--verbose",)
) -> subprocess.CompletedProcess[str]:
    """What scripts/mutate says to these: each a place, the old piece and the new."""
    text = "".join(
        f'[[mutation]]\npoints = ["MQMQ-error-0xC00E0001"]\nat = "{at}"\nold = "{old}"\n'
        f'new = "{new}"\ntest = "{CODES}[MQ_ERROR]"\n'
        for at, old, new in mutations
    )
    (tmp_path / "some.toml").write_text(text)
    command = [sys.executable, "-m", "tests.mutations", *options, "--directory", str(tmp_path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


ERROR = "base.hresult.HResult.MQ_ERROR"
OTHER = "base.hresult.HResult.MQ_ERROR_IO_TIMEOUT"


def test_a_mutation_that_its_test_notices_is_caught(tmp_path: Path) -> None:
    done = tried(tmp_path, (ERROR, "0xC00E0001", "0xC00E0E01"))
    assert done.returncode == 0, done.stdout
    assert f"caught: MQMQ-error-0xC00E0001: {ERROR}" in done.stdout
    assert "1 of 1 mutations: 1 caught" in done.stdout


def test_tests_of_one_file_run_together_without_a_mutation(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not pass then is run again alone."""
    runs: list[tuple[list[str], bool]] = []

    class Ended:
        def __init__(self, tests: list[str], changed: bool) -> None:
            bad = Outcome(failures=["no"])
            alone = tests == ["a.py::second"]
            good = {test: test != "a.py::second" or alone for test in tests}
            self.outcomes = {
                test: bad if changed or not good[test] else Outcome(passed=1) for test in tests
            }

        def ended(self) -> dict[str, Outcome]:
            return self.outcomes

    def start(tests: list[str], changed: Mutation | None, seconds: float) -> Ended:
        runs.append((tests, changed is not None))
        return Ended(tests, changed is not None)

    monkeypatch.setattr(campaign, "start", start)
    first, second, third = tests = ["a.py::first", "a.py::second", "b.py::third"]
    some = [Mutation((), "qm", "1", "2", test, rule="It is.") for test in tests]
    tried = campaign.Campaign(1, lambda judgement: None)
    assert [judgement.fate for judgement in tried.judge(some)] == [Fate.CAUGHT] * 3
    assert runs == [
        ([first, second], False),
        ([first], True),
        ([second], True),
        ([second], False),
        ([third], True),
        ([third], False),
    ]
    runs.clear()
    tried.judge(some)
    assert runs == [([first], True), ([second], True), ([third], True)]


def test_the_run_fails_when_one_survives_or_no_longer_applies(tmp_path: Path) -> None:
    done = tried(tmp_path, (OTHER, "0xC00E001B", "0xC00E0E1B"), (ERROR, "8", "9"))
    assert done.returncode == 1
    assert f"survived: MQMQ-error-0xC00E0001: {OTHER}" in done.stdout
    assert f"no longer applies: MQMQ-error-0xC00E0001: {ERROR}" in done.stdout
    assert "1 survived, 1 no longer applies" in done.stdout


def test_what_only_keeps_the_product_from_loading_is_not_caught(tmp_path: Path) -> None:
    done = tried(tmp_path, ("base.hresult.HResult", "enum.IntEnum", "enum.Nothing"))
    assert done.returncode == 1
    assert "keeps the product from being imported" in done.stdout


@pytest.mark.parametrize(
    ("mutated", "without", "fate"),
    [
        (Outcome(failures=["no"]), Outcome(passed=1), Fate.CAUGHT),
        (Outcome(failures=[TOOK_TOO_LONG]), Outcome(passed=1), Fate.STOPPED),
        (Outcome(failures=[TOOK_TOO_LONG]), Outcome(failures=[TOOK_TOO_LONG]), Fate.UNPROVED),
        (Outcome(failures=["no"]), Outcome(), Fate.UNPROVED),
    ],
)
def test_what_is_caught_by_time_alone_is_told_apart(
    mutated: Outcome, without: Outcome, fate: Fate
) -> None:
    steps = trial(mutation("a", "b", "c"), {})
    next(steps)
    steps.send(mutated)
    with pytest.raises(StopIteration) as ended:
        steps.send(without)
    assert ended.value.value.fate is fate
    assert fate.is_good == (fate in (Fate.CAUGHT, Fate.STOPPED))


@pytest.mark.parametrize("divided", [shard, block])
@pytest.mark.parametrize("count", [1, 3, 10, 12])
def test_shards_are_together_all_mutations(divided: Divided, count: int) -> None:
    some = [mutation("a", "b", str(number)) for number in range(10)]
    parts = [part for index in range(1, count + 1) for part in divided(some, index, count)]
    assert sorted(parts, key=some.index) == some


@pytest.mark.parametrize("first", ["2026-12-10", "2028-02-15", "2027-05-03"])
def test_so_many_days_after_each_other_try_all_mutations(first: str) -> None:
    some = [mutation("a", "b", str(number)) for number in range(100)]
    start = datetime.date.fromisoformat(first)
    days = [start + datetime.timedelta(number) for number in range(30)]
    parts = [shard_of_day(some, 30, day) for day in days]
    assert sorted((one for part in parts for one in part), key=some.index) == some
    assert shard_of_day(some, 30, start) == shard_of_day(some, 30, start + datetime.timedelta(30))


def test_the_command_tries_the_part_of_the_given_day(tmp_path: Path) -> None:
    """Each of the two days has one of the two; those that no longer apply are told."""
    both = (ERROR, "8", "9"), (OTHER, "8", "9")
    days = "2026-01-01", "2026-01-02", "2026-01-03"
    told = [
        tried(tmp_path, *both, options=("--shard-of-day", "2", "--day", day)).stdout.splitlines()
        for day in days
    ]
    assert [lines[-1] for lines in told] == ["1 of 1 mutations: 1 no longer applies"] * 3
    assert told[0] == told[2] != told[1]


def test_all_mutations_apply() -> None:
    for one in sorted(read_mutations(), key=lambda one: one.at):
        require_place(one)
        require_test(one)


@pytest.mark.parametrize(
    "test",
    [
        "tests/unit/nowhere/test_nothing.py::test_x",
        "tests/unit/mutations/test_mutations.py::test_that_was_renamed[case]",
        "tests/unit/mutations/test_mutations.py",
    ],
)
def test_a_mutation_whose_test_has_gone_does_not_apply(test: str) -> None:
    with pytest.raises(MutationError, match="there is no test"):
        require_test(Mutation(("MQRR-op-7",), "qm.readers", "1", "2", test))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table of evidence as the command writes it, which finds no mistake in the data."""
    target = tmp_path_factory.mktemp("evidence") / "made" / "table.md"
    command = [sys.executable, "-m", "tests.mutations", "--table", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{target}: 0 mistakes\n"), done.stderr
    return target.read_text("utf-8")


def test_the_table_has_a_mutation_for_every_claimed_point(table: str) -> None:
    figures = re.findall(r"^## (\S+)\n\n(\d+) of (\d+) claimed points have a mutation", table, re.M)
    assert {"MS-MQMP", "MS-MQRR", "MS-MQQB", "MC-MQAC"} <= {document for document, _, _ in figures}
    assert [covered for _, covered, _ in figures] == [claimed for _, _, claimed in figures]
    assert table.count("| open |") == 0


def test_the_table_has_every_rule_of_our_own(table: str) -> None:
    rules = table[table.index("\n## Rules of our own\n") :]
    for one in read_mutations():
        assert not one.rule or f"| {one.rule} |" in rules


def test_a_point_that_a_test_claims_and_no_mutation_denies_is_a_mistake() -> None:
    one = mutation("qm.readers.Reader", "5", "6")
    claims = {one.test: ["MQRR-op-7"], "tests/unit/test.py::test_more": ["MQRR-op-8"]}
    assert evidence.mistakes(claims, [one]) == ["MQRR-op-8 needs a mutation"]
    assert "| MQRR-op-8 | 3.1.4.8 |" in evidence.table(claims, [one])


def test_a_mutation_whose_test_does_not_claim_its_point_is_a_mistake() -> None:
    one = mutation("qm.readers.Reader", "5", "6")
    told = evidence.mistakes({one.test: []}, [one])
    assert told == [f"{one.test} does not claim MQRR-op-7"]


def test_each_folder_that_tells_a_door_is_there() -> None:
    gone = [folder for folder in evidence.DOORS if not any(ROOT.glob(f"{folder}*"))]
    assert gone == []


def test_a_door_is_told_in_one_of_a_few_words() -> None:
    told = {one.door for one in read_mutations() if one.door}
    assert told <= {*evidence.DOORS.values(), "in-process", "serve"}
