"""The meanings of the codes that MSMQ and its RPC carry, by number or by name."""

import difflib
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.codec.packet.enums import MessageClass

FAULTS = {
    "nca_s_fault_int_div_by_zero": "The server's procedure divided an integer by zero.",
    "nca_s_fault_addr_error": "The server's procedure used an address that is not there.",
    "nca_s_fault_fp_div_zero": "The server's procedure divided a floating number by zero.",
    "nca_s_fault_fp_underflow": "A floating number became too small in the server's procedure.",
    "nca_s_fault_fp_overflow": "A floating number became too large in the server's procedure.",
    "nca_s_fault_invalid_tag": "A union's tag names no arm of it.",
    "nca_s_fault_invalid_bound": "An array's bounds are not those that the interface allows.",
    "nca_s_rpc_version_mismatch": "The server speaks another version of the RPC protocol.",
    "nca_s_unspec_reject": "The server refuses the call and does not say why.",
    "nca_s_bad_actid": "The call belongs to no activity that the server knows.",
    "nca_s_who_are_you_failed": "The server could not find out whose call it is.",
    "nca_s_manager_not_entered": "The server stopped the call before its procedure began.",
    "nca_s_fault_cancel": "The call was cancelled in the server.",
    "nca_s_fault_ill_inst": "The server's procedure met an illegal instruction.",
    "nca_s_fault_fp_error": "A calculation failed in the server's procedure.",
    "nca_s_fault_int_overflow": "An integer became too large in the server's procedure.",
    "nca_s_fault_unspec": "The server's procedure failed, and the fault does not say how.",
    "nca_s_fault_remote_comm_failure": "The server lost a connection that the call needed.",
    "nca_s_fault_pipe_empty": "More was read from a pipe than is in it.",
    "nca_s_fault_pipe_closed": "A pipe was used after its end.",
    "nca_s_fault_pipe_order": "Pipes were used in the wrong order.",
    "nca_s_fault_pipe_discipline": "A pipe was used in a way that its kind does not allow.",
    "nca_s_fault_pipe_comm_error": "The connection failed while a pipe was in use.",
    "nca_s_fault_pipe_memory": "There is not enough memory for a pipe's data.",
    "nca_s_fault_context_mismatch": (
        "The handle is unknown, closed, another client's, or not of this interface."
    ),
    "nca_s_fault_remote_no_memory": "The server has not enough memory for the call.",
    "nca_s_invalid_pres_context_id": "The call names a presentation context that was not bound.",
    "nca_s_unsupported_authn_level": "The server does not support this authentication level.",
    "nca_s_invalid_checksum": "What arrived does not match its checksum.",
    "nca_s_invalid_crc": "What arrived does not match its check value.",
    "nca_s_fault_user_defined": "The server raised an exception of its interface's own.",
    "nca_s_fault_tx_open_failed": "The server could not take part in the transaction.",
    "nca_s_fault_codeset_conv_error": "A text cannot be converted between two character sets.",
    "nca_s_fault_object_not_found": "The server does not have the object that the call is for.",
    "nca_s_fault_no_client_stub": "The client cannot be called back: it has no such procedure.",
    "nca_s_comm_failure": "The connection failed during the call.",
    "nca_s_op_rng_error": "The interface has no procedure of this number.",
    "nca_s_unk_if": "The server does not offer this interface, or not this version of it.",
    "nca_s_wrong_boot_time": "The server was started again since the client last called.",
    "nca_s_you_crashed": "The server takes the client for one that was started again.",
    "nca_s_proto_error": "The client broke a rule of the RPC protocol.",
    "nca_s_out_args_too_big": "The answer is larger than the protocol allows.",
    "nca_s_server_too_busy": "The server has too much to do to take the call.",
    "nca_s_unsupported_type": "The server does not support objects of this type.",
    "RPC_S_ACCESS_DENIED": (
        "The caller is not who may call: not authenticated, at too low a level, or without the "
        "right."
    ),
    "OR_INVALID_OXID": "The object exporter is not here, or no longer.",
    "OR_INVALID_OID": "An object of the ping is not there, or no longer.",
    "OR_INVALID_SET": "There is no ping set of this identifier, or no longer.",
    "RPC_S_UNKNOWN_IF": "The server does not offer the interface.",
    "RPC_S_OUT_OF_RESOURCES": "The server has not enough resources for the call.",
    "RPC_S_SERVER_UNAVAILABLE": "Nobody answers where the server should be.",
    "RPC_S_SERVER_TOO_BUSY": "The server has too much to do to take the call.",
    "RPC_S_NO_CALL_ACTIVE": "There is no call that this could be about.",
    "RPC_S_CALL_FAILED": "The call failed, perhaps after its procedure had run.",
    "RPC_S_CALL_FAILED_DNE": "The call failed, and its procedure did not run.",
    "RPC_S_PROTOCOL_ERROR": "A rule of the RPC protocol was broken.",
    "RPC_S_UNSUPPORTED_TRANS_SYN": "The server does not support this transfer syntax.",
    "RPC_S_UNSUPPORTED_TYPE": "The server does not support objects of this type.",
    "RPC_S_PROCNUM_OUT_OF_RANGE": "The interface has no procedure of this number.",
    "RPC_S_UNKNOWN_AUTHN_SERVICE": "The server does not know this way to authenticate.",
    "EPT_S_CANT_PERFORM_OP": "The endpoint mapper does not do this.",
    "EPT_S_NOT_REGISTERED": "No endpoint of this interface is registered (any more).",
    "RPC_X_BAD_STUB_DATA": "The parameters of the call cannot be read, or break their bounds.",
    "RPC_S_CALL_CANCELLED": "The call was cancelled.",
    "RPC_S_SEC_PKG_ERROR": "The proof of who is calling did not hold.",
}
"""The meanings of faults, by their names."""

