"""A client's object that takes events, whose PDUs, stubs and references are impacket's.

impacket's own server knows no alter_context, and its answers of RemQueryInterface and Invoke lack
what an array and a reference need; here its classes are put together as the specifications say.
"""

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dtypes import NULL
from impacket.dcerpc.v5.ndr import NDRPOINTER, NDRUniConformantArray
from impacket.dcerpc.v5.rpcrt import (
    DCERPC,
    MSRPC_ALTERCTX,
    MSRPC_ALTERCTX_R,
    MSRPC_BIND,
    MSRPC_BINDACK,
    MSRPC_CONT_RESULT_ACCEPT,
    MSRPC_CONT_RESULT_PROV_REJECT,
    CtxItem,
    CtxItemResult,
    MSRPCBind,
    MSRPCBindAck,
    MSRPCHeader,
    MSRPCRequestHeader,
    MSRPCRespHeader,
)

from rpcqm.codec.automation.values import EMPTY, Variant
from tests.support.dcom.impacket_variants import read_variant, write_variant
from tests.support.dcom.impacket_walker import Invoke, InvokeResponse

TCP = 7
IUNKNOWN = UUID("00000000-0000-0000-c000-000000000046")
_OXID, _OID = 0x1111, 0x2222
_TRANSFER_SYNTAX_UNKNOWN = 2


class _Results(NDRUniConformantArray):  # type: ignore[misc]
    item = dcomrt.REMQIRESULT


