"""Signatures, certificates and encrypted bodies of messages ([MS-MQQB] 3.1.5.8.3, 3.1.7.1.4, .5).

A sender signs before it encrypts; so a body is decrypted here before the signature is checked.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA1

from rpcqm.adm.directory import equals
from rpcqm.adm.directory_object import User
from rpcqm.adm.message import Message
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.identity import ANONYMOUS, EVERYONE, Identity
from rpcqm.binary import ciphers
from rpcqm.binary.blobs import decode_public_keys
from rpcqm.binary.caches import (
    RECEIVE_SYMMETRIC_KEY_CACHE_SIZE,
    SEND_SYMMETRIC_KEY_CACHE_SIZE,
    SYMMETRIC_KEY_SHORT_LIFETIME,
    USER_CERT_CACHE_SIZE,
    USER_CERT_LIFETIME,
    AgingCache,
)
from rpcqm.binary.own_keys import OwnKeys
from rpcqm.binary.signatures import sign, verified_level
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    HashAlgorithm,
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import (
    MessageAttributes,
    PacketMessage,
    build_user_message,
    read_attributes,
)
from rpcqm.codec.packet.patch import clear_encrypted_flag, set_authentication_level
from rpcqm.codec.packet.security import SecurityHeader
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.security.identifier import Sid, is_account
from rpcqm.codec.security.user_certificates import unpack_certificates
from rpcqm.qm.directory import Directory
from rpcqm.qm.protection import RejectedError
from rpcqm.qm.sender_rights import identity_of

_BAD_SIGNATURE = MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE
_ACCESS_DENIED = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
_BAD_ENCRYPTION = MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION
_SYSTEM_CLASSES = frozenset(MessageClass)
_PRIVACY_LEVELS = frozenset(PrivacyLevel)
UNSIGNED_AUTO, UNSIGNED_ANONYMOUS, UNSIGNED_CLAIMED = "auto", "anonymous", "claimed"
"""Whose an unsigned message is; "auto" means "claimed" in a directory, "anonymous" without."""
_SIGNED_WITH = frozenset((HashAlgorithm.SHA1, HashAlgorithm.SHA_256, HashAlgorithm.SHA_512))


class CouldNotEncryptError(Exception):
    """A message that needs encryption cannot be encrypted."""


SentKeys = AgingCache[tuple[object, ...], tuple[bytes, bytes]]
"""Symmetric keys and their SIMPLEBLOBs, by destination and privacy level."""


class Checked(NamedTuple):
    """The sender of a message, and how the message was protected on its way here."""

    identity: Identity
    authenticated: bool
    encrypted: bool


class MessageSecurity:
    """Checks what arrives, signs and encrypts what leaves."""

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        queue_manager: QueueManager,
        directory: Directory,
        keys: OwnKeys,
        signer_of: Callable[[str], Identity] = identity_of,
    ) -> None:
        self._signer_of = signer_of
        self._queue_manager = queue_manager
        self._directory = directory
        self._keys = keys
        self.unsigned_senders = UNSIGNED_AUTO
        self.receive_symmetric_key_cache: AgingCache[tuple[object, ...], bytes] = AgingCache(
            clock, timers, RECEIVE_SYMMETRIC_KEY_CACHE_SIZE, SYMMETRIC_KEY_SHORT_LIFETIME
        )
        self.send_symmetric_key_cache, self.send_base_symmetric_key_cache = (
            SentKeys(clock, timers, SEND_SYMMETRIC_KEY_CACHE_SIZE, SYMMETRIC_KEY_SHORT_LIFETIME)
            for _ in range(2)
        )
        self.user_cert_cache: AgingCache[tuple[bytes, bytes], bool] = AgingCache(
            clock, timers, USER_CERT_CACHE_SIZE, USER_CERT_LIFETIME
        )

    def use_keys(self, keys: OwnKeys) -> None:
        """Sign and decrypt with other keys from now on."""
        self._keys = keys

    def stop(self) -> None:
        """Forget what was cached."""
        self.receive_symmetric_key_cache.stop()
        self.send_symmetric_key_cache.stop()
        self.send_base_symmetric_key_cache.stop()
        self.user_cert_cache.stop()

    # Arriving

    def check(self, message: Message) -> Checked:
        """Decrypt a message in place and find out who sent it.

        RejectedError: BAD_ENCRYPTION, BAD_SIGNATURE also for an unknown PrivacyLevel (G170),
        ACCESS_DENIED for a SecurityHeader or a sender that cannot be read. A message without a
        SecurityHeader is anonymous (G28).
        """
        try:
            return self._check(message)
        except DecodeError:
            raise RejectedError(_ACCESS_DENIED) from None

    def _check(self, message: Message) -> Checked:
        header = message.attributes.security_header
        encrypted = header is not None and bool(header.flags.EB)
        if header is not None and encrypted:
            self._decrypt(message, header)
        level = verified_level(message.attributes)
        if level is None or message.attributes.privacy_level not in _PRIVACY_LEVELS:
            raise RejectedError(_BAD_SIGNATURE)
        authenticated = level is not MessageAuthenticationLevel.NONE
        if header is None:
            return Checked(ANONYMOUS, authenticated, encrypted)
        if authenticated and header.flags.ST:
            self._check_certificate(header)
        if authenticated:
            packet = bytearray(message.packet)
            set_authentication_level(packet, level)
            message.packet = bytes(packet)
        return Checked(self._sender(header, authenticated), authenticated, encrypted)

    def _sender(self, header: SecurityHeader, authenticated: bool) -> Identity:
        """The identity whose rights count; a queue manager has everybody's.

        RejectedError: ACCESS_DENIED for a malformed SID, or one of no account. Without a signature
        a SID proves nothing, so that its sender may count as Anonymous (G97).
        """
        if header.flags.ST == SenderIdentifierType.SID:
            sid = Sid.decode(header.security_id)
            if sid.encoded_size != len(header.security_id):
                raise RejectedError(_ACCESS_DENIED)
        if header.flags.ST == SenderIdentifierType.NONE or not (
            authenticated or self._believes_claims
        ):
            return ANONYMOUS
        if header.flags.ST == SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
            return Identity("", EVERYONE, frozenset((EVERYONE,)))
        if not is_account(sid):
            raise RejectedError(_ACCESS_DENIED)
        if not authenticated:
            return Identity(str(sid), str(sid), frozenset({EVERYONE}))
        signer = self._signer_of(str(sid))
        if signer.is_anonymous:
            raise RejectedError(_ACCESS_DENIED)
        return signer

    @property
    def _believes_claims(self) -> bool:
        """Whether an unsigned message counts as sent by the account that its header names."""
        if self.unsigned_senders == UNSIGNED_AUTO:
            return self._directory.is_there
        return self.unsigned_senders == UNSIGNED_CLAIMED

    def verified(self, message: Message) -> bool:
        """Whether the signature of a message sent here is valid; the message is marked so."""
        forget_claimed_level(message)
        try:
            return self.check(message).authenticated
        except RejectedError:
            return False

    def decrypted(self, body: bytes, blob: bytes, level: int, algorithm: int) -> bytes:
        """The clear body of a message that an application encrypted for us; DecodeError."""
        source = self._queue_manager.identifier
        key = self._received_key(source, blob, level, algorithm)
        return ciphers.decrypt(body, key, algorithm)

    def _decrypt(self, message: Message, header: SecurityHeader) -> None:
        attributes = message.attributes
        level, algorithm = int(attributes.privacy_level), int(attributes.encryption_algorithm)
        source = attributes.identifier.queue_manager_guid
        try:
            key = self._received_key(source, header.encryption_key, level, algorithm)
            message.packet = _in_clear(message.packet, key, algorithm)
        except DecodeError:
            raise RejectedError(_BAD_ENCRYPTION) from None

    def in_clear(self, packet: bytes, *, sent: bool) -> bytes:
        """A packet with its body in clear, for a recorder. Raises DecodeError for other octets.

        A packet `sent` from here is decrypted by the key that it was encrypted with.
        """
        message = PacketMessage(packet)
        header = message.security_header
        if header is None or not header.flags.EB:
            return packet
        level, algorithm = int(message.privacy_level), int(message.encryption_algorithm)
        if sent:
            keys = {blob: key for key, blob in self._sent_keys(level).values()}
            key = keys.get(header.encryption_key, b"")
        else:
            source = message.identifier.queue_manager_guid
            key = self._received_key(source, header.encryption_key, level, algorithm)
        return _in_clear(packet, key, algorithm) if key else packet

    def _received_key(self, source: UUID, blob: bytes, level: int, algorithm: int) -> bytes:
        cached = self.receive_symmetric_key_cache.get((source, level, algorithm, blob))
        if cached is not None:
            return cached
        if self._keys.encryption_key is None:
            raise DecodeError("there is no key to decrypt with")
        key = ciphers.received_key(self._keys.encryption_key, blob, level, algorithm)
        self.receive_symmetric_key_cache.add((source, level, algorithm, blob), key)
        return key

    def _check_certificate(self, header: SecurityHeader) -> None:
        """Raise unless the directory lists the certificate among the sender's."""
        known = (header.security_id, header.sender_cert)
        if self.user_cert_cache.get(known):
            return
        if not self._is_registered(*known):
            raise RejectedError(_BAD_SIGNATURE)
        self.user_cert_cache.add(known, True)

    def _is_registered(self, security_id: bytes, certificate: bytes) -> bool:
        known = [equals("security_identifier", security_id)]
        found = self._directory.read_directory(User, known)[1]
        return found is not None and certificate in unpack_certificates(found.certificates)

    # For applications

    @property
    def own_certificate(self) -> bytes:
        """Our certificate, b"" without one."""
        return self._keys.certificate

    def certificate_of(self, security_id: bytes) -> bytes:
        """Our certificate if the directory lists it among that user's, else b"" (G285)."""
        own = self._keys.certificate
        return own if own and self._is_registered(security_id, own) else b""

    def sign_sent(self, message: MessageAttributes, level: MessageAuthenticationLevel) -> None:
        """Sign a message in place for its sender; its certificate must be ours (G285).

        A signature of level 3.0 stands in the header of all destinations, which it covers; one
        of level 2.0 covers a single destination, so that several get one of 3.0.
        """
        key = self._key_for(message)
        if level is MessageAuthenticationLevel.SIG20 and (
            message.destination_multi_queue_format_name
        ):
            level = MessageAuthenticationLevel.SIG30
        name = message.destination_queue_format_name
        if level is MessageAuthenticationLevel.SIG30 and name is not None:
            several = message.destination_multi_queue_format_name
            message.destination_multi_queue_format_name = several or (name,)
        try:
            packet = UserMessage(build_user_message(message))
            signature = sign(packet, key, level, message.hash_algorithm)
        except DecodeError as error:
            raise MQError(HResult.MQ_ERROR_CANNOT_HASH_DATA_EX, str(error)) from error
        if level is MessageAuthenticationLevel.SIG30:
            message.multiple_destination_signature = signature
        else:
            message.signature = signature
        message.authentication_level = level

    def sign_octets(self, message: MessageAttributes, octets: bytes) -> bytes:
        """An RSA signature over the SHA-1 of octets, in the name of a message's sender.

        Raises MQ_ERROR_CANNOT_SIGN_DATA_EX also where the directory does not list our certificate
        as the sender's: receivers take the certificate as proof of the sender (G165).
        """
        key = self._key_for(message)
        if not self._is_registered(message.sender_identifier, message.sender_certificate):
            raise MQError(HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX, "not the sender's certificate")
        return key.sign(octets, PKCS1v15(), SHA1())

    def _key_for(self, message: MessageAttributes) -> RSAPrivateKey:
        key = self._keys.signing_key
        if key is None or message.sender_certificate != self._keys.certificate:
            raise MQError(HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX, "no key for that certificate")
        return key

    # Leaving

    def outgoing_packet(self, name: FormatName, message: Message) -> bytes:
        """The octets of a message as they are sent to a queue. Raises CouldNotEncryptError."""
        destination = None
        if not isinstance(name.value, str):
            destination = self._directory.destination_queue_manager(name)
        return self.protect(message, destination)

    def protect(self, message: Message, destination: UUID | None) -> bytes:
        """The packet to send: signed if we have a key, and encrypted if the message asks for it.

        A forwarded message is not changed. A packet with the class of an acknowledgement or a
        report is not signed, but its body may be private as any other; nor is a body that an
        application has encrypted, because its receiver decrypts before it checks (G298).
        CouldNotEncryptError.
        """
        packet = message.packet
        own = self._queue_manager.identifier.bytes_le
        if message.envelope.source_machine != own:
            return packet
        attributes = message.attributes
        privacy_level = attributes.privacy_level
        signing_key = self._keys.signing_key
        if signing_key is not None and _is_ours_to_sign(attributes):
            packet = self._signed(packet, signing_key)
        return self._encrypted(packet, destination) if privacy_level else packet

    def _signed(self, packet: bytes, key: RSAPrivateKey) -> bytes:
        """With a 3.0 signature for a message to several queues, a 2.0 one for others (G151).

        The sender is named only if the directory lists our certificate as his: receivers refuse the
        signature otherwise.
        """
        attributes = read_attributes(packet)
        if attributes.signature or attributes.multiple_destination_signature:
            return packet
        several = attributes.destination_multi_queue_format_name
        level = MessageAuthenticationLevel.SIG30 if several else MessageAuthenticationLevel.SIG20
        algorithm = _hash_for(attributes)
        certificate, sender = self._keys.certificate, attributes.sender_identifier
        unsigned = replace(
            attributes,
            sender_certificate=certificate,
            sender_identifier=sender if self._is_registered(sender, certificate) else b"",
            hash_algorithm=algorithm,
        )
        signature = sign(UserMessage(build_user_message(unsigned)), key, level, algorithm)
        if several:
            return build_user_message(replace(unsigned, multiple_destination_signature=signature))
        return build_user_message(replace(unsigned, signature=signature))

    def _encrypted(self, packet: bytes, destination: UUID | None) -> bytes:
        attributes = read_attributes(packet)
        if attributes.symmetric_key:
            return packet
        key, blob, algorithm = self._sent_key(destination, attributes.privacy_level)
        body = ciphers.encrypt(attributes.body, key, algorithm)
        changed = replace(attributes, body=body, symmetric_key=blob, encryption_algorithm=algorithm)
        return build_user_message(changed)

    def _sent_key(self, destination: UUID | None, level: int) -> tuple[bytes, bytes, int]:
        """A symmetric key for a queue manager whose public key is in the directory."""
        if destination is None or level not in ciphers.PROVIDERS:
            raise CouldNotEncryptError("direct names tell no key")
        algorithm = ciphers.PREFERRED[PrivacyLevel(level)]
        cache = self._sent_keys(level)
        cached = cache.get((destination, level))
        if cached is None:
            machine = self._directory.queue_manager(destination)
            public = b"" if machine is None else machine.public_encryption_key_list
            try:
                keys = decode_public_keys(public)
                public_key = keys[ciphers.PROVIDERS[PrivacyLevel(level)]]
            except (DecodeError, KeyError) as error:
                raise CouldNotEncryptError(f"no public key: {error}") from error
            cached = ciphers.new_key(public_key, PrivacyLevel(level), algorithm)
            cache.add((destination, level), cached)
        return cached[0], cached[1], algorithm

    def _sent_keys(self, level: int) -> SentKeys:
        """Keys of the base provider are kept apart ([MS-MQQB] <67>, <68>)."""
        if level == PrivacyLevel.BASE:
            return self.send_base_symmetric_key_cache
        return self.send_symmetric_key_cache


