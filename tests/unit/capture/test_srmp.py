"""[MC-MQSRM] in captures: found on any port, with the kind, the stream and the answer of each."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rpcqm.capture.analysis import Exchange, analyse
from rpcqm.capture.columnar.analysis import analyse_columns
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.conversation.subjects import message_identifiers
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.writing import CaptureWriter
from rpcqm.capture.report import as_object, full, line
from rpcqm.capture.values import Plain
from rpcqm.cli.main import main
from tests.support.capture.analysed import calls_of
from tests.support.srmp import srmp_capture
from tests.support.srmp.srmp_capture import BEGIN, OK, TARGET, sample

CLIENT, SERVER = ("192.0.2.1", 50000), ("192.0.2.2", 8123)
STREAM = r"2744e4e1-2b48-43e8-b441-42745f280d53\4839986701558349830"


def srmp(path: Path = TARGET) -> list[SrmpExchange]:
    return [each for each in calls_of(path)[0] if isinstance(each, SrmpExchange)]


def told(path: Path) -> list[dict[str, Plain]]:
    return [as_object(each) for each in srmp(path)]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["capture", *map(str, words)]) == 0
    return capsys.readouterr().out


def recorded(path: Path, *pieces: tuple[bool, bytes]) -> Path:
    """A capture of one connection; each piece is what the client (true) or the server sent."""
    with path.open("wb") as file:
        connection = CaptureWriter(file).connection(BEGIN, CLIENT, SERVER)
        for number, (client, octets) in enumerate(pieces, 1):
            send = connection.client_sent if client else connection.server_sent
            send(BEGIN + number, octets)
    return path


def test_the_vector_is_what_its_generator_makes(tmp_path: Path) -> None:
    srmp_capture.write(tmp_path / "again.pcapng")
    assert (tmp_path / "again.pcapng").read_bytes() == TARGET.read_bytes()


def test_each_sample_of_the_specification_has_its_kind() -> None:
    assert Counter(each.name for each in srmp()) == {
        "UserMessage": 7,
        "DeliveryReceipt": 1,
        "CommitmentReceipt": 1,
        "StreamReceipt": 3,
        "POST": 1,
    }


def test_what_else_comes_by_http_is_no_conversation() -> None:
    opened: list[Conversation] = []
    found: list[Exchange] = []
    analyse(TARGET, found.append, problems := Problems(), opened=opened.append)
    assert [each.protocol for each in opened] == ["MC-MQSRM"] * 3
    assert not problems.total


def test_a_message_is_told_with_its_elements_and_its_answer() -> None:
    found = told(TARGET)[4]
    request, response = found["request"], found["response"]
    assert isinstance(request, dict)
    assert request["to"] == "http://machine2/msmq/private$/tsimpleq"
    assert request["id"] == r"{00000000-0000-0000-0000-000000000008}\1"
    stream = request["stream"]
    assert isinstance(stream, dict)
    assert (stream["stream_id"], stream["current"]) == (STREAM, 1)
    assert bytes.fromhex(str(request["body"])) == b"First Message"
    assert (found["status"], found["status_name"]) == (200, "200 OK")
    assert response == {"reason": "OK", "body": ""}
    assert found["opnum"] is None


def test_pipelined_messages_have_answers_of_their_own() -> None:
    stream = [each for each in srmp() if each.envelope is not None and each.envelope.stream]
    assert [each.status for each in stream] == [200, 200, 200]
    assert [each.request_size for each in stream] == [
        len(sample(name)) for name in srmp_capture.STREAM
    ]
    assert {each.response_size for each in stream} == {len(OK)}


def test_a_receipt_is_about_its_message() -> None:
    receipt = next(each for each in srmp() if each.name == "DeliveryReceipt")
    assert message_identifiers(receipt) == [
        r"{ac678228-2dd6-418b-b31f-0539ffeea853}\34826",
        r"{00000000-0000-0000-0000-000000000000}\1",
    ]


def test_what_is_no_message_is_told_with_the_reason() -> None:
    found = next(each for each in srmp() if each.name == "POST")
    request = as_object(found)["request"]
    assert isinstance(request, dict)
    assert str(request["error"]).startswith("it is no message: ")
    assert request["size"] == found.request_size
    assert found.status_name == "400 Bad Request"
    assert "(it is no message: " in line(found, "")


def test_every_element_is_printed_in_full() -> None:
    lines = full(srmp()[4])
    assert "  request, 1606 octets, record at " in lines[0]
    assert "         0 +37    first line = 'POST /msmq/private$/tsimpleq HTTP/1.1'" in lines[1]
    assert "    stream.current = 1" in lines
    assert "    body (13 octets) = 46 69 72 73 74 20 4d 65 73 73 61 67 65" in lines
    assert "    msmq.hash_algorithm = 32772" in lines
    assert any(each.endswith("first line = 'HTTP/1.1 200 OK'") for each in lines)


def test_the_list_in_columns_is_the_same(tmp_path: Path) -> None:
    found: list[Exchange] = []
    analyse_columns(
        TARGET,
        lambda singles, batch: found.extend(exchange for _, exchange in singles),
        Problems(),
    )
    assert [as_object(each) for each in found] == told(TARGET)


def test_filters_know_queues_messages_statuses_and_kinds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def numbers(*words: str) -> int:
        return len(run(capsys, "show", TARGET, "--json", *words).splitlines())

    assert numbers("--queue", "/tsimpleq") == 3
    assert numbers("--message-id", r"\34826") == 1
    assert numbers("--status", "400") == 1
    assert numbers("--opnum", "StreamReceipt") == 3
    assert numbers("--interface", "mc-mqsrm") == 13


def test_an_export_has_a_row_for_each_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "calls.parquet"
    run(capsys, "export", TARGET, "--format", "parquet", "--output", path)
    rows = pq.read_table(path).to_pylist()
    assert [row["name"] for row in rows] == [each.name for each in srmp()]
    assert rows[0]["queue"] == "DIRECT=http://machine2/msmq/private$/simpleq"
    assert rows[3]["queue"] == "MULTICAST=234.1.1.1:8001"
    assert json.loads(rows[0]["request"])["action"] == "MSMQ:mqsender label"
    assert rows[0]["request_size"] == len(sample("4.1_simple"))


# On any port, from any point on.


def test_messages_are_found_on_any_port_behind_other_requests(tmp_path: Path) -> None:
    page = b"GET /a/page HTTP/1.1\r\nHost: h\r\n\r\n"
    path = recorded(
        tmp_path / "one.pcapng",
        (True, page),
        (False, OK),
        (True, sample("4.1_simple")),
        (False, OK),
        (True, page),
        (False, OK),
    )
    assert [each.name for each in srmp(path)] == ["UserMessage", "GET"]


@pytest.mark.parametrize(
    "header",
    [
        b'SOAPAction: "MSMQMessage"',
        b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 5"; type=text/xml',
    ],
)
def test_a_request_is_known_by_its_soap_action_or_its_boundary(
    tmp_path: Path, header: bytes
) -> None:
    request = b"POST /somewhere HTTP/1.1\r\nContent-Length: 0\r\n" + header + b"\r\n\r\n"
    assert len(srmp(recorded(tmp_path / "one.pcapng", (True, request)))) == 1


def test_a_post_of_something_else_is_no_message(tmp_path: Path) -> None:
    head = b"POST /msmq/x HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2"
    request = head + b"\r\n\r\n{}"
    assert not srmp(recorded(tmp_path / "one.pcapng", (True, request), (False, OK)))


def test_a_request_that_was_never_answered_is_told_as_such(tmp_path: Path) -> None:
    (found,) = srmp(recorded(tmp_path / "one.pcapng", (True, sample("4.1_simple"))))
    assert (found.status, found.duration_ms) == (None, None)
    assert found.name == "UserMessage"
    assert "no answer" in line(found, "")
    assert as_object(found)["response"] is None


@pytest.mark.parametrize("name", ["4.1_simple", "4.4_first_receipt"])
@pytest.mark.parametrize("cut", [30, 300, -1])
def test_a_request_that_is_cut_is_told_and_not_read(tmp_path: Path, name: str, cut: int) -> None:
    found = srmp(recorded(tmp_path / "one.pcapng", (True, sample(name)[:cut])))
    assert [each.name for each in found] == (["POST"] if cut != 30 else [])
    assert all("ended within it" in each.note for each in found)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_the_same_requests_and_answers() -> None:
    command = ["tshark", "-r", str(TARGET), "-Y", "http", "-T", "json", "-e", "http.request.uri"]
    command += ["-e", "http.response.code", "-e", "http.content_length"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    layers = [each["_source"]["layers"] for each in json.loads(done.stdout)]
    uris = [uri for each in layers for uri in each.get("http.request.uri", ()) if uri != "/"]
    codes = [int(code) for each in layers for code in each.get("http.response.code", ())]
    assert uris == [each.asked.first[1] for each in srmp()]
    assert [code for code in codes if code != 404] == [each.status for each in srmp()]
