"""`rpcqm capture show`, `export` and `dissector`, as they are typed."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rpcqm.cli.main import main
from tests.support.accounts import PASSWORD
from tests.support.capture.captures import CLIENT, SERVER, ethernet, ipv4, pcap, tcp
from tests.support.codec.packets import user_message

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
NONE, PRIVACY = CAPTURES / "impacket-none.pcapng", CAPTURES / "impacket-privacy.pcapng"
KEYTAB = CAPTURES / "kerberos.keytab"
ACCOUNT = f"alice:{PASSWORD}"
KEYS = [
    *("time", "client", "server", "protocol", "interface", "opnum", "name", "object"),
    *("status", "status_name", "duration_ms", "sealed", "request", "response"),
]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(["capture", *map(str, words)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def objects(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, object]]:
    status, out, err = run(capsys, "show", *words, "--json")
    assert (status, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def test_calls_and_conversations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "show", NONE)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    opened = next(line for line in lines if "R_OpenQueue " in line and "MQ_OK" in line)
    assert "RemoteRead.R_OpenQueue" in opened
    assert r"queue=DIRECT=TCP:127.0.0.1\private$\impacket-1" in opened
    assert any("MQ_ERROR_QUEUE_NOT_FOUND" in line for line in lines)
    assert "27 calls in 4 conversations" in out


def test_an_object_has_exactly_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = objects(capsys, NONE)
    assert all(list(each) == KEYS for each in found)
    peek = next(each for each in found if each["name"] == "R_StartReceive")
    assert peek["interface"] == "RemoteRead"
    assert (peek["opnum"], peek["status"], peek["status_name"]) == (7, 0, "MQ_OK")
    assert str(peek["time"]).endswith("Z")
    assert isinstance(peek["duration_ms"], float)
    assert isinstance(peek["request"], dict)
    assert peek["request"]["ulAction"] == 0x80000000
    assert isinstance(peek["response"], dict)
    assert len(bytes.fromhex(peek["response"]["ppPacketSections"][0]["pSectionBuffer"])) == 440


def test_sealed_calls_are_shown_with_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "show", PRIVACY, "--json")
    assert status == 0
    assert err.endswith(f"{PRIVACY}: 2 problems: 2 sealed.\n")
    assert "that stay sealed: 24; no account was given\n" in err
    sealed = [each for each in map(json.loads, out.splitlines()) if each["sealed"]]
    assert len(sealed) == 25
    assert all(each["status"] is None for each in sealed if each["name"] == "R_StartReceive")
    assert {"size": 56} in [each["request"] for each in sealed]
    assert "sealed 56/492" in run(capsys, "show", PRIVACY)[1]


def test_an_account_unseals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    file.write_text(f"bob:other\nCORP\\alice:{PASSWORD}\n")
    for account in (ACCOUNT, f"X\\alice:{PASSWORD}", str(file)):
        found = objects(capsys, PRIVACY, "--account", "eve:x", "--account", account)
        assert not any(each["sealed"] for each in found)
        statuses = Counter(each["status_name"] for each in found)
        assert statuses["MQ_ERROR_IO_TIMEOUT"] == 2


def test_packets_tell_by_their_place_who_sent_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = objects(capsys, CAPTURES / "binary.pcapng")
    assert all(list(each) == KEYS for each in found)
    assert all((each["request"] is None) != (each["response"] is None) for each in found)
    names = Counter((each["name"], each["response"] is None) for each in found)
    assert names["EstablishConnection", True] == names["EstablishConnection", False] == 4
    assert (names["OrderAck", True], names["OrderAck", False]) == (0, 3)
    assert names["UserMessage", False] == 0


@pytest.mark.parametrize("status", ["MQ_ERROR_IO_TIMEOUT", "mq_error_io_timeout", "0xC00E001B"])
def test_a_status_is_a_name_or_a_number(capsys: pytest.CaptureFixture[str], status: str) -> None:
    assert len(objects(capsys, NONE, "--status", status)) == 2


@pytest.mark.parametrize("option", ["--keytab", "--account"])
def test_a_keytab_unseals(capsys: pytest.CaptureFixture[str], option: str) -> None:
    found = objects(capsys, CAPTURES / "impacket-kerberos.pcapng", option, KEYTAB)
    assert not any(each["sealed"] for each in found)
    assert Counter(each["status_name"] for each in found)["MQ_ERROR_IO_TIMEOUT"] == 2


def test_what_is_no_keytab_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    damaged = tmp_path / "keytab"
    for octets in (KEYTAB.read_bytes()[:40], b"alice:x"):
        damaged.write_bytes(octets)
        status, _, err = run(capsys, "show", NONE, "--keytab", damaged)
        assert (status, err.count("\n")) == (2, 1)
        assert err.startswith("rpcqm: --keytab: ")
    status, _, err = run(capsys, "show", NONE, "--keytab", tmp_path / "none")
    assert (status, "cannot be read: No such file" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--interface", "qmmgmt"], {"R_QMMgmtGetInfo"}),
        (["--interface", "41208ee0-e970-11d1-9b9e-00e02c064c39"], {"R_QMMgmtGetInfo"}),
        (["--interface", "remoteread", "--opnum", "9"], {"R_EndReceive"}),
        (["--opnum", "R_MoveMessage"], {"R_MoveMessage"}),
        (["--status", "MQ_ERROR_QUEUE_NOT_FOUND"], {"R_OpenQueue"}),
        (["--status", "0xC00E0003"], {"R_OpenQueue"}),
        (["--queue", "later"], {"R_OpenQueueForMove", "R_CloseQueue"}),
        (["--message-id", "\\7", "--opnum", "7"], {"R_StartReceive"}),
    ],
)
def test_filters_let_through_what_fits(
    capsys: pytest.CaptureFixture[str], words: list[str], names: set[str]
) -> None:
    found = objects(capsys, NONE, *words)
    assert {each["name"] for each in found} == names
    assert len(found) < 20


def test_every_field_is_told_with_its_offset(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "show", NONE, "--full", "--opnum", "R_StartReceive")
    assert "    24 +8     LookupId = 0\n" in out
    assert "ppPacketSections[0].pSectionBuffer.#pointer" in out
    assert "MessagePropertiesHeader.Label = 'to impacket'" in out
    assert "early" not in out


def test_packets_of_the_binary_protocol_are_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    packet = user_message(label="by binary")
    frames = []
    for number in range(3):
        body = tcp(CLIENT, (SERVER[0], 1801), 100 + number * len(packet), packet)
        frames.append(ethernet(ipv4(CLIENT[0], SERVER[0], body)))
    path = tmp_path / "binary.pcap"
    path.write_bytes(pcap(frames))
    found = objects(capsys, path)
    assert [each["name"] for each in found] == ["UserMessage"] * 3
    assert {each["protocol"] for each in found} == {"MS-MQQB"}
    assert isinstance(found[0]["request"], dict)
    assert found[0]["request"]["label"] == "by binary"
    assert "label='by binary'" in run(capsys, "show", path)[1]
    assert "MessagePropertiesHeader.Label = 'by binary'" in run(capsys, "show", path, "--full")[1]


def test_a_damaged_capture_is_told_and_read_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    octets = NONE.read_bytes()
    path = tmp_path / "damaged.pcapng"
    path.write_bytes(octets[:5000] + b"\xff" * 20 + octets[5000:-7])
    status, out, err = run(capsys, "show", path)
    assert status == 0
    assert f"{path}:" in err
    assert "problems: " in err
    assert "R_MoveMessage" in out


def test_what_is_no_capture_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"no capture")
    assert run(capsys, "show", path) == (
        1,
        "",
        f"rpcqm: {path} is no capture of pcap, pcapng or Network Monitor 2:"
        " it begins with 6e 6f 20 63.\n",
    )
    assert run(capsys, "show", tmp_path / "none")[0] == 1
    assert run(capsys, "show", NONE, "--account", "nobody")[0] == 2
    assert run(capsys, "show", NONE, "--status", "MQ_OKAY")[0] == 2


def test_json_lines_and_parquet_have_the_same_calls(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines, columns = tmp_path / "calls.jsonl", tmp_path / "calls.parquet"
    assert run(capsys, "export", NONE, "--output", lines)[0] == 0
    assert run(capsys, "export", NONE, "--format", "parquet", "--output", columns)[0] == 0
    told = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert told == objects(capsys, NONE)
    table = pq.read_table(columns).to_pylist()
    assert [row["name"] for row in table] == [each["name"] for each in told]
    assert [json.loads(row["request"]) for row in table] == [each["request"] for each in told]
    assert table[4]["queue"].endswith("impacket-1")
    assert run(capsys, "export", NONE, "--format", "parquet")[0] == 2


def test_the_dissector_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rpcqm.lua"
    assert run(capsys, "dissector", "--output", path)[0] == 0
    text = path.read_text("utf-8")
    assert text == run(capsys, "dissector")[1]
    assert "1a9134dd-7b39-45ba-ad88-44d01ca47f28" in text


def test_commands_that_need_no_capture_load_none_of_it() -> None:
    code = (
        "import sys, rpcqm.cli.main as m; m.build_parser(); print('rpcqm.capture' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
