"""Security contexts of a client that writes its PDUs by hand."""

from rpcqm.rpc import pdu
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel
from rpcqm.rpc.pdu import REQUEST_BODY
from rpcqm.rpc.security.context import Credentials, SecurityContext, normalized_level
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD
from tests.support.rpc.probe import Wire, alter, bind

ALICE = NtlmCredentials("alice", PASSWORD)


def log_on(
    wire: Wire,
    level: int,
    context_id: int = 0,
    credentials: Credentials = ALICE,
    *,
    first: bool = True,
    flags: int = WHOLE,
) -> SecurityContext:
    """Authenticate in the bind (or an alter_context unless `first`) and alter_contexts."""
    wanted = normalized_level(level)
    assert wanted is not None
    authentication = credentials.authentication(wanted)
    context = SecurityContext(
        authentication.auth_type, wanted, context_id, authentication.begin(), wire_level=level
    )
    token, make = context.step(b""), bind if first else alter
    while token:
        trailer = pdu.SecurityTrailer(authentication.auth_type, level, context_id, token)
        (answer,) = wire.send(make(auth=trailer, pfc_flags=flags))
        assert isinstance(answer, pdu.BindAck | pdu.AlterContextResp), answer
        token = b""
        if not context.established:
            token = context.step(answer.auth.auth_value if answer.auth is not None else b"")
        make = alter
    return context


def protected(
    context: SecurityContext,
    opnum: int,
    stub: bytes = b"",
    call_id: int = 1,
    flags: int = WHOLE,
    p_cont_id: int = 0,
) -> bytes:
    """A request under a security context."""
    fixed = REQUEST_BODY.pack(len(stub), p_cont_id, opnum)
    return context.protect(0, flags, call_id, fixed, stub)


def call(
    wire: Wire, context: SecurityContext, opnum: int, stub: bytes = b"", call_id: int = 1
) -> pdu.Pdu:
    """One request under a security context; its answer, whose signature is checked."""
    wire.association.receive_data(protected(context, opnum, stub, call_id))
    octets = wire.association.data_to_send()
    answer = pdu.unpack(octets)
    if isinstance(answer, pdu.Response) and answer.auth is not None:
        context.unprotect(octets, pdu.RESPONSE_LENGTH, len(answer.auth.auth_value))
    return answer


LEVELS = [AuthenticationLevel(number) for number in (2, 3, 4, 5, 6)]
