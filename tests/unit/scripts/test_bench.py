"""scripts/bench: how figures are told, and that its C peers do what they say."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.waiting import until

ROOT = Path(__file__).parents[3]

BIND, BIND_ACK, REQUEST, RESPONSE, FAULT = 11, 12, 0, 2, 3


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "scripts" / "bench.d")
    return import_module("harness")


@pytest.fixture
def figures(harness: ModuleType) -> Any:
    return import_module("figures")


@pytest.fixture
def measuring(harness: ModuleType) -> Any:
    return import_module("measuring")


@pytest.fixture
def compiler() -> None:
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("no C compiler is installed (Debian package gcc)")


def pdu(ptype: int, body: bytes = b"", call_id: int = 0) -> bytes:
    length = (16 + len(body)).to_bytes(2, "little")
    head = bytes([5, 0, ptype, 3, 16, 0, 0, 0]) + length + bytes(2)
    return head + call_id.to_bytes(4, "little") + body


@pytest.mark.parametrize(
    ("value", "target", "at_most", "met"),
    [
        (0.5, 0.45, False, True),
        (0.44, 0.45, False, False),
        (3.9, 4, True, True),
        (4.1, 4, True, False),
        (1, None, False, True),
    ],
)
def test_a_figure_is_held_against_its_target(
    figures: Any, value: float, target: float | None, at_most: bool, met: bool
) -> None:
    assert figures.Figure("calls", value, target, at_most=at_most).met is met


def test_a_missed_target_is_said_plainly(figures: Any, measuring: Any) -> None:
    figure = figures.Figure("null calls, level NONE", 0.4, 0.45, note="10/s against 25/s")
    told = measuring.line(figure)
    assert "null calls, level NONE: 0.4 times   (target at least 0.45: MISSED)" in told
    assert "10/s against 25/s" in told
    assert measuring.report([outcome(measuring, figure)]) == "1 figures, 1 missed"


def test_a_row_tells_the_setting_it_needs_where_it_was_not_quiet_and_its_profile(
    figures: Any, measuring: Any
) -> None:
    figure = figures.Figure("sends", 2, 1, unprotected=True, stolen=0.2, profile=("50 % f",))
    told = measuring.line(figure)
    assert "allow_unprotected_rpc = true, allow_nonauthenticated_rpc = true" in told
    assert "not quiet: 20% of the processors' time was stolen" in told
    assert told.endswith("50 % f")
    assert "not quiet" not in measuring.line(figures.Figure("sends", 2, 1, stolen=0.05))
    assert measuring.report([outcome(measuring, figure)]) == "1 figures, 0 missed, 1 not quiet"


def outcome(measuring: Any, *figures: Any) -> Any:
    machine = import_module("machine").Machine("2 of a kind", "Linux", "ext4", "3.11")
    return measuring.Outcome("rpc", figures, 1.0, 0.0, 0.0, 9000.0, "2026-01-02", machine)


def spend(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_what_is_measured_in_this_process_is_profiled_here(figures: Any) -> None:
    missed = figures.Figure("codec", 0.5, 1).explained(os.getpid(), lambda: spend(0.3))
    assert "spend" in missed.profile[1]


def test_a_command_is_profiled_from_its_start_to_its_end(harness: ModuleType) -> None:
    command = f"{BUSY.partition('print')[0]}spend(0.3)"
    profile = import_module("sampling").sampled_command([sys.executable, "-c", command])
    assert "spend" in profile[1]
    failed = import_module("sampling").sampled_command(
        [sys.executable, "-c", "raise SystemExit(3)"]
    )
    assert failed == ("no profile: the command ended with status 3",)


BUSY = """
import time
def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
print(flush=True)
while input():
    spend(0.3)
    print(flush=True)
