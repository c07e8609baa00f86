"""The server's side of bind, alter_context and rpc_auth_3: the agreements of a connection.

The rest of a connection uses the result: presentation contexts, security contexts, the association
group and the fragment size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.rpc.association_group import AssociationGroup, AssociationGroups
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel, PfcFlags, RejectReason
from rpcqm.rpc.limits import Limits, negotiated_fragment
from rpcqm.rpc.pdu import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    SecurityTrailer,
)
from rpcqm.rpc.presentation import OfferedInterfaces, PresentationError, PresentationTable
from rpcqm.rpc.security.context import SecurityContext, SecurityProvider
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim
from rpcqm.rpc.security.table import SecurityRefusal, SecurityTable


@dataclass(slots=True, eq=False)
class Endpoint:
    """What all connections of one listening address share.

    `providers` is by authentication type; `secondary_address` is what a bind_ack names. Where
    it is `for_objects`, clients that have no calls in flight may bind again (G254), and log on
    with ever more security contexts (G251). The server may replace providers and limits, for
    connections that come afterwards.
    """

    transport: str
    secondary_address: bytes
    interfaces: OfferedInterfaces
    groups: AssociationGroups
    providers: Mapping[int, SecurityProvider] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    for_objects: bool = False


class BindRejected(Exception):
    """A bind (or an alter_context over a limit) that a bind_nak answers."""

    def __init__(self, reason: RejectReason, text: str, claim: LogonClaim = NO_CLAIM) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.claim = claim
        self.level: AuthenticationLevel | None = None


class Negotiation:
    """The agreements of one connection."""

    __slots__ = (
        "_client",
        "_endpoint",
        "fragment",
        "group",
        "minor",
        "multiplexed",
        "presentation",
        "security",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        client: str,
        base: SecurityContext,
        on_logon: Callable[[SecurityContext], None],
    ) -> None:
        limits = endpoint.limits
        self._endpoint = endpoint
        self._client = client
        self.fragment = limits.fragment_size
        self.group: AssociationGroup | None = None
        self.minor = 0
        self.multiplexed = False
        self.presentation = PresentationTable(endpoint.interfaces, limits.contexts)
        self.security = SecurityTable(
            base, endpoint.providers, limits.security_contexts, client, on_logon
        )
        self.security.replaces = endpoint.for_objects

    def bind(self, bind: Bind) -> BindAck:
        """The bind_ack; raises BindRejected."""
        try:
            answers = self.presentation.answer(bind.p_context_elem)
        except PresentationError as error:
            raise _rejection(error) from error
        if bind.pfc_flags & PfcFlags.PFC_SUPPORT_HEADER_SIGN:
            self.security.sign_headers()
        token = self._authenticate_in_bind(bind.auth)
        group = self._endpoint.groups.join(
            bind.assoc_group_id, self._endpoint.transport, self._client
        )
        if group is None:
            raise BindRejected(RejectReason.REASON_NOT_SPECIFIED, "unknown association group")
        self.group = group
        self.minor = bind.rpc_vers_minor
        self.multiplexed = bool(bind.pfc_flags & PfcFlags.PFC_CONC_MPX)
        own = self._endpoint.limits.fragment_size
        self.fragment = negotiated_fragment(bind.max_xmit_frag, bind.max_recv_frag, own)
        return BindAck(
            call_id=bind.call_id,
            pfc_flags=_flags(bind.pfc_flags, self.multiplexed),
            rpc_vers_minor=self.minor,
            max_xmit_frag=self.fragment,
            max_recv_frag=self.fragment,
            assoc_group_id=group.group_id,
            sec_addr=self._endpoint.secondary_address,
            p_result_list=answers,
            auth=_answer_trailer(bind.auth, token),
        )

    def _authenticate_in_bind(self, trailer: SecurityTrailer | None) -> bytes:
        if trailer is None:
            return b""
        try:
            return self.security.bind(trailer)
        except SecurityRefusal as error:
            rejected = BindRejected(error.reason, str(error), error.claim)
            rejected.level = error.level
            raise rejected from error

    def alter(self, alter: AlterContext) -> AlterContextResp:
        """The alter_context_resp. Raises SecurityRefusal if the authentication fails, BindRejected
        if a limit is exceeded, and RpcFault for any other mistake."""
        try:
            if alter.auth is not None:
                self.security.check_type(alter.auth)
            answers = self.presentation.answer(alter.p_context_elem)
        except PresentationError as error:
            if error.limit:
                raise _rejection(error) from error
            raise RpcFault(FaultStatus.nca_s_proto_error, error.reason) from error
        except SecurityRefusal as error:
            raise RpcFault(error.status, str(error)) from error
        if alter.pfc_flags & PfcFlags.PFC_SUPPORT_HEADER_SIGN:
            self.security.sign_headers()
        token = self.security.alter(alter.auth) if alter.auth is not None else b""
        assert self.group is not None
        return AlterContextResp(
            call_id=alter.call_id,
            pfc_flags=_flags(alter.pfc_flags, False),
            rpc_vers_minor=self.minor,
            max_xmit_frag=self.fragment,
            max_recv_frag=self.fragment,
            assoc_group_id=self.group.group_id,
            p_result_list=answers,
            auth=_answer_trailer(alter.auth, token),
        )

    def auth3(self, auth3: Auth3) -> None:
        """Take the last leg; raises RpcFault if no leg is expected, SecurityRefusal if it fails."""
        if auth3.auth is None:
            raise RpcFault(FaultStatus.nca_s_proto_error, "rpc_auth_3 without a token")
        self.security.finish(auth3.auth)


def _rejection(error: PresentationError) -> BindRejected:
    reason = RejectReason.REASON_NOT_SPECIFIED
    if error.limit:
        reason = RejectReason.LOCAL_LIMIT_EXCEEDED
    return BindRejected(reason, error.reason)


def _flags(asked: int, multiplexed: bool) -> int:
    """The flags of an answer: header signing is agreed to whenever it is asked for."""
    flags = WHOLE | (asked & PfcFlags.PFC_SUPPORT_HEADER_SIGN)
    return flags | PfcFlags.PFC_CONC_MPX if multiplexed else flags


def _answer_trailer(asked: SecurityTrailer | None, token: bytes) -> SecurityTrailer | None:
    """The trailer of an answer; a finished handshake has an empty token in it."""
    if asked is None:
        return None
    return SecurityTrailer(asked.auth_type, asked.auth_level, asked.auth_context_id, token)
