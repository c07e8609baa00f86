"""Objects with values that callers choose: texts within bounds, all of it counted (G412)."""

import sys

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import wide_length
from rpcqm.codec.names.format_name import FormatName, format_names
from rpcqm.codec.names.path_name import (
    MAXIMUM_COMPUTER_NAME,
    MAXIMUM_QUEUE_NAME,
    MAXIMUM_SUBQUEUE_NAME,
)
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.arguments import text
from rpcqm.mqac.machine import Machine

LONGEST_PATH_NAME = (
    MAXIMUM_COMPUTER_NAME + len("\\private$\\") + MAXIMUM_QUEUE_NAME + 1 + MAXIMUM_SUBQUEUE_NAME
)
"""Characters of a path name: those of its parts, and what stands between them."""
LONGEST_FORMAT_NAME = 0xFFFF
"""Characters of the format name of an object; other texts have their own longest.

It may list many queues.

Bound `dcom.longest_format_name` [characters]: setting it gets MQ_ERROR_ILLEGAL_FORMATNAME.
"""
LONGEST_GUID = len("{00000000-0000-0000-0000-000000000000}")
LONGEST_MULTICAST_ADDRESS = len("255.255.255.255:65535")
LONGEST_DIRECTORY_PATH = 4096
"""Characters of a path in a directory: names there have up to some hundred, and are nested."""
LONGEST_COMPUTER_NAME = MAXIMUM_COMPUTER_NAME

_OF_A_CHARACTER = 32
"""Octets that a character of a list of names takes after decoding."""


def bounded(
    argument: str | bytes | None,
    most: int,
    status: HResult = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
) -> str:
    """A BSTR read by `text`; raises MQError(status) for too many characters."""
    given = text(argument)
    if wide_length(given) > most:
        raise MQError(status, f"more than {most} characters")
    return given


class Owned(Automation):
    """An object of a queue manager; its contents count for the caller who has put them there."""

    _machine: Machine

    def keep(self, call: ComCall, part: str, octets: int) -> None:
        """Count the octets of a part; raises MQ_ERROR_INSUFFICIENT_RESOURCES for too many."""
        self.hold(self._machine.held, call.identity.sid, part, octets)

    def keep_text(
        self,
        call: ComCall,
        part: str,
        argument: str | bytes | None,
        most: int,
        status: HResult = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
    ) -> str:
        """The text of a BSTR, bounded and counted."""
        given = bounded(argument, most, status)
        self.keep(call, part, sys.getsizeof(given))
        return given

    def keep_path_name(self, call: ComCall, argument: str | bytes | None) -> str:
        """A path name."""
        status = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        return self.keep_text(call, "path name", argument, LONGEST_PATH_NAME, status)

    def keep_format_name(self, call: ComCall, argument: str | bytes | None) -> str:
        """A format name; the octets of its decoded queues count as well."""
        given = bounded(argument, LONGEST_FORMAT_NAME, HResult.MQ_ERROR_ILLEGAL_FORMATNAME)
        self.keep(call, "format name", _OF_A_CHARACTER * len(given))
        return given

    def keep_names(self, call: ComCall, part: str, names: tuple[FormatName, ...]) -> None:
        """Count decoded names."""
        self.keep(call, part, _OF_A_CHARACTER * len(format_names(names)))