"""


def test_a_missed_row_is_profiled_by_functions_of_the_server(figures: Any, tmp_path: Path) -> None:
    environment = import_module("sampling").environment(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", BUSY],
        env=os.environ | environment,
        text=True,
        stdin=pipe,
        stdout=pipe,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()

        talk_to, hear = server.stdin, server.stdout

        def again() -> None:
            talk_to.write("again\n")
            talk_to.flush()
            hear.readline()

        missed = figures.Figure("sends", 0.5, 1).explained(server.pid, again)
        met = figures.Figure("sends", 1, 1).explained(server.pid, again)
        talk_to.write("\n")
    assert "spend" in missed.profile[1]
    assert len(missed.profile) <= 12
    assert met.profile == ()


def test_the_broker_is_installed_before_its_port_mapper_starts(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker = import_module("broker")
    monkeypatch.setattr(broker, "SCRIPTS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "apt-get").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'test $1 = update && exit 0\necho "no such package" >&2\nexit 1\n'
    )
    (tmp_path / "apt-get").chmod(0o755)
    with (
        pytest.raises(
            import_module("figures").UnavailableError,
            match="install rabbitmq-server: no such package",
        ),
        broker.mapper(tmp_path),
    ):
        pass
    assert "rabbitmq-server" in (tmp_path / "asked").read_text()


def test_figures_are_written_as_json(figures: Any, measuring: Any, tmp_path: Path) -> None:
    found = outcome(measuring, figures.Figure("calls", 2, 1))
    measuring.write_json(tmp_path / "figures.json", [found])
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["benches"]["rpc"][0]["name"] == "calls"
    assert written["benches"]["rpc"][0]["met"] is True


def test_pairs_are_interleaved_and_told_by_their_median(harness: Any) -> None:
    rates = iter([10, 5, 30, 10, 40, 10])
    measured = harness.pairs(lambda: next(rates), lambda: next(rates), rounds=3)
    assert measured.ratios == (2, 3, 4)
    assert (measured.ratio, measured.ours, measured.theirs) == (3, 30, 10)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("connections", [1, 5])
def test_the_load_generator_calls_the_limit_server(harness: Any, connections: int) -> None:
    script = harness.Script(once=[pdu(BIND)], loop=[pdu(REQUEST, b"stub")], tail=b"done")
    with harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE, b"well done")) as port:
        seen = harness.load(port, connections, script, seconds=0.05, warm_up=0)
    assert seen.calls_per_second > 0
    assert 0 < seen.p50_us <= seen.p99_us


@pytest.mark.usefixtures("compiler")
def test_the_limit_server_logs_each_call(harness: Any, tmp_path: Path) -> None:
    request, log = pdu(REQUEST, b"durable", call_id=2), tmp_path / "log"
    script = harness.Script(once=[pdu(BIND)], loop=[request])
    with harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE), log) as port:
        harness.load(port, 2, script, seconds=0.05, warm_up=0)
    kept = log.read_bytes()
    assert kept.startswith(request * 2)
    assert kept.rstrip(b"\0").count(b"durable") * len(request) == len(kept.rstrip(b"\0"))


@pytest.mark.usefixtures("compiler")
def test_bytes_of_an_answer_go_into_the_loop(harness: Any, tmp_path: Path) -> None:
    script = harness.Script(
        once=[pdu(BIND), pdu(REQUEST, b"open")],
        loop=[pdu(REQUEST, b"....")],
        copy=[harness.Copy(reply=1, start=16, length=4, loop=0, to=16)],
    )
    with harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE, b"HAND"), tmp_path / "log") as port:
        harness.load(port, 1, script, seconds=0.05, warm_up=0)
    opened, filled = pdu(REQUEST, b"open"), pdu(REQUEST, b"HAND", call_id=2)
    assert (tmp_path / "log").read_bytes().startswith(opened + filled)


@pytest.mark.usefixtures("compiler")
def test_calls_that_are_outstanding_have_numbers_and_handles_of_their_own(
    harness: Any, tmp_path: Path
) -> None:
    script = harness.Script(
        once=[pdu(BIND), pdu(REQUEST, b"open")],
        loop=[pdu(REQUEST, b"....")],
        copy=[harness.Copy(reply=1, start=16, length=4, loop=0, to=16)],
        window=3,
    )
    with harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE, b"HAND"), tmp_path / "log") as port:
        harness.load(port, 1, script, seconds=0.05, warm_up=0)
    opened = pdu(REQUEST, b"open") * 3
    calls = b"".join(pdu(REQUEST, b"HAND", call_id) for call_id in (2, 3, 4))
    assert (tmp_path / "log").read_bytes().startswith(opened + calls)


@pytest.mark.usefixtures("compiler")
def test_a_load_of_so_many_calls_ends_after_them(harness: Any, tmp_path: Path) -> None:
    script = harness.Script(once=[pdu(BIND)], loop=[pdu(REQUEST, b"counted")])
    with harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE), tmp_path / "log") as port:
        seen = harness.load(port, 3, script, 0, 0, calls=200)
    assert 200 <= seen.calls < 203


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("window", [1, 8])
def test_prepared_calls_are_sent_once_and_in_order(
    harness: Any, tmp_path: Path, window: int
) -> None:
    prepared = [pdu(REQUEST, b"call %03d" % number, 70_000 + number) for number in range(50)]
    (tmp_path / "calls").write_bytes(b"".join(prepared))
    logged = (tmp_path / "log").read_bytes
    with (
        harness.limit_server(pdu(BIND_ACK), pdu(RESPONSE), tmp_path / "log") as port,
        socket.create_connection(("127.0.0.1", port)) as bound,
    ):
        streams = {bound.fileno(): tmp_path / "calls"}
        seen = harness.load_streams(streams, seconds=20, warm_up=0, window=window)
        # The load ends with its file; the server may still have some calls to log.
        until(lambda: logged().count(b"call ") == len(prepared))
    assert 50 - window < seen.calls <= 50
    assert 0 < seen.p99_us < 20_000_000
    assert logged().rstrip(b"\0") == b"".join(prepared)


def test_the_time_of_a_process_includes_those_it_has_started(harness: Any) -> None:
    busy = "import os, time\nif os.fork() == 0:\n"
    busy += "    while time.process_time() < 0.2: pass\n    print(flush=True)\n    time.sleep(3)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{busy}\ntime.sleep(60)"], stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"\n"
        assert harness.processor_seconds(started.pid) >= 0.19
        started.kill()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (pdu(FAULT), "not a response"),
        (pdu(RESPONSE, b"wrong"), "does not end as it must"),
    ],
)
def test_a_wrong_answer_stops_the_load(harness: Any, answer: bytes, reason: str) -> None:
    script = harness.Script(once=[pdu(BIND)], loop=[pdu(REQUEST)], tail=b"right")
    with (
        harness.limit_server(pdu(BIND_ACK), answer) as port,
        pytest.raises(RuntimeError, match=reason),
    ):
        harness.load(port, 1, script, seconds=0.05, warm_up=0)


@pytest.mark.usefixtures("compiler")
def test_what_the_sender_of_differing_messages_counts_is_in_the_queue(harness: Any) -> None:
    sessions = import_module("sessions")
    harness.BUILD.mkdir(parents=True, exist_ok=True)
    with sessions.queue_manager("receiver") as served:
        served.run("queue", "create", "stream", "--transactional")
        port = served.endpoint("binary")[1]
        seen = sessions.received(port, "stream", 2, True, seconds=3, warm_up=0, differing=True)
        shown = json.loads(served.run("queue", "show", "stream", "--json").stdout)
    assert 0 < seen.calls <= shown["messages"] <= seen.calls + 2 * 4096
