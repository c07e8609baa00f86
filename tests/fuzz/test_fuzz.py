"""Every target with some inputs, inputs that once did harm, and the oracles themselves."""

import time
from collections.abc import Hashable, Iterator
from pathlib import Path
from random import Random

import pytest

from rpcqm.base.errors import DecodeError
from tests.fuzz import target
from tests.fuzz.__main__ import main
from tests.fuzz.campaign import Campaign
from tests.fuzz.mutation import LONGEST, mutated_stream, split_stream
from tests.fuzz.target import Oracles, Run, Target, Violation
from tests.fuzz.targets import TARGETS, inputs_of, silenced
from tests.fuzz.targets_codec import fed_by
from tests.support.rpc.probe import bind, request

INPUTS = 50_000
FOUND = Path(__file__).parent / "found"
"""Inputs that did harm once: TARGET-WHAT.hex."""

_shares = inputs_of(list(TARGETS), INPUTS)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    with silenced():
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_does_harm(name: str, tmp_path: Path) -> None:
    campaign = Campaign(TARGETS[name], 1, tmp_path)
    assert campaign.run(_shares[name]).crashes == []


def test_as_many_inputs_are_fed_as_promised() -> None:
    assert sum(_shares.values()) >= INPUTS


def test_what_did_harm_does_none_any_more() -> None:
    for path in sorted(FOUND.glob("*.hex")):
        fed = next(each for name, each in TARGETS.items() if path.stem.startswith(f"{name}-"))
        octets = bytes.fromhex(path.read_text("ascii"))
        with fed.open() as run:
            Oracles(fed.declared).feed(run, octets)
            Oracles(fed.declared).feed(run, octets, traced=True)


# The oracles.


def breaks(octets: bytes) -> Hashable:
    if octets.startswith(b"once a declared error"):
        raise DecodeError("as it should be")
    if len(octets) > 21:
        raise IndexError("nobody declared this")
    return len(octets)


def target_of(function: Run) -> Target:
    return Target("sample", lambda: [b"once a declared error"], fed_by(function), (DecodeError,))


def test_an_undeclared_error_is_found_and_written(tmp_path: Path) -> None:
    report = Campaign(target_of(breaks), 1, tmp_path).run(3000)
    assert report.crashes == ["sample-0.hex: undeclared IndexError: nobody declared this"]
    assert len(bytes.fromhex((tmp_path / "sample-0.hex").read_text("ascii"))) > 21


def test_too_much_memory_is_found() -> None:
    def wasteful(octets: bytes) -> Hashable:
        return len([octets] * 2_000_000)

    with pytest.raises(Violation, match="KiB of Python's memory"):
        Oracles().feed(wasteful, b"octets", traced=True)


def test_a_growing_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert target._peak_resident() > 10 << 20
    peaks = iter([100 << 20, 120 << 20, 180 << 20])
    monkeypatch.setattr(target, "_peak_resident", lambda: next(peaks))
    oracles = Oracles()
    assert oracles.feed(len, b"octets") == 6
    with pytest.raises(Violation, match="60 MiB for one input"):
        oracles.feed(len, b"octets")


def test_too_much_time_is_found() -> None:
    def endless(octets: bytes) -> Hashable:
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            pass
        return None

    with pytest.raises(Violation, match="s for one input"):
        Oracles(seconds=0.01).feed(endless, b"octets")


def test_a_run_can_be_repeated() -> None:
    fed: list[list[bytes]] = [[], []]
    for inputs in fed:

        def note(octets: bytes, inputs: list[bytes] = inputs) -> Hashable:
            inputs.append(octets)
            return len(octets)

        Campaign(target_of(note), 5).run(500)
    assert fed[0] == fed[1]
    assert len(set(fed[0])) > 300
    assert max(map(len, fed[0])) <= LONGEST


def test_streams_are_cut_into_their_pdus() -> None:
    pdus = [bind(), request(0), request(1, b"big", big_endian=True), b"\5rest"]
    assert split_stream(b"".join(pdus)) == pdus


def test_most_changed_streams_still_consist_of_pdus() -> None:
    random, stream = Random(1), bind() + request(1, b"octets") + request(1, b"more", 2)
    changed = [split_stream(mutated_stream(random, stream, [stream])) for _ in range(200)]
    whole = [
        all(len(each) == int.from_bytes(each[8:10], "little") for each in pdus) for pdus in changed
    ]
    assert sum(whole) > 100


# The command.


def test_the_command_names_its_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(TARGETS)


def test_the_command_runs_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = ["--state", str(tmp_path), "--page", str(tmp_path / "page.md")]
    assert main(["--inputs", "200", "tower", *kept]) == 0
    assert "200 inputs, 0 violations" in capsys.readouterr().out
    row = (tmp_path / "page.md").read_text("utf-8").splitlines()[-1]
    assert row.startswith("| fuzz | well | 200 inputs, 0 violations, at most ")
    assert row.endswith("`scripts/fuzz tower --inputs 200` |")


def test_the_command_goes_on_with_the_targets_that_were_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--inputs", "200", "tower", "sddl", "--state", str(tmp_path)]
    assert main([*words, "--parts", "1"]) == 1
    assert "fuzz: 1 of 2 parts: " in capsys.readouterr().out
    assert main(words) == 0
    told = capsys.readouterr().out
    assert told.startswith("sddl ")
    assert "fuzz: 2 of 2 parts: 200 inputs" in told


def test_the_command_replays_an_input(tmp_path: Path) -> None:
    path = tmp_path / "input.hex"
    path.write_text("0500\n", "ascii")
    assert main(["tower", "--replay", str(path)]) == 0
