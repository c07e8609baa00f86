"""What scripts/windows-check.d/windows/objects.ps1 asks objects, asked here by a client of ours.

Each method that is named after a question gives its answer in the form of the file of answers.
"""

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from rpcqm.base.errors import RpcFault
from rpcqm.codec.automation.values import EMPTY, SafeArray, Variant
from rpcqm.codec.types.mqvalues import VARENUM
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import NO, YES, Objects, number, octets, text
from tests.support.dcom.dcom_client import ComError, Reference

OWN = ".\\private$\\wcheck-"
RECEIVE, SEND, PEEK, ADMINISTRATE = 1, 2, 32, 128
NOW, WAIT = number(0), number(5000)
FULL_RECEIVE = 14
_NAMES: dict[int, str] = {
    VARENUM.VT_BSTR: "String",
    VARENUM.VT_I2: "Int16",
    VARENUM.VT_I4: "Int32",
    VARENUM.VT_R8: "Double",
    VARENUM.VT_BOOL: "Boolean",
    VARENUM.VT_DATE: "DateTime",
    VARENUM.VT_CY: "Decimal",
}
"""What .NET makes of each type."""
_FIRST_DAY = datetime.datetime(1899, 12, 30)
EVENING = (datetime.datetime(2026, 5, 26, 20) - _FIRST_DAY) / datetime.timedelta(days=1)


def escaped(value: str) -> str:
    """A text as check.ps1 writes it."""
    units = memoryview(value.encode("utf-16-le")).cast("H")
    return "".join(
        chr(unit) if 33 <= unit <= 126 and unit != 92 else f"\\u{unit:04x}" for unit in units
    )


def said(value: object) -> str:
    """An answer about a value: a Variant, an object, or nothing."""
    if value is None or value == EMPTY:
        return "nothing"
    if not isinstance(value, Variant):
        return "value __ComObject"
    inside = value.value
    if isinstance(inside, SafeArray):
        assert isinstance(inside.values, bytes)
        return f"value Byte[] {inside.values.hex().upper() or '-'}"
    if value.vt == VARENUM.VT_DATE:
        assert isinstance(inside, float)
        moment = _FIRST_DAY + datetime.timedelta(days=inside)
        return f"value DateTime {moment:%Y-%m-%dT%H:%M:%S},Unspecified"
    shown = f"{inside.normalize():f}" if isinstance(inside, Decimal) else str(inside)
    return f"value {_NAMES[value.vt]} {escaped(shown)}"


