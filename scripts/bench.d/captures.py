"""Reading captures: `rpcqm capture show` and the analysis, against tshark on the same file."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Figure

from rpcqm.capture.analysis import analyse
from rpcqm.capture.dissector import dissector
from rpcqm.capture.problems import Problems
from rpcqm.capture.writing import CaptureWriter
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.rpc.pdu import (
    Bind,
    BindAck,
    ContextAnswer,
    ContextElement,
    Request,
    Response,
    SyntaxId,
)

SIZE = 20_000_000
CONNECTIONS = 16
BEGIN = 1_700_000_000_000_000_000
SMALL, LARGE = 0, 1100
_NDR = SyntaxId(TransferSyntax.NDR.uuid, TransferSyntax.NDR.version)


def _stubs(body: int) -> tuple[bytes, bytes]:
    """A request of R_StartReceive, and a failure or `body` octets of stub data as its answer."""
    operation = load("remoteread").operation("R_StartReceive")
    request = operation.request_class(
        phContext=bytes(range(20)),
        LookupId=0,
        hCursor=0,
        ulAction=0,
        ulTimeout=0,
        dwRequestId=5,
        dwMaxBodySize=4096,
        dwMaxCompoundMessageSize=4096,
    )
    response = operation.response_class(
        pdwArriveTime=0,
        pSequenceId=0,
        pdwNumberOfSections=0,
        ppPacketSections=[],
        result=0xC00E001B,
    )
    stub = operation.encode_response(TransferSyntax.NDR, response)
    return operation.encode_request(TransferSyntax.NDR, request), stub + bytes(body)


def generate(path: Path, body: int, size: int = SIZE) -> int:
    """A capture of about `size` octets; how many calls it holds."""
    interface = load("remoteread")
    element = ContextElement(0, SyntaxId(interface.uuid, *interface.version), (_NDR,))
    bind = Bind(call_id=1, max_xmit_frag=5840, max_recv_frag=5840, p_context_elem=(element,)).pack()
    ack = BindAck(
        call_id=1,
        max_xmit_frag=5840,
        max_recv_frag=5840,
        assoc_group_id=5,
        sec_addr=b"2103",
        p_result_list=(ContextAnswer(0, 0, _NDR),),
    ).pack()
    request, response = _stubs(body)
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        now, number = BEGIN, 2
        server = ("10.0.1.1", 2103)
        made = [
            writer.connection(now, (f"10.0.0.{n + 1}", 40000 + n), server)
            for n in range(CONNECTIONS)
        ]
        for each in made:
            each.client_sent(now, bind)
            each.server_sent(now, ack)
        while file.tell() < size:
            asked = Request(call_id=number, p_cont_id=0, opnum=7, stub_data=request).pack()
            told = Response(call_id=number, p_cont_id=0, stub_data=response).pack()
            for each in made:
                now += 10_000
                each.client_sent(now, asked)
                each.server_sent(now + 5_000, told)
            number += 1
    return (number - 2) * CONNECTIONS


def _cpu(command: list[str]) -> float:
    """The CPU seconds of a program, which do not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nothing:
        subprocess.run(command, stdout=nothing, stderr=nothing, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _tshark(path: Path, *options: str) -> float:
    command = ["tshark", "-r", str(path), "-d", "tcp.port==2103,dcerpc", "-T", "fields"]
    return _cpu([*command, "-e", "frame.time_epoch", "-e", "ip.src", "-e", "ip.dst", *options])


def _measured(path: Path, what: str, script: Path) -> list[Figure]:
    show = _cpu([sys.executable, "-m", "rpcqm", "capture", "show", str(path)])
    opnum = _tshark(path, "-e", "dcerpc.opnum")
    fields = ("rpcqm.method", "rpcqm.status_name", "rpcqm.field")
    same = _tshark(path, "-X", f"lua_script:{script}", *(w for f in fields for w in ("-e", f)))
    note = f"show {show:.2f} s of CPU for {path.stat().st_size / 1e6:.0f} MB"
    return [
        Figure(
            f"capture show, {what}, against tshark telling the same", same / show, 10, note=note
        ),
        Figure(f"capture show, {what}, against tshark's opnum column", opnum / show, 10, note=note),
    ]


def _analysis(path: Path, calls: int, what: str) -> Figure:
    count = [0]

    def take(_: object) -> None:
        count[0] += 1

    began = time.process_time()
    analyse(path, take, Problems())
    seconds = time.process_time() - began
    assert count[0] == calls
    rate = path.stat().st_size / 1e6 / seconds
    return Figure(f"captured calls paired, {what}", rate, unit="MB/s", note="one core")


def run() -> list[Figure]:
    """Small and large stubs; tshark's figures only where it is installed."""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "rpcqm.lua"
        script.write_text(dissector(), "utf-8")
        for what, body in (("small stubs", SMALL), ("1.1 KiB stubs", LARGE)):
            path = Path(name) / "capture.pcapng"
            calls = generate(path, body)
            figures.append(_analysis(path, calls, what))
            if shutil.which("tshark"):
                figures += _measured(path, what, script)
    return figures
