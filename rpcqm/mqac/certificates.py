"""Certificates that users register as theirs ([MC-MQAC] 3.2.4.2.1)."""

from rpcqm.adm.directory import equals
from rpcqm.adm.directory_object import User
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.security.user_certificates import (
    digest_of,
    pack_certificates,
    unpack_certificates,
)
from rpcqm.dcom.com_object import ComCall, Outcome
from rpcqm.mqac.machine import Machine
from rpcqm.operations.audit import COM, note, ordered_from
from rpcqm.qm.access import refuse_read_only

AT_MOST = 32
"""Certificates that a user has registered by RegisterCertificate.

Each is kept for ever, and looked at with the user's messages.

Bound `dcom.certificates_of_a_user` [certificates]: more get MQ_ERROR_INSUFFICIENT_RESOURCES.
"""

_ATTRIBUTES = ("certificates", "certificate_digest_list")
_REFUSALS = {
    DirectoryOperationResult.DIRECTORY_NOT_CONNECTED: HResult.MQ_ERROR_NO_DS,
    DirectoryOperationResult.OBJECT_NOT_FOUND: HResult.MQ_ERROR_ILLEGAL_USER,
}


async def register_certificate(machine: Machine, call: ComCall, certificate: bytes) -> None:
    """Add a certificate to those of a user; done when durable.

    Raises MQError: INVALID_CERTIFICATE, NO_DS, ILLEGAL_USER for a user that the directory does
    not know, INSUFFICIENT_RESOURCES for one who has too many.
    """
    _require_certificate(certificate)
    user = _user(machine, call.identity)
    await _write(machine, call, user, _with(unpack_certificates(user.certificates), certificate))


async def register_own_certificate(machine: Machine, call: ComCall, only_new: bool) -> Outcome:
    """Add the certificate that this queue manager signs with for its users (G285).

    Done when durable. The outcome is MQ_INFORMATION_INTERNAL_USER_CERT_EXIST where `only_new` and
    it is there.
    Raises MQError as `register_certificate`, CANNOT_CREATE_CERT_STORE where there is none.
    """
    user, own = _user(machine, call.identity), machine.protection.own_certificate
    if not own:
        raise MQError(HResult.MQ_ERROR_CANNOT_CREATE_CERT_STORE, "no keys to sign with")
    registered = unpack_certificates(user.certificates)
    if own in registered and only_new:
        return Outcome(HResult.MQ_INFORMATION_INTERNAL_USER_CERT_EXIST)
    await _write(machine, call, user, _with(registered, own))
    return Outcome(HResult.MQ_OK)


def _user(machine: Machine, identity: Identity) -> User:
    refuse_read_only(identity)
    wanted = [equals("security_identifier", sid_bytes(identity.sid))]
    status, user = machine.directory.read_directory(User, wanted)
    if user is None:
        raise MQError(_REFUSALS.get(status, HResult.MQ_ERROR_DS_ERROR), identity.name)
    return user


def _with(registered: list[bytes], certificate: bytes) -> list[bytes]:
    others = [each for each in registered if each != certificate]
    if len(others) >= AT_MOST:
        raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many certificates")
    return [*others, certificate]


async def _write(machine: Machine, call: ComCall, user: User, certificates: list[bytes]) -> None:
    user.certificates = pack_certificates(certificates)
    user.certificate_digest_list = [digest_of(each) for each in certificates]
    writing = machine.directory.write_directory(user, _ATTRIBUTES)
    if writing.done:
        _check(writing.result())
    with ordered_from(call.peer, COM):
        note(call.identity, "register certificate", call.identity.name)
    _check(await writing)


def _check(answer: DirectoryAnswer) -> None:
    if answer.result is not DirectoryOperationResult.SUCCESS:
        raise MQError(_REFUSALS.get(answer.result, HResult.MQ_ERROR_DS_ERROR), answer.reason)


def _require_certificate(octets: bytes) -> None:
    """Raise MQ_ERROR_INVALID_CERTIFICATE for what is no X.509 certificate."""
    # Only now, because it takes time to load and few register certificates.
    from cryptography import x509

    try:
        x509.load_der_x509_certificate(octets)
    except (ValueError, TypeError) as error:
        raise MQError(HResult.MQ_ERROR_INVALID_CERTIFICATE, str(error)) from error
