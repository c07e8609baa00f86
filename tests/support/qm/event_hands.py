"""One way to bring each event about by each door; each tells "done", or the name of the error."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from rpcqm.base.errors import MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import QueueProperty
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import NO, YES, number, text
from tests.support.dcom.dcom_client import ComError, Reference
from tests.support.qm.event_world import AWAY, Subject, World
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import (
    RECEIVE_ACCESS,
    SEND_ACCESS,
    Client,
    object_of,
    receiving_buffer,
)
from tests.support.rpc.qm2qm_reader import Qm2QmReader
from tests.support.rpc.remote_reader import NACK, Reader, status_name
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger
from tests.support.srmp.srmp_text import Elements

Hand = Callable[[World, Subject], str]
DONE = "done"
REFUSED = "refused"
"""What a command tells: its sentence is for people."""
CHANGED = "D:(A;;0xf003f;;;BA)(A;;0x2;;;WD)"
_DACL = 4
_ERROR = re.compile(r"\b(MQ_ERROR_\w+|STATUS_\w+)\b")


def _told(status: str) -> str:
    return DONE if status == "MQ_OK" else status


def _command(world: World, *words: str) -> str:
    return REFUSED if world.run(*words).returncode else DONE


def _api(world: World, method: str, path: str, body: object = None) -> str:
    answer = world.program.ask(method, path, body)
    return DONE if answer.status < 300 else answer.code


def _page(world: World, path: str, fields: Mapping[str, str]) -> str:
    """Send a form as the pages have it."""
    done = world.browser.submit(path, fields)
    if done.status < 400:
        return DONE
    found = _ERROR.search(done.words)
    return found[1] if found else done.words


def _asked(world: World, page: str, subject: Subject, **more: str) -> str:
    """The same for a form of a queue."""
    return _page(world, f"/console/queue/{page}", {"queue": subject.short, **more})


def _named(error: ComError) -> str:
    return str(getattr(error.status, "name", hex(error.status)))


def _com(world: World, reference: Reference, operation: str, *arguments: object) -> str:
    try:
        world.objects.com.call(reference, operation, *arguments)
    except ComError as error:
        return _named(error)
    return DONE


def _info(world: World, subject: Subject) -> Reference:
    return world.objects.queue_info(subject.path)


def _client(world: World) -> Client:
    return Client(world.caller().caller)


# Queues


def create_rpc(world: World, subject: Subject) -> str:
    return _told(_client(world).create(subject.path))


def create_com(world: World, subject: Subject) -> str:
    return _com(world, _info(world, subject), "Create", NO, NO)


def create_api(world: World, subject: Subject) -> str:
    return _api(world, "POST", "/queues", {"name": subject.short})


def create_console(world: World, subject: Subject) -> str:
    return _page(world, "/console/queues/new", {"name": subject.short})


def create_command(world: World, subject: Subject) -> str:
    return _command(world, "queue", "create", subject.short)


def delete_rpc(world: World, subject: Subject) -> str:
    structure = object_of(subject.name)
    return _told(_client(world).status("R_QMDeleteObject", pObjectFormat=structure))


def delete_com(world: World, subject: Subject) -> str:
    return _com(world, _info(world, subject), "Delete")


def delete_api(world: World, subject: Subject) -> str:
    return _api(world, "DELETE", f"/queues/{subject.short}")


def delete_console(world: World, subject: Subject) -> str:
    return _asked(world, "delete", subject, repeat=subject.short)


def delete_command(world: World, subject: Subject) -> str:
    return _command(world, "queue", "delete", subject.short)


def label_rpc(world: World, subject: Subject) -> str:
    label: dict[QueueProperty, Any] = {QueueProperty.PROPID_Q_LABEL: "another"}
    return _told(_client(world).set_properties(subject.text, label))


def label_com(world: World, subject: Subject) -> str:
    info = _info(world, subject)
    if (refreshed := _com(world, info, "Refresh")) != DONE:
        return refreshed
    world.objects.put(info, "Label", "another")
    return _com(world, info, "Update")


def label_api(world: World, subject: Subject) -> str:
    return _api(world, "PATCH", f"/queues/{subject.short}", {"label": "another"})


def label_console(world: World, subject: Subject) -> str:
    told = world.program_of("boss").ask("GET", f"/queues/{subject.short}").value
    kept = {name: str(told.get(name, "")) for name in ("quota", "privacy")}
    kept |= {name: str(told.get(name, "")) for name in ("max_deliveries", "poison")}
    return _asked(world, "change", subject, label="another", trail="on", **kept)


def label_command(world: World, subject: Subject) -> str:
    return _command(world, "queue", "set", subject.short, "--label", "another")


def permit_rpc(world: World, subject: Subject) -> str:
    descriptor = parse_sddl(CHANGED).encode()
    status = _client(world).status(
        "R_QMSetObjectSecurityInternal",
        pObjectFormat=object_of(subject.name),
        SecurityInformation=_DACL,
        SDSize=len(descriptor),
        pSecurityDescriptor=descriptor,
    )
    return _told(status)


def permit_api(world: World, subject: Subject) -> str:
    return _api(world, "PUT", f"/queues/{subject.short}/permissions", {"sddl": CHANGED})


def permit_console(world: World, subject: Subject) -> str:
    wanted = {"queue": subject.short, "action": "allow", "who": "users", "right": "peek"}
    asked = world.browser.get(f"/console/queue/permit?{urlencode(wanted)}")
    version = re.search('name="version" value="([^"]+)"', asked.text)
    return _page(
        world, "/console/queue/permit", wanted | {"version": version[1] if version else "-"}
    )


def permit_command(world: World, subject: Subject) -> str:
    return _command(world, "queue", "set", subject.short, "--sddl", CHANGED)


# Purging, moving, removing


def purge_rpc(world: World, subject: Subject) -> str:
    client = _client(world)
    opened = client.send_open(subject.name, RECEIVE_ACCESS)
    if opened.result:
        return status_name(opened.result)
    return _told(client.status("rpc_ACPurgeQueue", hQueue=bytes(opened.phQueue)))


def _reading(world: World, subject: Subject) -> tuple[Reader, bytes] | str:
    """A reader of RemoteRead with the queue open, or the name of why it is not."""
    reader = Reader(world.caller().caller)
    try:
        return reader, reader.open(subject.name)
    except Fault as fault:
        return status_name(fault.status)


def purge_remoteread(world: World, subject: Subject) -> str:
    opened = _reading(world, subject)
    if isinstance(opened, str):
        return opened
    return _told(opened[0].status("R_PurgeQueue", phContext=opened[1]))


def _handed_over(world: World, subject: Subject) -> tuple[Qm2QmReader, int] | str:
    """The same of qm2qm."""
    reader = Qm2QmReader(world.caller().caller)
    opened = reader.open_by_qmcomm(subject.name)
    if opened.result:
        return status_name(opened.result)
    reader.adopt(opened.phQueue)
    return reader, int(opened.phQueue)


def _purged(reader: Qm2QmReader, queue: int) -> str:
    """Its refusals are thrown (G66)."""
    try:
        return reader.status("RemoteQMPurgeQueue", hQueue=queue)
    except Fault as fault:
        return status_name(fault.status)


def purge_qm2qm(world: World, subject: Subject) -> str:
    opened = _handed_over(world, subject)
    if isinstance(opened, str):
        return opened
    return _told(_purged(*opened))


def _opened_object(world: World, subject: Subject) -> Reference | str:
    access = int(QueueAccessType.RECEIVE_ACCESS)
    try:
        made = world.objects.com.call(_info(world, subject), "Open", access, 0)
    except ComError as error:
        return _named(error)
    assert isinstance(made, Reference)
    return made


def purge_com(world: World, subject: Subject) -> str:
    opened = _opened_object(world, subject)
    return opened if isinstance(opened, str) else _com(world, opened, "Purge")


def purge_api(world: World, subject: Subject) -> str:
    return _api(world, "DELETE", f"/queues/{subject.short}/messages")


def purge_console(world: World, subject: Subject) -> str:
    return _asked(world, "purge", subject)


def purge_command(world: World, subject: Subject) -> str:
    return _command(world, "purge", subject.short)


def move_remoteread(world: World, subject: Subject) -> str:
    opened = _reading(world, subject)
    if isinstance(opened, str):
        return opened
    reader, handle = opened
    context, _ = reader.open_for_move(f"{subject.text};late")
    return _told(reader.move(handle, context, int(subject.key)))


def move_api(world: World, subject: Subject) -> str:
    return _api(world, "POST", f"/queues/{subject.short}/move", {"to": f"{subject.short};late"})


def move_console(world: World, subject: Subject) -> str:
    return _asked(world, "move", subject, key=subject.key, to="late")


def move_command(world: World, subject: Subject) -> str:
    return _command(world, "move", subject.short, f"{subject.short};late", "--all")


def copy_api(world: World, subject: Subject) -> str:
    path = f"/queues/{subject.short}/copy"
    return _api(world, "POST", path, {"to": subject.short, "all": True})


def copy_console(world: World, subject: Subject) -> str:
    return _asked(world, "copy", subject, key=subject.key, other=subject.short)


def copy_command(world: World, subject: Subject) -> str:
    return _command(world, "copy", subject.short, subject.short, "--all")


def remove_api(world: World, subject: Subject) -> str:
    return _api(world, "DELETE", f"/queues/{subject.short}/messages/{subject.key}")


def remove_console(world: World, subject: Subject) -> str:
    return _asked(world, "remove", subject, key=subject.key)


# Sending and receiving


def send_rpc(world: World, subject: Subject) -> str:
    client = _client(world)
    opened = client.send_open(subject.name, SEND_ACCESS)
    if opened.result:
        return status_name(opened.result)
    return _told(client.sent(bytes(opened.phQueue), b"x"))


def send_com(world: World, subject: Subject) -> str:
    objects = world.objects
    destination = objects.destination(subject.text, is_open=False)
    if (opened := _com(world, destination, "Open")) != DONE:
        return opened
    return _com(world, objects.message(), "Send", destination, None)


def send_api(world: World, subject: Subject) -> str:
    return _api(world, "POST", f"/queues/{subject.short}/messages", b"x")


def send_console(world: World, subject: Subject) -> str:
    fields = {"body": "x", "kind": "text", "priority": "3", "label": "", "ttbr": ""}
    return _asked(world, "send", subject, **fields)


def send_command(world: World, subject: Subject) -> str:
    return _command(world, "send", subject.short, "--body", "x")


def send_binary(world: World, subject: Subject) -> str:
    with BinaryStranger(world.machine.endpoint("binary"), uuid4()) as stranger:
        stranger.deliver(subject.text, 1)
    return DONE


def send_http(world: World, subject: Subject) -> str:
    url = f"http://here/msmq/private$/{subject.short}"
    elements = Elements(guid=str(uuid4()))
    with Stranger(world.machine) as stranger:
        status = stranger.post(srmp_text.message(url, b"x", elements))
    return DONE if status == 200 else str(status)


def receive_rpc(world: World, subject: Subject) -> str:
    client = _client(world)
    opened = client.send_open(subject.name, RECEIVE_ACCESS)
    if opened.result:
        return status_name(opened.result)
    return _told(client.receive(int(opened.pdwQMContext), receiving_buffer())[0])


def receive_remoteread(world: World, subject: Subject) -> str:
    opened = _reading(world, subject)
    if isinstance(opened, str):
        return opened
    opened[0].receive(opened[1])
    return DONE


def receive_qm2qm(world: World, subject: Subject) -> str:
    opened = _handed_over(world, subject)
    if isinstance(opened, str):
        return opened
    reader, queue = opened
    return _told(reader.end(bytes(reader.read(queue).pphContext)))


def receive_com(world: World, subject: Subject) -> str:
    opened = _opened_object(world, subject)
    if isinstance(opened, str):
        return opened
    return _com(world, opened, "Receive", number(0), YES, YES, number(0), YES)


def receive_api(world: World, subject: Subject) -> str:
    return _api(world, "POST", f"/queues/{subject.short}/receive?lease=0")


def receive_command(world: World, subject: Subject) -> str:
    return _command(world, "receive", subject.short)


# Giving back


def give_back_rpc(world: World, subject: Subject) -> str:
    client, unit = _client(world), uuid4().bytes_le
    transaction = client.enlist(unit)
    _, context = client.open(subject.name, RECEIVE_ACCESS)
    buffer = receiving_buffer()
    buffer.old.pUow = XACTUOW(rgb=unit)
    assert client.receive(context, buffer)[0] == "MQ_OK"
    return _told(client.status("R_QMAbortTransaction", phIntXact=transaction))


def give_back_remoteread(world: World, subject: Subject) -> str:
    opened = _reading(world, subject)
    assert not isinstance(opened, str)
    opened[0].read(opened[1], request_id=9)
    return _told(opened[0].end(opened[1], 9, NACK))


def give_back_qm2qm(world: World, subject: Subject) -> str:
    opened = _handed_over(world, subject)
    assert not isinstance(opened, str)
    reader, queue = opened
    return _told(reader.end(bytes(reader.read(queue).pphContext), NACK))


def give_back_com(world: World, subject: Subject) -> str:
    objects, opened = world.objects, _opened_object(world, subject)
    assert isinstance(opened, Reference)
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = objects.com.call(dispenser, "BeginTransaction")
    assert isinstance(begun, Reference)
    joined = Variant(VARENUM.VT_DISPATCH, begun)
    objects.com.call(opened, "Receive", joined, YES, YES, number(0), YES)
    return _com(world, begun, "Abort", None, None)


def _lease(world: World, subject: Subject) -> str:
    path = f"/queues/{subject.short}/receive?lease=600"
    (message,) = world.program.ask("POST", path).value["messages"]
    return str(message["lease"])


def give_back_api(world: World, subject: Subject) -> str:
    return _api(world, "POST", f"/leases/{_lease(world, subject)}/release")


def give_back_console(world: World, subject: Subject) -> str:
    return _page(world, "/console/flight/release", {"lease": _lease(world, subject)})


# The queue manager, and queues to elsewhere


def _order(world: World, action: str, name: FormatName | None = None) -> str:
    try:
        world.far.run(world.far.management.order(action, name))
    except MQError as error:
        return error.status.name
    return DONE


def _application(world: World, operation: str) -> str:
    made = world.objects.create(clsids.MSMQ_APPLICATION, "IMSMQApplication3")
    return _com(world, made, operation)


def _managed(world: World, operation: str) -> str:
    """An order to what waits for a computer that is not there."""
    objects = world.objects
    made = objects.create(clsids.MSMQ_MANAGEMENT, "IMSMQManagement")
    if (began := _com(world, made, "Init", None, None, text(AWAY))) != DONE:
        return began
    outgoing = objects.com.query_interface(made, "IMSMQOutgoingQueueManagement")
    return _com(world, outgoing, operation)


_AWAY = AWAY.replace("\\", "%5C").replace("=", "%3D").replace(":", "%3A").replace("$", "%24")


def _of_page(word: str) -> Hand:
    return lambda world, _: _page(world, f"/console/machine/{word}", {})


def _of_machine(action: str, method: str, api: Hand, *words: str) -> dict[str, Hand]:
    return {
        "api": api,
        **({} if action == "TIDY" else {"console": _of_page(method.lower())}),
        "management": lambda world, _: _order(world, action),
        "com": lambda world, _: _application(world, method),
        "command": lambda world, _: _command(world, *words),
    }


def _of_outgoing(action: str, method: str, word: str) -> dict[str, Hand]:
    form = f"/console/outgoing/{word}"
    return {
        "management": lambda world, _: _order(world, action, FormatName.parse(AWAY)),
        "com": lambda world, _: _managed(world, method),
        "api": lambda world, _: _api(world, "POST", f"/outgoing-queues/{_AWAY}/{word}"),
        "console": lambda world, _: _page(world, form, {"queue": AWAY}),
        "command": lambda world, _: _command(world, "network", word, AWAY),
    }


def _connected(online: bool) -> Hand:
    return lambda world, _: _api(world, "PATCH", "/queue-manager", {"connected": online})


def _maintained(on: bool) -> dict[str, Hand]:
    word = "on" if on else "off"
    return {
        "api": lambda world, _: _api(world, "PATCH", "/queue-manager", {"maintenance": on}),
        "console": _of_page("maintain" if on else "take"),
        "command": lambda world, _: _command(world, "maintenance", word),
    }


HANDS: dict[str, dict[str, Hand]] = {
    "create queue": {
        "rpc": create_rpc,
        "com": create_com,
        "api": create_api,
        "console": create_console,
        "command": create_command,
    },
    "delete queue": {
        "rpc": delete_rpc,
        "com": delete_com,
        "api": delete_api,
        "console": delete_console,
        "command": delete_command,
    },
    "set properties": {
        "rpc": label_rpc,
        "com": label_com,
        "api": label_api,
        "console": label_console,
        "command": label_command,
    },
    "set permissions": {
        "rpc": permit_rpc,
        "api": permit_api,
        "console": permit_console,
        "command": permit_command,
    },
    "purge": {
        "rpc": purge_rpc,
        "remoteread": purge_remoteread,
        "qm2qm": purge_qm2qm,
        "com": purge_com,
        "api": purge_api,
        "console": purge_console,
        "command": purge_command,
    },
    "move": {
        "remoteread": move_remoteread,
        "api": move_api,
        "console": move_console,
        "command": move_command,
    },
    "copy": {"api": copy_api, "console": copy_console, "command": copy_command},
    "remove": {"api": remove_api, "console": remove_console},
    "send": {
        "rpc": send_rpc,
        "com": send_com,
        "api": send_api,
        "console": send_console,
        "command": send_command,
        "binary": send_binary,
        "http": send_http,
    },
    "receive": {
        "rpc": receive_rpc,
        "remoteread": receive_remoteread,
        "qm2qm": receive_qm2qm,
        "com": receive_com,
        "api": receive_api,
        "command": receive_command,
    },
    "give back": {
        "rpc": give_back_rpc,
        "remoteread": give_back_remoteread,
        "qm2qm": give_back_qm2qm,
        "com": give_back_com,
        "api": give_back_api,
        "console": give_back_console,
    },
    "disconnect": _of_machine(
        "DISCONNECT", "Disconnect", _connected(False), "network", "disconnect"
    ),
    "connect": _of_machine("CONNECT", "Connect", _connected(True), "network", "connect"),
    "begin maintenance": _maintained(True),
    "end maintenance": _maintained(False),
    "compact": _of_machine(
        "TIDY", "Tidy", lambda world, _: _api(world, "POST", "/queue-manager/compact"), "compact"
    ),
    "pause": _of_outgoing("PAUSE", "Pause", "pause"),
    "resume": _of_outgoing("RESUME", "Resume", "resume"),
    "resend": _of_outgoing("EOD_RESEND", "EodResend", "resend"),
}
"""By event and door."""
