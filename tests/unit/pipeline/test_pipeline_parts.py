"""The parts of the pipeline that need no Spark."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.look import style
from rpcqm.pipeline.column_tables import file_tables
from rpcqm.pipeline.compare import same_request
from rpcqm.pipeline.conform import HandleStates, conformance_point
from rpcqm.pipeline.flow_index import packed, unpacked
from rpcqm.pipeline.html import Report
from rpcqm.pipeline.table_files import TableWriter, counted
from tests.support.capture.captures import pcapng, segment
from tests.support.capture.traffic import traffic

FRAMES = [segment(1000 + 7 * n, bytes([n % 251]) * (n % 90 + 5)) for n in range(300)]
HANDLE = "00000000" + "11" * 16


def test_requests_are_the_same_whatever_was_chosen_anew() -> None:
    one = {"phContext": HANDLE, "ulAction": 0, "dwRequestId": 5}
    other = {"phContext": HANDLE[::-1], "ulAction": 0, "dwRequestId": 6}
    assert same_request(json.dumps(one)) == same_request(json.dumps(other))
    assert same_request(json.dumps(one)) != same_request(json.dumps(one | {"ulAction": 1}))
    here = {"q": {"value": "TCP:192.0.2.1\\private$\\a"}}
    there = {"q": {"value": "TCP:192.0.2.9\\private$\\a"}}
    assert same_request(json.dumps(here)) == same_request(json.dumps(there))
    assert same_request(None) is None


def test_messages_over_http_are_the_same_whoever_sends_them_and_when() -> None:
    one: dict[str, Any] = {"id": r"{a}\1", "to": "http://here:8080/msmq/private$/q", "sent_at": 1}
    other = {"id": r"{b}\7", "to": "http://192.0.2.9/msmq/private$/q", "sent_at": 2}
    assert same_request(json.dumps(one)) == same_request(json.dumps(other))
    elsewhere = other | {"to": "http://192.0.2.9/msmq/private$/p"}
    assert same_request(json.dumps(one)) != same_request(json.dumps(elsewhere))


def row(name: str, request: Any, response: Any, status: int = 0) -> dict[str, Any]:
    return {
        "name": name,
        "request": json.dumps(request),
        "response": None if response is None else json.dumps(response),
        "status": status,
    }


def test_answers_that_contradict_earlier_ones_are_found() -> None:
    state = HandleStates()
    null = "00" * 20
    receive = {"phContext": HANDLE, "ulAction": 0, "dwRequestId": 1}
    end = {"phContext": HANDLE, "dwRequestId": 1, "dwAck": 2}
    right = [
        row("R_OpenQueue", {}, {"pphContext": HANDLE}),
        row("R_StartReceive", receive, {"ppPacketSections": [{}]}),
        row("R_EndReceive", end, {"result": 0}),
        row("R_EndReceive", end, {"result": 0xC00E0007}, 0xC00E0007),
        row("R_CloseQueue", {"pphContext": HANDLE}, {"pphContext": null}),
        row("R_StartReceive", receive, None, 0x1C00001A),
    ]
    assert [rule for each in right for rule in state.take(each)] == []
    wrong = [
        row("R_StartReceive", receive, {"ppPacketSections": []}),
        row("R_EndReceive", end, {"result": 0}),
        row("R_OpenQueue", {}, {"pphContext": null}),
    ]
    assert [rule for each in wrong for rule in state.take(each)] == [
        "a handle that was closed is refused with a fault",
        "a read that succeeds gives a packet",
        "a handle that was closed is refused with a fault",
        "an open that succeeds gives a handle",
    ]


def test_methods_have_their_conformance_points() -> None:
    assert conformance_point("RemoteRead", 7) == "MQRR-op-7"
    assert conformance_point("qmcomm2", 1) == "MQMP-op-c2_1"
    assert conformance_point("RemoteRead", 1) is None
    assert conformance_point("ept", 3) is None


def test_a_report_is_a_page_and_json(tmp_path: Path) -> None:
    report = Report("A <title>")
    report.summary({"rows": 3})
    report.plot("Bars", [("a & b", 2.0), ("c", 1.0)])
    report.table("rows", "Rows", [{"name": "<x>", "value": 1.5}])
    report.write(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "A &lt;title&gt;" in page
    assert "a &amp; b" in page
    assert "&lt;x&gt;" in page
    told = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert told == {"summary": {"rows": 3}, "rows": [{"name": "<x>", "value": 1.5}]}


def test_a_report_tells_what_was_read_in_words_and_looks_like_the_console(tmp_path: Path) -> None:
    report = Report("Ingested captures")
    report.summary({"rows_in": {"calls": 139148, "files": 3}, "rejected": {}, "seconds": 2.5})
    report.table("rows", "Rows", [{"p50_ms": 1234567, "name": "left\u202eright"}])
    report.write(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<dt>Read</dt><dd>139,148 calls, 3 files</dd>" in page
    assert "<dt>Rejected</dt><dd>nothing</dd>" in page
    assert '<td class="number" data-value="1234567">1,234,567</td>' in page
    assert '<th scope="col" class="number">p50 ms</th>' in page
    assert r"left\u202eright" in page
    assert style() in page


def test_a_report_has_no_raw_values_and_says_when_a_table_is_cut(tmp_path: Path) -> None:
    report = Report("Traffic")
    cells = {"statuses": {"MQ_OK": 1200, "MQ_ERROR": 1}, "none": {}, "queues": ["a", "<b>"]}
    report.table("rows", "Rows", [{"name": str(number), **cells} for number in range(3)], most=2)
    report.write(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<td>1,200 MQ_OK, 1 MQ_ERROR</td><td></td><td>a, &lt;b&gt;</td>" in page
    assert "{" not in re.sub("(?s)<style.*?</style>|<script.*?</script>", "", page)
    assert "The first 2 are shown" in page
    told = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert [row["name"] for row in told["rows"]] == ["0", "1"]


@given(st.lists(st.integers(-(1 << 62), (1 << 62) - 1), min_size=1))
def test_packed_integers_come_back(values: list[int]) -> None:
    assert unpacked(packed(np.array(values)), len(values)).tolist() == values


def test_rows_are_written_by_day_and_interface(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcapng(traffic(1)))
    found = list(file_tables(("calls", "flows"), str(path), ()))
    writer = TableWriter(tmp_path / "staging")
    for table, batch in found:
        writer.write(table, batch)
    writer.close()
    calls = sum(len(batch) for table, batch in found if table == "calls")
    assert writer.rows["calls"] == calls
    (name,) = [name for name in writer.files if name.startswith("calls/")]
    assert name.startswith("calls/day=2023-11-14/interface=RemoteRead/part-")
    counts = counted(tmp_path / "staging" / "calls", "interface", "name")
    assert sum(int(str(row["count"])) for row in counts) == calls
    assert {row["name"] for row in counts} >= {"R_OpenQueue", "R_StartReceive"}