def _hash_for(message: MessageAttributes) -> int:
    """The hash that a message asks for; SHA-512 in place of a missing or broken one (G151)."""
    asked = message.hash_algorithm
    return asked if asked in _SIGNED_WITH else HashAlgorithm.SHA_512


def _is_ours_to_sign(message: PacketMessage) -> bool:
    """Whether a message has the usual class, or an application's own, and a body in clear."""
    number = message.message_class
    usual = number == MessageClass.MQMSG_CLASS_NORMAL or number not in _SYSTEM_CLASSES
    return usual and not message.symmetric_key


def forget_claimed_level(message: Message) -> None:
    """Clear the level that a sender claims for its own signature: only a check may set it."""
    attributes = message.attributes
    if attributes.layout.security >= 0 and attributes.is_called_authenticated:
        packet = bytearray(message.packet)
        set_authentication_level(packet, MessageAuthenticationLevel.NONE)
        message.packet = bytes(packet)


def _in_clear(packet: bytes, key: bytes, algorithm: int) -> bytes:
    """The packet with its body decrypted; its privacy level on the way stays visible."""
    attributes = read_attributes(packet)
    body = ciphers.decrypt(attributes.body, key, algorithm)
    clear = bytearray(build_user_message(replace(attributes, body=body)))
    clear_encrypted_flag(clear)
    return bytes(clear)