class _PResults(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", _Results),)


class _QueryInterfaceResponse(dcomrt.DCOMANSWER):  # type: ignore[misc]
    structure = (("ppQIResults", _PResults), ("ErrorCode", oaut.error_status_t))


class ImpacketSink(socketserver.ThreadingTCPServer):
    """`told` are the members of `iid` that were called, with their arguments.

    `released` is how many references came back.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, iid: UUID) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.iid = iid
        self.unknown, self.events, self.remote_unknown = uuid4(), uuid4(), uuid4()
        self.told: list[tuple[int, list[Variant]]] = []
        self.released = 0
        interfaces: dict[bytes, dict[int, Callable[[bytes, bytes], Any]]] = {
            dcomrt.IID_IObjectExporter: {1: self._ping, 2: self._ping, 4: self._resolve},
            dcomrt.IID_IRemUnknown: {3: self._query_interface, 5: self._release},
            iid.bytes_le + bytes(4): {6: self._invoke},
        }
        self.interfaces = interfaces

    @property
    def _bindings(self) -> tuple[list[int], int]:
        """The words of a DUALSTRINGARRAY for this server, and where its security begins."""
        place = f"127.0.0.1[{self.server_address[1]}]"
        strings = [TCP, *map(ord, place), 0, 0]
        return [*strings, 0, 0], len(strings)

    def objref(self) -> bytes:
        """The reference that its client hands over."""
        words, security = self._bindings
        made = dcomrt.OBJREF_STANDARD()
        made["iid"] = IUNKNOWN.bytes_le
        made["std"] = _standard(self.unknown)
        made["saResAddr"] = struct.pack(f"<HH{len(words)}H", len(words), security, *words)
        octets: bytes = made.getData()
        return octets

    # IObjectExporter.

    def _resolve(self, stub: bytes, _: bytes) -> Any:
        assert dcomrt.ResolveOxid2(stub)["pOxid"] == _OXID
        words, security = self._bindings
        response = dcomrt.ResolveOxid2Response()
        bindings = response["ppdsaOxidBindings"]
        bindings["wNumEntries"], bindings["wSecurityOffset"] = len(words), security
        bindings["aStringArray"] = words
        response["pipidRemUnknown"] = self.remote_unknown.bytes_le
        response["pAuthnHint"] = 1
        response["pComVersion"]["MajorVersion"], response["pComVersion"]["MinorVersion"] = 5, 7
        return response

    def _ping(self, stub: bytes, _: bytes) -> Any:
        return dcomrt.SimplePingResponse()

    # IRemUnknown.

    def _query_interface(self, stub: bytes, ipid: bytes) -> Any:
        request = dcomrt.RemQueryInterface(stub)
        assert (ipid, request["ripid"]) == (self.remote_unknown.bytes_le, self.unknown.bytes_le)
        assert [each["Data"] for each in request["iids"]] == [self.iid.bytes_le]
        result = dcomrt.REMQIRESULT()
        result["hResult"] = 0
        result["std"] = _standard(self.events, request["cRefs"])
        response = _answer(_QueryInterfaceResponse)
        response["ppQIResults"].append(result)
        return response

    def _release(self, stub: bytes, _: bytes) -> Any:
        for each in dcomrt.RemRelease(stub)["InterfaceRefs"]:
            self.released += each["cPublicRefs"]
        return _answer(dcomrt.RemReleaseResponse)

    # IDispatch.

    def _invoke(self, stub: bytes, ipid: bytes) -> Any:
        assert ipid == self.events.bytes_le
        request = Invoke(stub)
        arguments = [read_variant(each) for each in request["pDispParams"]["rgvarg"]]
        self.told.append((request["dispIdMember"], arguments[::-1]))
        response = _answer(InvokeResponse)
        write_variant(response["pVarResult"], EMPTY)
        for name in ("bstrSource", "bstrDescription", "bstrHelpFile"):
            response["pExcepInfo"][name] = NULL
        response["rgVarRef"] = []
        return response


def _standard(ipid: UUID, references: int = 5) -> Any:
    std = dcomrt.STDOBJREF()
    std["flags"], std["cPublicRefs"] = 0, references
    std["oxid"], std["oid"], std["ipid"] = _OXID, _OID, ipid.bytes_le
    return std


def _answer(kind: Any) -> Any:
    made = kind()
    made["ORPCthat"]["flags"] = 0
    made["ORPCthat"]["extensions"] = NULL
    return made


class _Connection(socketserver.BaseRequestHandler):
    """One connection: what comes is read by impacket's headers, and answered by them."""

    server: ImpacketSink
    request: socket.socket

    def handle(self) -> None:
        contexts: dict[int, bytes] = {}
        while octets := self._pdu():
            packet = MSRPCHeader(octets)
            if packet["type"] in (MSRPC_BIND, MSRPC_ALTERCTX):
                answer = _bound(packet, contexts, self.server)
            else:
                answer = self._responded(MSRPCRequestHeader(octets), contexts)
            self.request.sendall(answer.get_packet())

    def _pdu(self) -> bytes:
        """What came, b"" at the end."""
        head = self._octets(16)
        return head and head + self._octets(struct.unpack_from("<H", head, 8)[0] - 16)

    def _octets(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.request.recv(count - len(found))
            if not more:
                return b""
            found += more
        return found

    def _responded(self, request: Any, contexts: dict[int, bytes]) -> Any:
        method = self.server.interfaces[contexts[request["ctx_id"]]][request["op_num"]]
        answer = MSRPCRespHeader()
        answer["call_id"], answer["ctx_id"] = request["call_id"], request["ctx_id"]
        answer["pduData"] = method(request["pduData"], request["uuid"]).getData()
        answer["alloc_hint"] = len(answer["pduData"])
        return answer


def _bound(packet: Any, contexts: dict[int, bytes], server: ImpacketSink) -> Any:
    """The answer to a bind or an alter_context; accepted contexts are remembered."""
    port, known = server.server_address[1], set(server.interfaces)
    bind = MSRPCBind(packet["pduData"])
    answer = MSRPCBindAck()
    alter = packet["type"] == MSRPC_ALTERCTX
    answer["type"] = MSRPC_ALTERCTX_R if alter else MSRPC_BINDACK
    answer["call_id"], answer["assoc_group"] = packet["call_id"], 0x1234
    answer["max_tfrag"], answer["max_rfrag"] = bind["max_tfrag"], bind["max_rfrag"]
    answer["SecondaryAddr"] = str(port)
    answer["SecondaryAddrLen"] = len(str(port)) + 1
    answer["Pad"] = bytes(-(answer["SecondaryAddrLen"] + MSRPCBindAck._SIZE) % 4)
    items = bind["ctx_items"]
    answer["ctx_num"] = bind["ctx_num"]
    for _ in range(bind["ctx_num"]):
        item = CtxItem(items)
        items = items[len(item) :]
        answer["ctx_items"] += _result(item, contexts, known).getData()
    answer["frag_len"] = len(answer.getData())  # impacket counts only what is in pduData
    return answer


def _result(item: Any, contexts: dict[int, bytes], known: set[bytes]) -> Any:
    result = CtxItemResult()
    is_known = item["AbstractSyntax"] in known and item["TransferSyntax"] == DCERPC.NDRSyntax
    result["Result"] = MSRPC_CONT_RESULT_ACCEPT if is_known else MSRPC_CONT_RESULT_PROV_REJECT
    result["Reason"] = 0 if is_known else _TRANSFER_SYNTAX_UNKNOWN
    result["TransferSyntax"] = DCERPC.NDRSyntax if is_known else bytes(20)
    if is_known:
        contexts[item["ContextID"]] = item["AbstractSyntax"]
    return result


@contextlib.contextmanager
def impacket_sink(iid: UUID) -> Iterator[ImpacketSink]:
    """An object on loopback, and its resolver at the same port."""
    with ImpacketSink(iid) as sink:
        thread = threading.Thread(target=sink.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield sink
        finally:
            sink.shutdown()
            thread.join()
