"""Permission to create objects and to call them: the level of a call, and two descriptors."""

from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.identity import Identity
from rpcqm.codec.security.access_check import GenericMapping, PreparedDescriptor
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel

COM_RIGHTS_EXECUTE = 0x01
COM_RIGHTS_EXECUTE_REMOTE = 0x04
COM_RIGHTS_ACTIVATE_REMOTE = 0x10
_ALL = 0x1F
_MAPPING = GenericMapping(0, 0, _ALL, _ALL)

LEVELS = {
    "connect": AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT,
    "integrity": AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    "privacy": AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The requirements of calls: a level of LEVELS, and the SDDL for `launch` and `access`."""

    minimum_level: AuthenticationLevel
    launch: PreparedDescriptor
    access: PreparedDescriptor

    @classmethod
    def of(cls, minimum_level: str, launch: str, access: str) -> "Permissions":
        """Raises MQError for a text that is no descriptor."""
        return cls(LEVELS[minimum_level], _prepared(launch), _prepared(access))


def _prepared(sddl: str) -> PreparedDescriptor:
    return PreparedDescriptor(parse_sddl(sddl), _MAPPING)


class CallerCheck:
    """Checks callers; `permissions` may be replaced while calls come."""

    def __init__(self, permissions: Permissions) -> None:
        self.permissions = permissions

    def check_level(self, call: Call) -> None:
        """Raise RpcFault for a call with too little protection, or without an account."""
        level = self.permissions.minimum_level
        if call.security.assured_level < level or call.identity.is_anonymous:
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, f"{level.name} is needed")

    def check_access(self, call: Call) -> None:
        """Raise RpcFault for a caller without access to objects here.

        The result for a security context is kept until the permissions change.
        """
        permissions = self.permissions
        if call.security.granted is permissions:
            return
        self.check_level(call)
        if not _allows(permissions.access, call.identity, COM_RIGHTS_EXECUTE_REMOTE):
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, "`dcom.access` does not grant it")
        call.security.granted = permissions

    def may_launch(self, identity: Identity) -> bool:
        """Whether a caller may create objects."""
        return _allows(self.permissions.launch, identity, COM_RIGHTS_ACTIVATE_REMOTE)


def _allows(descriptor: PreparedDescriptor, identity: Identity, right: int) -> bool:
    """Whether a right is granted; EXECUTE alone is all rights, as before Windows XP SP2."""
    if identity.is_anonymous:
        return False
    granted = descriptor.granted(identity.sids) & _ALL
    return bool(granted & right) or granted == COM_RIGHTS_EXECUTE
