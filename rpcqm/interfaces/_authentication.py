"""How well a caller of RemoteRead must protect its calls ([MS-MQRR] 7 Appendix B <19>)."""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel

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

    def minimum_level(
        self, workgroup: bool, anonymous_may_read: Callable[[], bool]
    ) -> AuthenticationLevel:
        """The level that a caller needs, as servers since Windows Vista decide it.

        `workgroup` is what the caller says of itself; `anonymous_may_read` tells whether
        Anonymous Logon may peek at the queue or receive from it, and is asked only when a
        switch makes that matter.
        """
        deny_workgroup = self.new_remote_read_server_deny_workgroup_client
        if self.allow_nonauthenticated_rpc and (workgroup or not deny_workgroup):
            return _NONE
        if self.new_remote_read_server_allow_none_security_client and anonymous_may_read():
            return _NONE
        return _INTEGRITY if self.debug_rpc else _PRIVACY


def require_level(call: Call, minimum: AuthenticationLevel) -> None:
    """Refuse a call that is less protected: the fault is RPC_S_ACCESS_DENIED."""
    if call.authentication_level < minimum:
        raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, f"{minimum.name} is needed")