class Asked:
    """The questions, asked of the queue manager of `objects` by an administrator.

    `wait_for` waits until something is so.
    """

    def __init__(self, objects: Objects, wait_for: Callable[[Callable[[], object]], None]) -> None:
        self._objects = objects
        self._wait_for = wait_for

    def answers(self) -> Iterator[tuple[str, str]]:
        """Question and answer, in the order in which check.ps1 asks."""
        for name in sorted(name for name in vars(Asked) if name[0] == "a" and name[1:].isdigit()):
            try:
                answer = getattr(self, name)()
            except (ComError, RpcFault) as refused:
                answer = f"0x{int(refused.status) & 0xFFFFFFFF:08X}"
            yield name.upper(), "ok" if answer is None else answer

    # What the functions of the script do

    def _call(self, reference: Reference, operation: str, *arguments: object) -> Any:
        return self._objects.com.call(reference, operation, *arguments)

    def _info(self, name: str) -> Reference:
        return self._objects.queue_info(OWN + name)

    def _named(self, name: str) -> Reference:
        info = self._objects.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        self._objects.put(info, "FormatName", name)
        return info

    def _made(self, name: str, *, transactional: bool = False) -> Reference:
        info = self._info(name)
        self._call(info, "Create", YES if transactional else NO, NO)
        return info

    def _open(self, name: str, access: int, share: int = 0) -> Reference:
        opened = self._call(self._info(name), "Open", access, share)
        assert isinstance(opened, Reference)
        return opened

    def _message(self, **properties: object) -> Reference:
        message = self._objects.message()
        for name, value in properties.items():
            self._objects.put(message, name, value)
        return message

    def _send(self, name: str, body: Variant | None, transaction: object = None) -> None:
        queue = self._open(name, SEND)
        message = self._message(**({} if body is None else {"Body": body}))
        self._call(message, "Send", queue, transaction)
        self._call(queue, "Close")

    def _receive(self, queue: Reference, time: Variant = NOW, transaction: object = None) -> Any:
        return self._call(queue, "Receive", transaction, None, None, time, None)

    def _first(self, name: str) -> Any:
        queue = self._open(name, RECEIVE)
        message = self._receive(queue, WAIT)
        self._call(queue, "Close")
        return message

    def _back(self, body: Variant | None) -> str:
        self._send("bodies", body)
        return said(self._objects.get(self._first("bodies"), "Body"))

    def _joined(self) -> tuple[Reference, Variant]:
        """A transaction, and how it is given to a method."""
        maker = self._objects.create(
            clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3"
        )
        begun = self._call(maker, "BeginTransaction")
        return begun, Variant(VARENUM.VT_DISPATCH, begun)

    def _reporting(self, **properties: object) -> Reference:
        """A message that asks for reports."""
        message = self._message(Ack=FULL_RECEIVE, **properties)
        self._call(message, "putref_AdminQueueInfo", self._info("reports"))
        return message

    def _class(self) -> str:
        """The class of the next report."""
        return f"class 0x{self._objects.get(self._first('reports'), 'Class'):04X}"

    def _class_after(
        self, name: str, do: Callable[[], object], transaction: object = None, **properties: object
    ) -> str:
        queue = self._open(name, SEND)
        self._call(self._reporting(**properties), "Send", queue, transaction)
        self._call(queue, "Close")
        do()
        return self._class()

    # Names

    def a00(self) -> None:
        self._objects.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")

    def a01(self) -> None:
        self._made("one")

    def a02(self) -> None:
        self._made("one")

    def a03(self) -> None:
        self._made("a,b")

    def a04(self) -> None:
        self._made("x" * 118)

    def a05(self) -> None:
        info = self._info("label")
        self._objects.put(info, "Label", "x" * 125)
        self._call(info, "Create", NO, NO)

    def a06(self) -> None:
        info = self._info("type")
        self._objects.put(info, "ServiceTypeGuid", "none")
        self._call(info, "Create", NO, NO)

    def a07(self) -> str:
        return f"text {self._objects.get(self._info('one'), 'FormatName')}".partition("=")[0]

    def a08(self) -> str:
        return "yes" if self._objects.get(self._info("new"), "PathName") == OWN + "new" else "no"

    def a09(self) -> None:
        self._open("absent", RECEIVE)

    def a10(self) -> None:
        self._call(self._info("absent"), "Delete")

    def a11(self) -> None:
        self._call(self._named("DIRECT=XX:1"), "Open", SEND, 0)

    def a12(self) -> None:
        self._open("one", 3)

    def a13(self) -> None:
        self._open("one", SEND, 1)

    def a14(self) -> None:
        self._call(self._named("MULTICAST=234.1.1.1:8001"), "Open", SEND, 0)

    def a15(self) -> None:
        self._made("\xe4")
        self._open("\xc4", SEND)

    def a16(self) -> None:
        self._made("\xdf")
        self._open("ss", SEND)

    def a17(self) -> str:
        return f"number {self._objects.get(self._info('one'), 'Quota')}"

    # Sharing and reading

    def _beside_exclusive(self, access: int) -> None:
        first = self._open("one", RECEIVE, 1)
        try:
            self._call(self._open("one", access), "Close")
        finally:
            self._call(first, "Close")

    def a20(self) -> None:
        self._beside_exclusive(RECEIVE)

    def a21(self) -> None:
        self._beside_exclusive(SEND)

    def a22(self) -> None:
        self._beside_exclusive(PEEK)

    def a30(self) -> str:
        return said(self._receive(self._open("one", RECEIVE)))

    def a31(self) -> str:
        return said(self._call(self._open("one", RECEIVE), "Peek", None, None, NOW, None))

    def a32(self) -> str:
        return said(self._call(self._open("one", RECEIVE), "PeekNext", None, None, NOW, None))

    def a33(self) -> str:
        self._send("one", text("x"))
        queue = self._open("one", RECEIVE)
        self._call(queue, "PeekCurrent", None, None, WAIT, None)
        return said(self._call(queue, "PeekNext", None, None, NOW, None))

    def a34(self) -> str:
        arguments = (text("1"), None, None, None, None)
        return said(self._call(self._open("one", RECEIVE), "ReceiveByLookupId", *arguments))

    def a35(self) -> None:
        self._receive(self._open("one", RECEIVE), NOW, text("text"))

    def a36(self) -> None:
        self._receive(self._open("one", RECEIVE), Variant(VARENUM.VT_R8, 4294967996.0))

    def a37(self) -> None:
        self._call(self._message(), "Send", self._open("one", RECEIVE), None)

    def _closed(self) -> Reference:
        queue = self._open("one", RECEIVE)
        self._call(queue, "Close")
        return queue

    def a38(self) -> None:
        self._receive(self._closed())

    def a39(self) -> str:
        return f"number {self._objects.get(self._closed(), 'Access')}"

    def a40(self) -> None:
        self._receive(self._open("one", SEND))

    def a41(self) -> None:
        queue = self._call(self._made("going"), "Open", RECEIVE, 0)
        self._call(self._info("going"), "Delete")
        self._receive(queue)

    def a42(self) -> str:
        return said(self._objects.get(self._message(), "ResponseQueueInfo"))

    # Bodies

    def a50(self) -> str:
        self._made("bodies")
        return self._back(text("two apples"))

    def a51(self) -> str:
        return self._back(number(42))

    def a52(self) -> str:
        return self._back(Variant(VARENUM.VT_I2, 42))

    def a53(self) -> str:
        return self._back(Variant(VARENUM.VT_R8, 1.5))

    def a54(self) -> str:
        return self._back(YES)

    def a55(self) -> str:
        return self._back(Variant(VARENUM.VT_DATE, EVENING))

    def a56(self) -> str:
        return self._back(Variant(VARENUM.VT_CY, Decimal("12.5")))

    def a57(self) -> str:
        return self._back(octets(b"\0\1\xff"))

    def a58(self) -> str:
        return self._back(None)

    # Transactions

    def a60(self) -> None:
        self._made("steps", transactional=True)
        self._send("steps", text("x"), number(0))

    def a61(self) -> None:
        self._send("steps", text("x"), number(3))

    def a62(self) -> None:
        self._send("one", text("x"), number(3))

    def a63(self) -> None:
        self._send("one", text("x"), text("text"))

    def a64(self) -> None:
        transaction, _ = self._joined()
        for _ in range(2):
            self._call(transaction, "Commit", None, None, None)

    def a65(self) -> None:
        transaction, joined = self._joined()
        queue = self._open("steps", RECEIVE)
        self._receive(queue, WAIT, joined)
        self._call(transaction, "Abort", None, None)
        self._receive(queue, WAIT)

    def a66(self) -> str:
        self._made("reports")

        def purged() -> None:
            transaction, joined = self._joined()
            queue = self._open("steps", RECEIVE)
            self._receive(queue, WAIT, joined)
            self._call(queue, "Purge")
            self._call(transaction, "Abort", None, None)

        return self._class_after("steps", purged, number(3))

    # Sending

    def a70(self) -> str:
        message = self._message(MaxTimeToReceive=5)
        self._call(message, "Send", self._open("one", SEND), None)
        return f"number {self._objects.get(message, 'MaxTimeToReachQueue')}"

    def a71(self) -> None:
        self._message(Priority=9)

    def a72(self) -> None:
        self._call(self._message(AuthLevel=1), "Send", self._open("one", SEND), None)

    def a73(self) -> None:
        self._call(self._message(PrivLevel=1), "Send", self._open("one", SEND), None)

    def a74(self) -> None:
        self._send("one", octets(bytes(4_250_000)))

    def a75(self) -> None:
        info = self._made("small")
        self._objects.put(info, "Quota", 1)
        self._call(info, "Update")
        self._send("small", octets(bytes(4000)))

    # Reports

    def a80(self) -> str:
        self._made("taken")
        return self._class_after("taken", lambda: self._first("taken"))

    def a81(self) -> str:
        self._made("purged")
        queue = self._open("purged", RECEIVE)
        return self._class_after("purged", lambda: self._call(queue, "Purge"))

    def a82(self) -> str:
        self._made("deleted")
        return self._class_after("deleted", lambda: self._call(self._info("deleted"), "Delete"))

    def _waiting(self, name: str) -> bool:
        """Whether anything lies in a queue."""
        return bool(self._objects.bodies(OWN + name))

    def a83(self) -> str:
        self._made("late")
        return self._class_after(
            "late",
            lambda: self._wait_for(lambda: not self._waiting("late")),
            MaxTimeToReceive=1,
        )

    def a84(self) -> str:
        name = "DIRECT=OS:wcheck.invalid\\private$\\nowhere"
        message = self._reporting()
        self._call(message, "Send", self._call(self._named(name), "Open", SEND, 0), None)
        queue = self._call(self._named(name), "Open", RECEIVE | ADMINISTRATE, 0)
        self._call(queue, "Purge")
        return self._class()

    def a85(self) -> str:
        message = self._message(Label="wcheck letter", Journal=1, MaxTimeToReceive=1)
        self._call(message, "Send", self._open("late", SEND), None)
        self._wait_for(lambda: not self._waiting("late"))
        letters = self._call(self._named(r"DIRECT=OS:.\SYSTEM$;DEADLETTER"), "Open", PEEK, 0)
        letter = self._call(letters, "PeekCurrent", None, None, WAIT, None)
        while self._objects.get(letter, "Label") != "wcheck letter":
            letter = self._call(letters, "PeekNext", None, None, WAIT, None)
        return f"class 0x{self._objects.get(letter, 'Class'):04X}"

    # Managing

    def _version(self, name: str) -> str:
        made = self._objects.create(clsids.MSMQ_APPLICATION, "IMSMQApplication3")
        return f"number {self._objects.get(made, name)}"

    def a90(self) -> str:
        return self._version("MSMQVersionMajor")

    def a91(self) -> str:
        return self._version("MSMQVersionMinor")

    def a92(self) -> str:
        made = self._objects.create(clsids.MSMQ_APPLICATION, "IMSMQApplication3")
        return "yes" if self._objects.get(made, "IsDsEnabled") else "no"

    def _managed(self, name: str) -> Reference:
        made = self._objects.create(clsids.MSMQ_MANAGEMENT, "IMSMQManagement")
        self._call(made, "Init", None, text(OWN + name), None)
        return made

    def a93(self) -> str:
        self._made("idle")
        return f"number {self._objects.get(self._managed('idle'), 'MessageCount')}"

    def a94(self) -> str:
        info = self._made("kept")
        for on in (1, 0):
            self._objects.put(info, "Journal", on)
            self._call(info, "Update")
            if on:
                self._send("kept", text("x"))
                self._first("kept")
        self._open("kept", RECEIVE)
        made = self._objects.com.query_interface(self._managed("kept"), "IMSMQQueueManagement")
        told = self._objects.get(made, "BytesInJournal")
        assert isinstance(told, Variant)
        return "yes" if told.value else "no"