FAULT_REMEDIES = {
    "nca_s_fault_context_mismatch": "Open the queue again.",
    "nca_s_unk_if": "Ask the endpoint mapper for the interface's port.",
    "nca_s_op_rng_error": "Check the interface's version and the procedure's number.",
    "nca_s_server_too_busy": "Try again later, or raise the limits in the configuration.",
    "RPC_S_ACCESS_DENIED": (
        "Authenticate, at PKT_PRIVACY unless the server's [security] switches allow less, and "
        "look at the queue's permissions with `rpcqm queue acl show`."
    ),
    "RPC_S_SERVER_UNAVAILABLE": "Check the address, the ports and the firewall.",
    "RPC_S_SERVER_TOO_BUSY": "Try again later, or raise the limits in the configuration.",
    "RPC_X_BAD_STUB_DATA": "Check the declaration of the procedure that the client was built of.",
    "RPC_S_SEC_PKG_ERROR": "Check the name, the password and the clocks of both computers.",
    "EPT_S_NOT_REGISTERED": "Check that the queue manager runs and that its rpc door is open.",
}

CLASSES = {
    "NORMAL": "An ordinary message of an application.",
    "REPORT": "A report of where a message passed.",
    "ACK_REACH_QUEUE": "The message has reached its queue.",
    "ORDER_ACK": "Transactional messages have arrived in order; for queue managers only.",
    "ACK_RECEIVE": "The message was received by an application.",
    "NACK_BAD_DST_Q": "The destination queue does not exist.",
    "NACK_DELETED": "An administrator deleted the message before it reached its queue.",
    "NACK_REACH_QUEUE_TIMEOUT": "The message did not reach its queue in time.",
    "NACK_Q_EXCEED_QUOTA": "The destination queue is full.",
    "NACK_ACCESS_DENIED": "The sender may not write to the queue.",
    "NACK_HOP_COUNT_EXCEEDED": "The message passed through too many queue managers.",
    "NACK_BAD_SIGNATURE": "The message's signature is missing or not valid.",
    "NACK_BAD_ENCRYPTION": "The message cannot be decrypted, or should have been encrypted.",
    "NACK_COULD_NOT_ENCRYPT": "The sending queue manager could not encrypt the message.",
    "NACK_NOT_TRANSACTIONAL_Q": "A transactional message came to an ordinary queue.",
    "NACK_NOT_TRANSACTIONAL_MSG": "An ordinary message came to a transactional queue.",
    "NACK_UNSUPPORTED_CRYPTO_PROVIDER": "The receiver lacks the cryptography the sender used.",
    "NACK_SOURCE_COMPUTER_GUID_CHANGED": "The sending computer has another identity by now.",
    "NACK_Q_DELETED": "The queue was deleted before the message was received.",
    "NACK_Q_PURGED": "The queue was purged before the message was received.",
    "NACK_RECEIVE_TIMEOUT": "The message was not received in time.",
    "NACK_RECEIVE_TIMEOUT_AT_SENDER": "The sender learned of no receipt in time.",
    "NACK_RECEIVE_REJECTED": "The receiving application rejected the message.",
}
"""The meanings of message classes, by their names without MQMSG_CLASS_."""

