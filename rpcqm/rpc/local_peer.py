"""The user at the other end of a Unix socket."""

import os
import pwd
import socket
import struct

from rpcqm.base.identity import (
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    LOCAL_SYSTEM,
    Identity,
    authenticated,
)

_CREDENTIALS = struct.Struct("=iII")


def peer_uid(connected: socket.socket) -> int:
    """The user id of the process that connected (SO_PEERCRED)."""
    octets = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(octets)[1])


def identity_of_uid(uid: int) -> Identity:
    """An identity where no accounts are known: root and this process's own user administrate.

    Everybody else is a nameless member of Everyone.
    """
    if uid in (0, os.geteuid()):
        return authenticated(name_of_uid(uid), LOCAL_SYSTEM, BUILTIN_ADMINISTRATORS)
    return Identity(name_of_uid(uid), EVERYONE)


def name_of_uid(uid: int) -> str:
    """The name of a Unix user, or its number in words."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # not every user id has a name
        return f"uid {uid}"
