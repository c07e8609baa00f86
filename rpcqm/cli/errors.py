"""Errors of commands: one sentence for a person, and an exit status."""

import enum

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, NtStatus, RpcFault


class ExitStatus(enum.IntEnum):
    """Exit statuses of the process."""

    OK = 0
    REFUSED = 1
    WRONG_USAGE = 2
    NO_SERVER = 3
    NOTHING_CAME = 4
    DIFFERS = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """A command that failed; the text is a sentence."""

    def __init__(self, sentence: str, status: ExitStatus = ExitStatus.REFUSED) -> None:
        super().__init__(sentence)
        self.status = status


class NothingCame(CommandError):
    """No message came in time."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitStatus.NOTHING_CAME)


class UsageMistake(CommandError):
    """A command line that is wrong."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitStatus.WRONG_USAGE)


class NoServer(CommandError):
    """No queue manager can be reached."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitStatus.NO_SERVER)


_FAULTS: dict[FaultStatus, tuple[str, str]] = {
    FaultStatus.RPC_S_ACCESS_DENIED: (
        "the server did not accept who is calling",
        "give --user NAME and the right password",
    ),
    FaultStatus.RPC_S_SEC_PKG_ERROR: (
        "the server did not accept the proof of who is calling",
        "check the name and the password",
    ),
    FaultStatus.nca_s_fault_context_mismatch: (
        "the server no longer knows the handle",
        "run the command again",
    ),
    FaultStatus.nca_s_unk_if: (
        "the server does not offer the interface",
        "ask at another port, or run the command on the server itself",
    ),
    FaultStatus.EPT_S_NOT_REGISTERED: (
        "the server does not offer the interface",
        "ask at another port, or run the command on the server itself",
    ),
    FaultStatus.RPC_S_SERVER_TOO_BUSY: ("the server has too much to do", "try again later"),
}


def explain(error: MQError | RpcFault | DecodeError, subject: str) -> str:
    """A sentence about a failed call: its cause, the name of the code, and a remedy."""
    if isinstance(error, DecodeError):
        return f"{subject}: the server's answer cannot be read, {error}."
    why, remedy = _words(error.status)
    detail = f", {error.detail}" if isinstance(error, MQError) and error.detail else ""
    after = f"; {remedy}" if remedy else ""
    return f"{subject}: {why}{detail} ({error.status.name}){after}."


def reason(error: OSError) -> str:
    """The system's words for an error, as part of a sentence."""
    return error.strerror or str(error)


def _words(status: HResult | NtStatus | FaultStatus) -> tuple[str, str]:
    if isinstance(status, FaultStatus):
        return _FAULTS.get(status, ("the server could not carry out the call", ""))
    return _clause(status.meaning), _clause(status.remedy)


def _clause(sentence: str) -> str:
    """A sentence as a part of another one."""
    if sentence[1:2].isupper():
        return sentence.rstrip(".")
    return sentence[:1].lower() + sentence[1:].rstrip(".")
