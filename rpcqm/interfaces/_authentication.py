"""The required authentication and protection of calls ([MS-MQRR] 7 Appendix B <19>)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.identity import ANONYMOUS
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.access import AccessControl
from rpcqm.qm.registry import QueueRegistry
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.interface_registry import CallCheck

_NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
_INTEGRITY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
_PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY


@dataclass(frozen=True, slots=True)
class RemoteReadSecurity:
    """The switches that lower the minimum authentication level, all off by default."""

    allow_nonauthenticated_rpc: bool = False
    new_remote_read_server_deny_workgroup_client: bool = False
    new_remote_read_server_allow_none_security_client: bool = False
    debug_rpc: bool = False
    allow_unprotected_rpc: bool = False

    def minimum_level(
        self, workgroup: bool, anonymous_may_read: Callable[[], bool]
    ) -> AuthenticationLevel:
        """The level that a caller needs, by the rules of servers since Windows Vista.

        `workgroup` is the caller's own statement; `anonymous_may_read` says whether Anonymous Logon
        may peek at the queue or receive from it, and is called only when a switch depends on it.
        """
        deny_workgroup = self.new_remote_read_server_deny_workgroup_client
        if self.allow_nonauthenticated_rpc and (workgroup or not deny_workgroup):
            return _NONE
        if self.new_remote_read_server_allow_none_security_client and anonymous_may_read():
            return _NONE
        return self.protected_level

    @property
    def protected_level(self) -> AuthenticationLevel:
        """The level of callers who have logged on and protect their calls."""
        return _INTEGRITY if self.debug_rpc else _PRIVACY

    @property
    def client_level(self) -> AuthenticationLevel:
        """The level that dependent clients and tools for administration need."""
        return _NONE if self.allow_unprotected_rpc else self.protected_level

    @property
    def lowest_level(self) -> AuthenticationLevel:
        """The level below which no caller reads any queue."""
        return self.minimum_level(True, lambda: True)


class CallAdmission:
    """Decides which callers the interfaces of one queue manager let in (G85).

    `security` may be replaced at any time and holds for later calls and openings. Calls by
    ncalrpc count as PKT_PRIVACY.
    """

    def __init__(self, security: RemoteReadSecurity | None = None) -> None:
        self.security = security or RemoteReadSecurity()

    @property
    def security(self) -> RemoteReadSecurity:
        """The switches."""
        return self._security

    @security.setter
    def security(self, security: RemoteReadSecurity) -> None:
        self._security = security
        # Every call asks for these.
        self._lowest_level = security.lowest_level
        self._client_level = security.client_level

    def require_reader(self, call: Call) -> None:
        """Raise RpcFault for a caller that can read no queue; each queue has a level of its own."""
        if call.security.assured_level < self._lowest_level:
            raise _too_low(self._lowest_level)

    def require_client(self, call: Call) -> None:
        """Raise RpcFault for a caller that has not logged on, or does not protect the call."""
        security = call.security
        if security.assured_level < self._client_level:
            raise _too_low(self._client_level)
        if security.identity.is_anonymous and not self._security.allow_unprotected_rpc:
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, "nobody has logged on")


@runtime_checkable
class Admitting(Protocol):
    """The handlers of an interface that admits callers."""

    @property
    def admission(self) -> CallAdmission: ...


def level_of_queue(
    registry: QueueRegistry,
    access: AccessControl,
    security: RemoteReadSecurity,
    name: FormatName,
    workgroup: bool,
) -> AuthenticationLevel:
    """The level for reading a queue; `workgroup` is the caller's own statement."""

    def anonymous_may_read() -> bool:
        """Whether Anonymous may peek at the queue; a new subqueue is judged by its main queue."""
        queue = registry.find_by_format_name(name)
        if queue is None and name.type is FormatNameType.QUEUE_FORMAT_TYPE_SUBQUEUE:
            queue = registry.find_by_path(str(name.path_name.parent))
        return queue is not None and access.may_peek(queue, ANONYMOUS)

    return security.minimum_level(workgroup, anonymous_may_read)


def checks(
    unchecked: Collection[str] = (), reading: Collection[str] | None = ()
) -> Callable[[object, str], CallCheck | None]:
    """The checks before each call of an interface, by the handlers' `admission`.

    Every caller may use the methods in `unchecked`. Those in `reading` follow the switches of
    RemoteRead (None: all other methods do). The remaining methods need a caller that has logged on.
    """

    def check_of(handlers: object, method: str) -> CallCheck | None:
        assert isinstance(handlers, Admitting)
        admission = handlers.admission
        if method in unchecked:
            return None
        if reading is None or method in reading:
            return admission.require_reader
        return admission.require_client

    return check_of


def require_level(call: Call, minimum: AuthenticationLevel) -> None:
    """Raise RpcFault(RPC_S_ACCESS_DENIED) for a call that is less protected."""
    if call.authentication_level < minimum:
        raise _too_low(minimum)


def _too_low(minimum: AuthenticationLevel) -> RpcFault:
    return RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, f"{minimum.name} is needed")