STATUSES = {
    200: (
        "The message was taken; or it is of no use: expired, known already, or for a queue that is "
        "full or may not be sent to.",
        "Ask for an acknowledgement to learn which.",
    ),
    400: (
        "The request is wrong, there is no such host or queue, or the queue is transactional and "
        "the message is not, or the other way round. The message is not sent again.",
        "The receiver's log has a line with the reason.",
    ),
    405: ("The request is no POST.", "Look whether a proxy or another server answers there."),
    413: ("The message is too large. It is not sent again.", "Send a smaller body."),
    415: ("The request is compressed.", "Look whether a proxy compresses requests."),
    500: (
        "The receiver has no room for the message, or failed. The message is sent again.",
        "Look at the quota and the disk of the receiver.",
    ),
    501: (
        "The request is in a transfer coding that the receiver does not know. The message is sent "
        "again.",
        "Look whether a proxy encodes requests.",
    ),
    503: ("The receiver stops. The message is sent again.", ""),
}
"""The meanings of answers to a message over HTTP, each with a remedy."""

CLASS_PREFIX = "MQMSG_CLASS_"
_KINDS: tuple[tuple[type[enum.IntEnum], str], ...] = (
    (HResult, "result of Message Queuing (HRESULT)"),
    (NtStatus, "result of a call (NTSTATUS)"),
    (FaultStatus, "fault or rejection of RPC"),
    (MessageClass, "class of a message"),
)
_WIN32_FACILITY = 0x8007_0000


@dataclass(frozen=True, slots=True)
class Code:
    """One code: its kind, its name, its meaning and a remedy."""

    kind: str
    name: str
    value: int
    meaning: str
    remedy: str


def codes() -> Iterator[Code]:
    """Every code of the tables."""
    for kind, words in _KINDS:
        for member in kind:
            yield _code(member, words)
    for status, (meaning, remedy) in STATUSES.items():
        yield Code("answer to a message over HTTP", f"HTTP {status}", status, meaning, remedy)


def find_codes(text: str) -> list[Code]:
    """The codes that a number or a name stands for; a number may stand for several.

    Numbers may be signed, as .NET writes an HRESULT, and may wrap a Win32 error in an HRESULT.
    Eight digits that are no code as a decimal number are tried as hexadecimal ones. Of a text with
    other words, such as `hr=0xC00E0003`, the first number or name counts that stands for a code.
    """
    if found := _named(text) or _numbered(text):
        return found
    words = _WORDS.findall(text)[:_MOST_WORDS]
    found_in_words = (
        _numbered(word) if _IS_NUMBER.fullmatch(word) else _named(word) for word in words
    )
    return next(filter(None, found_in_words), [])


_WORDS = re.compile(r"(?<![\w-])-?\w+|\w+", re.ASCII)
_IS_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,8}|-[0-9]{9,10}|[0-9]{9,10}|[0-9a-fA-F]{8}", re.ASCII)
"""What is a code among other words: shorter numbers without 0x are counts, or of lines."""
_DIGITS = re.compile("[0-9a-fA-F]{8}", re.ASCII)
_MOST_WORDS = 100


def _named(text: str) -> list[Code]:
    name = text.upper()
    return [code for code in codes() if name in (code.name.upper(), _short(code).upper())]


def _numbered(text: str) -> list[Code]:
    number = _number(text)
    found = [] if number is None else _of_number(number)
    if not found and _DIGITS.fullmatch(text):
        return _of_number(int(text, 16))
    return found


def _of_number(number: int) -> list[Code]:
    """The codes of a number, also of a Win32 error that an HRESULT wraps."""
    wanted = {number & 0xFFFF_FFFF}
    if number & 0xFFFF_0000 == _WIN32_FACILITY:
        wanted.add(number & 0xFFFF)
    return [code for code in codes() if code.value in wanted]


def similar_names(text: str) -> list[str]:
    """Names that resemble a mistyped one."""
    names = {name for code in codes() for name in (code.name, _short(code))}
    folded = {name.upper(): name for name in names}
    return [folded[found] for found in difflib.get_close_matches(text.upper(), folded, 3)]


def _number(text: str) -> int | None:
    try:
        return int(text.strip(), 0) & 0xFFFF_FFFF
    except ValueError:
        return None


def _short(code: Code) -> str:
    return code.name.removeprefix(CLASS_PREFIX)


def _code(member: enum.IntEnum, kind: str) -> Code:
    if isinstance(member, HResult) and not member.name.startswith("MQ"):
        kind = "result of COM (HRESULT)"
    if isinstance(member, HResult | NtStatus):
        return Code(kind, member.name, member.value, member.meaning, member.remedy)
    if isinstance(member, FaultStatus):
        remedy = FAULT_REMEDIES.get(member.name, "")
        return Code(kind, member.name, member.value, FAULTS[member.name], remedy)
    meaning = CLASSES[member.name.removeprefix(CLASS_PREFIX)]
    return Code(kind, member.name, member.value, meaning, "")
