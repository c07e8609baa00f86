"""Captures are played against a queue manager, and every difference is told."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rpcqm.cli.main import main
from rpcqm.testing import private
from rpcqm.testing.private import private_queue_manager
from tests.support.accounts import PASSWORD

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
FIXTURES = sorted(path for path in CAPTURES.glob("*.pcapng") if path.stem != "srmp")
"""Nobody has recorded the answers of the one over HTTP, which is made of samples."""
KEYTAB = CAPTURES / "kerberos.keytab"
FEWER_CALLS = {"samba-kerberos": 7, "binary": 20}
ACCOUNT = f"alice:{PASSWORD}"
WRONG_SERVER = (sys.executable, "-m", "tests.support.rpc.wrong_server")
WRONG_ACCEPTOR = (sys.executable, "-m", "tests.support.binary.wrong_acceptor")


def replay(path: Path, directory: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the result as JSON."""
    told = directory / "result.json"
    status = main(["capture", "replay", str(path), "--json", str(told), *words])
    return status, json.loads(told.read_text("utf-8"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_is_answered_alike(path: Path, tmp_path: Path) -> None:
    junit = tmp_path / "result.xml"
    keys = ("--account", ACCOUNT, "--keytab", str(KEYTAB))
    status, result = replay(path, tmp_path, "--in-process", *keys, "--junit", str(junit))
    assert [each for each in result["results"] if each["verdict"] != "same"] == []
    assert status == 0
    assert result["calls"] == result["same"] >= FEWER_CALLS.get(path.stem, 26)
    timed = [each for each in result["results"] if each["interface"] != "MS-MQQB"]
    assert all(each["live_ms"] is not None for each in timed)
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["failures"] == "0"
    assert len(suite) == result["calls"]


def test_a_wrong_method_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(private, "_COMMAND", WRONG_SERVER)
    junit = tmp_path / "result.xml"
    words = ("--in-process", "--junit", str(junit))
    status, result = replay(CAPTURES / "impacket-none.pcapng", tmp_path, *words)
    assert status == 1
    different = [each for each in result["results"] if each["verdict"] == "different"]
    names = Counter(each["name"] for each in different)
    assert names["R_CreateCursor"] == 1
    assert names["R_EndReceive"] == 0, "it says that all is well, but the message is still there"
    assert names["R_StartReceive"] >= 4
    (cursor,) = (each for each in different if each["name"] == "R_CreateCursor")
    by_field = {each["field"]: each for each in cursor["differences"]}
    assert by_field["R_CreateCursor.result"]["live"] == 0xC00E0027
    assert by_field["R_CreateCursor.result"]["rule"] == "exact"
    out = capsys.readouterr().out
    assert "RemoteRead.R_CreateCursor  R_CreateCursor.result: captured 0, live" in out
    suite = ElementTree.parse(junit).getroot()
    assert int(suite.attrib["failures"]) == len(different)


def test_a_wrong_acceptor_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another window in every session; transactions end with a FinalAck that nobody expects."""
    monkeypatch.setattr(private, "_COMMAND", WRONG_ACCEPTOR)
    status, result = replay(CAPTURES / "binary.pcapng", tmp_path, "--in-process")
    assert status == 1
    different = [each for each in result["results"] if each["verdict"] == "different"]
    by_field = Counter(each["field"] for found in different for each in found["differences"])
    window = "ConnectionParameters.ConnectionParametersHeader.WindowSize"
    sessions = {each["conversation"] for each in result["results"]}
    assert by_field[window] == len(sessions)
    assert by_field["FinalAck.#message"] == 4
    same = [each["name"] for each in result["results"] if each["verdict"] == "same"]
    assert same.count("EstablishConnection") == len(sessions)


def test_sealed_calls_without_their_account_are_skipped(tmp_path: Path) -> None:
    status, result = replay(CAPTURES / "impacket-privacy.pcapng", tmp_path, "--in-process")
    assert status == 0
    assert result["skipped"] == 25
    reasons = {each["reason"] for each in result["results"] if each["verdict"] == "skipped"}
    assert reasons == {"sealed; give --account"}


def test_a_server_elsewhere_needs_the_fixture(tmp_path: Path) -> None:
    """Without its queues and messages a server answers otherwise; with them it does not."""
    security = (
        "[security]\nallow_nonauthenticated_rpc = true\nallow_unprotected_rpc = true\n"
        "supporting_server = true\n"
    )
    path = CAPTURES / "impacket-none.pcapng"
    with private_queue_manager(configuration=security) as made:
        made.run(
            "user", "add", "admin", "--password-stdin", "--group", "administrators", input="x\n"
        )
        host, port = made.endpoint("epm")
        where = ("--server", f"{host}:{port}")
        status, result = replay(path, tmp_path, *where)
        assert status == 1
        assert result["different"] > 10
        account = ("--account", "admin:x")
        status, result = replay(path, tmp_path, *where, "--fixture", *account)
        assert [each for each in result["results"] if each["verdict"] != "same"] == []
        assert status == 0


def test_speed_is_kept(tmp_path: Path) -> None:
    words = ("--in-process", "--speed")
    path = CAPTURES / "impacket-none.pcapng"
    captured = replay(path, tmp_path, *words, "0.2")[1]["seconds"]
    fast = replay(path, tmp_path, *words, "max")[1]["seconds"]
    first, last = _span(path)
    assert captured >= (last - first) / 0.2
    assert fast < captured


def _span(path: Path) -> tuple[float, float]:
    from tests.support.capture.analysed import calls_of

    times = [call.time / 1e9 for call in calls_of(path)[0]]
    return min(times), max(times)


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "x"],
        ["replay", "x", "--in-process", "--server", "y"],
        ["replay", "x", "--in-process", "--speed", "fast"],
        ["replay", str(FIXTURES[0]), "--server", "host:port"],
    ],
)
def test_wrong_usage_is_told(words: list[str]) -> None:
    assert main(["capture", *words]) == 2


def test_a_server_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["capture", "replay", str(FIXTURES[0]), "--server", "127.0.0.1:1"])
    assert status == 3
    assert capsys.readouterr().err == "rpcqm: 127.0.0.1 cannot be reached: connection refused.\n"
