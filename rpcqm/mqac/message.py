"""MSMQMessage: a message to be sent, or a received one ([MC-MQAC] 3.17)."""

import re
import sys
from typing import Self
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import EVERY_ACKNOWLEDGEMENT, EncryptionAlgorithm, HashAlgorithm
from rpcqm.codec.packet.message import MessageAttributes, MessageIdentifier, read_attributes
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqacvalues import (
    MQMSGAUTHLEVEL,
    MQMSGCLASS,
    MQMSGDELIVERY,
    MQMSGPRIVLEVEL,
    MQMSGSENDERIDTYPE,
    MQMSGTRACE,
    MQPRIORITY,
)
from rpcqm.codec.types.mqvalues import (
    INFINITE,
    MQMSG_DEADLETTER,
    MQMSG_JOURNAL,
    VARENUM,
    FormatNameType,
)
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.mqac._message_properties import (
    get_flag,
    get_number,
    get_octets,
    get_text,
    not_implemented,
    put_choice,
    put_number,
)
from rpcqm.mqac.arguments import instance, octets, octets_variant, text
from rpcqm.mqac.bodies import body_of, body_variant
from rpcqm.mqac.dates import date_variant
from rpcqm.mqac.destination import MSMQDestination
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.named_queues import NamedQueues
from rpcqm.mqac.owned import LONGEST_GUID, Owned, bounded
from rpcqm.mqac.sending import send

PROVIDER_TYPE = 1
PROVIDER_NAME = "Microsoft Base Cryptographic Provider, v1.0"
"""The cryptographic provider of a new message ([MC-MQAC] 3.17.3): PROV_RSA_FULL."""

SENDER_VERSION = 0x10

_ACKNOWLEDGEMENTS = range(EVERY_ACKNOWLEDGEMENT + 1)
"""Any combination of the four flags of MQMSGACKNOWLEDGEMENT."""
_PRIORITIES = range(MQPRIORITY.MQ_MIN_PRIORITY, MQPRIORITY.MQ_MAX_PRIORITY + 1)
_GUID = re.compile(r"\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}")


def new_attributes() -> MessageAttributes:
    """The attributes of a message that a client has created ([MC-MQAC] 3.17.3)."""
    return MessageAttributes(
        time_to_reach_queue=INFINITE,
        hash_algorithm=HashAlgorithm.SHA1,
        encryption_algorithm=EncryptionAlgorithm.RC4,
        sent_time=INFINITE,
        arrival_time=INFINITE,
        authentication_provider_type=PROVIDER_TYPE,
        authentication_provider_name=PROVIDER_NAME,
    )


class MSMQMessage(Owned):
    """A message: `attributes` is the specification's represented Message.

    `chosen` names the attributes that the client has set.
    """

    INTERFACES = ("IMSMQMessage4", "IMSMQMessage3", "IMSMQMessage2", "IMSMQMessage")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._received: Message | None = None
        self._attributes: MessageAttributes | None = None
        self._wanted = (True, True, True)
        self.has_body = False
        self.chosen: set[str] = set()
        self.requested_authentication_level = 0
        self.soap_body = ""
        self.soap_header = ""
        self.sender_identifier_cache = b""
        self.sender_certificate_cache = b""

    @classmethod
    def of_received(
        cls,
        machine: Machine,
        message: Message,
        *,
        want_destination: bool = False,
        want_body: bool = True,
        want_connector: bool = False,
        owner: str = "",
    ) -> Self:
        """The object for a received message; unwanted parts stay NULL.

        `owner` is the SID of the caller who holds it from now on.
        """
        made = cls(machine)
        made._received = message
        made._wanted = (want_destination, want_body, want_connector)
        made.has_body = want_body
        made.hold(machine.held, owner, "packet", len(message.packet), always=True)
        return made

    @property
    def attributes(self) -> MessageAttributes:
        """The represented message; its packet is decoded on demand."""
        if self._attributes is None:
            received = self._received
            self._attributes = new_attributes() if received is None else self._read(received)
        return self._attributes

    def _read(self, message: Message) -> MessageAttributes:
        attributes = read_attributes(message.attributes)
        attributes.lookup_identifier = message.lookup_identifier
        attributes.arrival_time = message.arrival_time // 1000
        status_queue = message.transaction_status_queue_format_name
        attributes.transaction_status_queue_format_name = status_queue
        want_destination, want_body, want_connector = self._wanted
        if not want_destination:
            attributes.destination_queue_format_name = None
            attributes.destination_multi_queue_format_name = ()
        if not want_body:
            attributes.body, attributes.body_type = b"", 0
        if not want_connector:
            attributes.connector_type_identifier = None
        self._received = None
        return attributes

    # Chosen by applications

    get_PrivLevel = get_number("privacy_level")
    put_PrivLevel = put_choice("privacy_level", MQMSGPRIVLEVEL)
    get_Delivery = get_number("delivery_guarantee")
    put_Delivery = put_choice("delivery_guarantee", MQMSGDELIVERY)
    get_Trace = get_number("tracing_requested")
    put_Trace = put_choice("tracing_requested", MQMSGTRACE)
    get_Priority = get_number("priority")
    put_Priority = put_choice("priority", _PRIORITIES)
    get_AppSpecific = get_number("application_tag")
    put_AppSpecific = put_number("application_tag")
    get_Ack = get_number("acknowledgements_requested")
    put_Ack = put_choice("acknowledgements_requested", _ACKNOWLEDGEMENTS)
    get_MaxTimeToReachQueue = get_number("time_to_reach_queue")
    put_MaxTimeToReachQueue = put_number("time_to_reach_queue")
    get_MaxTimeToReceive = get_number("time_to_be_received")
    put_MaxTimeToReceive = put_number("time_to_be_received")
    get_HashAlgorithm = get_number("hash_algorithm")
    put_HashAlgorithm = put_choice("hash_algorithm", HashAlgorithm)
    get_EncryptAlgorithm = get_number("encryption_algorithm")
    put_EncryptAlgorithm = put_number("encryption_algorithm")
    get_SenderIdType = get_number("sender_identifier_type")
    put_SenderIdType = put_choice("sender_identifier_type", MQMSGSENDERIDTYPE)
    get_Extension = get_octets("extension")

    def put_Extension(self, call: ComCall, varExtension: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.52 Extension (Opnum 58)."""
        extension = octets(varExtension)
        self.keep(call, "extension", len(extension))
        self.attributes.extension = extension

    def get_AuthLevel(self, call: ComCall) -> int:
        """[MC-MQAC] 3.17.4.1.4 AuthLevel (Opnum 10)."""
        return self.requested_authentication_level

    def put_AuthLevel(self, call: ComCall, lAuthLevel: int) -> None:
        """[MC-MQAC] 3.17.4.1.5 AuthLevel (Opnum 11)."""
        if lAuthLevel not in set(MQMSGAUTHLEVEL):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"AuthLevel {lAuthLevel}")
        self.requested_authentication_level = lAuthLevel

    def get_Journal(self, call: ComCall) -> int:
        """[MC-MQAC] 3.17.4.1.13 Journal (Opnum 19)."""
        attributes = self.attributes
        journal = MQMSG_JOURNAL if attributes.positive_journaling_requested else 0
        return journal | (MQMSG_DEADLETTER if attributes.negative_journaling_requested else 0)

    def put_Journal(self, call: ComCall, lJournal: int) -> None:
        """[MC-MQAC] 3.17.4.1.14 Journal (Opnum 20)."""
        if lJournal & ~(MQMSG_JOURNAL | MQMSG_DEADLETTER):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"Journal {lJournal}")
        self.attributes.positive_journaling_requested = bool(lJournal & MQMSG_JOURNAL)
        self.attributes.negative_journaling_requested = bool(lJournal & MQMSG_DEADLETTER)

    def get_Label(self, call: ComCall) -> str:
        """[MC-MQAC] 3.17.4.1.30 Label (Opnum 36)."""
        return self.attributes.label

    def put_Label(self, call: ComCall, bstrLabel: str | bytes | None) -> None:
        """[MC-MQAC] 3.17.4.1.31 Label (Opnum 37)."""
        status = HResult.MQ_ERROR_LABEL_TOO_LONG
        label = self.keep_text(call, "label", bstrLabel, MAXIMUM_LABEL_LENGTH, status)
        self.attributes.label = label

    def get_Body(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.17.4.1.21 Body (Opnum 27)."""
        if not self.has_body:
            return EMPTY
        return body_variant(self.attributes.body_type, self.attributes.body)

    def put_Body(self, call: ComCall, varBody: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.22 Body (Opnum 28)."""
        body_type, body = body_of(varBody)
        self.keep(call, "body", len(body))
        self.attributes.body_type, self.attributes.body = body_type, body
        self.has_body = True

    def get_BodyLength(self, call: ComCall) -> int:
        """[MC-MQAC] 3.17.4.1.20 BodyLength (Opnum 26)."""
        return len(self.attributes.body)

    def get_CorrelationId(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.17.4.1.26 CorrelationId (Opnum 32)."""
        return octets_variant(self.attributes.correlation_identifier.encode())

    def put_CorrelationId(self, call: ComCall, varMsgId: Variant) -> None:
        """Of 20 octets, or none; [MC-MQAC] 3.17.4.1.27 CorrelationId (Opnum 33)."""
        given = octets(varMsgId)
        if len(given) not in (0, len(NULL_IDENTIFIER.encode())):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_SIZE, f"{len(given)} octets")
        identifier = MessageIdentifier.decode(given) if any(given) else NULL_IDENTIFIER
        self.attributes.correlation_identifier = identifier

    # Set by queue managers

    get_Class = get_number("message_class")
    get_IsAuthenticated = get_number("authentication_level", bool)
    get_IsAuthenticated2 = get_flag("authentication_level")
    get_ReceivedAuthenticationLevel = get_number("authentication_level")
    get_IsFirstInTransaction = get_number("first_in_transaction")
    get_IsFirstInTransaction2 = get_flag("first_in_transaction")
    get_IsLastInTransaction = get_number("last_in_transaction")
    get_IsLastInTransaction2 = get_flag("last_in_transaction")
    get_SoapEnvelope = get_text("soap_envelope")
    get_CompoundMessage = get_octets("soap_compound_message")
    get_Properties = not_implemented

    def get_Id(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.17.4.1.25 Id (Opnum 31)."""
        return octets_variant(self.attributes.identifier.encode())

    def get_LookupId(self, call: ComCall) -> Variant:
        """The number in decimal digits; [MC-MQAC] 3.17.4.1.83 LookupId (Opnum 89)."""
        return Variant(VARENUM.VT_BSTR, str(self.attributes.lookup_identifier))

    def get_SourceMachineGuid(self, call: ComCall) -> str:
        """[MC-MQAC] 3.17.4.1.19 SourceMachineGuid (Opnum 25)."""
        return str(self.attributes.source_machine_identifier).upper()

    def get_SentTime(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.17.4.1.40 SentTime (Opnum 46)."""
        return date_variant(self.attributes.sent_time)

    def get_ArrivedTime(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.17.4.1.41 ArrivedTime (Opnum 47)."""
        return date_variant(self.attributes.arrival_time)

    def get_SenderVersion(self, call: ComCall) -> int:
        """[MC-MQAC] 3.17.4.1.50 SenderVersion (Opnum 56)."""
        return SENDER_VERSION

    def get_TransactionId(self, call: ComCall) -> Variant:
        """In the form of qmcomm2 (G171); [MC-MQAC] 3.17.4.1.68 TransactionId (Opnum 74)."""
        number = self.attributes.transaction_identifier
        source = self.attributes.source_machine_identifier
        identifier = NULL_IDENTIFIER if number is None else MessageIdentifier(source, number)
        return octets_variant(identifier.encode())

    # The sender, and properties that only connectors choose

    get_SenderCertificate = get_octets("sender_certificate")
    get_SenderId = get_octets("sender_identifier")
    get_DestinationSymmetricKey = get_octets("symmetric_key")
    get_AuthenticationProviderType = get_number("authentication_provider_type")
    put_AuthenticationProviderType = put_number("authentication_provider_type")
    get_AuthenticationProviderName = get_text("authentication_provider_name")
    get_MsgClass = get_Class

    def put_SenderCertificate(self, call: ComCall, varSenderCert: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.44 SenderCertificate (Opnum 50)."""
        self.choose(call, "sender_certificate", octets(varSenderCert))

    def put_SenderId(self, call: ComCall, varSenderId: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.64 SenderId (Opnum 70)."""
        self.choose(call, "sender_identifier", octets(varSenderId))

    def put_DestinationSymmetricKey(self, call: ComCall, varDestSymmKey: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.57 DestinationSymmetricKey (Opnum 63)."""
        self.choose(call, "symmetric_key", octets(varDestSymmKey))

    def get_Signature(self, call: ComCall) -> Variant:
        """For a message to several queues, the signature for all of them.

        Source: [MC-MQAC] 3.17.4.1.58 Signature (Opnum 64).
        """
        attributes = self.attributes
        return octets_variant(attributes.signature or attributes.multiple_destination_signature)

    def put_Signature(self, call: ComCall, varSignature: Variant) -> None:
        """[MC-MQAC] 3.17.4.1.59 Signature (Opnum 65)."""
        self.attributes.multiple_destination_signature = b""
        self.choose(call, "signature", octets(varSignature))

    def put_AuthenticationProviderName(
        self, call: ComCall, bstrAuthProvName: str | bytes | None
    ) -> None:
        """[MC-MQAC] 3.17.4.1.63 AuthenticationProviderName (Opnum 69)."""
        self.choose(call, "authentication_provider_name", text(bstrAuthProvName))

    def put_MsgClass(self, call: ComCall, lMsgClass: int) -> None:
        """[MC-MQAC] 3.17.4.1.66 MsgClass (Opnum 72)."""
        if lMsgClass not in set(MQMSGCLASS):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"MsgClass {lMsgClass}")
        self.choose(call, "message_class", lMsgClass)

    def choose(self, call: ComCall, name: str, value: str | bytes | int) -> None:
        """Set an attribute, and remember that the client has set it."""
        self.keep(call, name, sys.getsizeof(value))
        setattr(self.attributes, name, value)
        self.chosen.add(name)

    def get_ConnectorTypeGuid(self, call: ComCall) -> str:
        """[MC-MQAC] 3.17.4.1.53 ConnectorTypeGuid (Opnum 59)."""
        return f"{{{self.attributes.connector_type_identifier or NULL_GUID}}}".upper()

    def put_ConnectorTypeGuid(
        self, call: ComCall, bstrGuidConnectorType: str | bytes | None
    ) -> None:
        """[MC-MQAC] 3.17.4.1.54 ConnectorTypeGuid (Opnum 60)."""
        guid = bounded(bstrGuidConnectorType, LONGEST_GUID)
        if _GUID.fullmatch(guid) is None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, guid)
        identifier = UUID(guid)
        self.attributes.connector_type_identifier = identifier if identifier.int else None

    def AttachCurrentSecurityContext(self, call: ComCall) -> None:
        """Remember the caller; drop the certificate of an earlier one (G282).

        Source: [MC-MQAC] 3.17.4.1.49 AttachCurrentSecurityContext (Opnum 55).
        """
        sender = sid_bytes(call.identity.sid)
        is_set = "sender_certificate" in self.chosen
        own = self._machine.protection.internal_certificate(sender)
        self.sender_identifier_cache = sender
        self.sender_certificate_cache = (is_set and self.attributes.sender_certificate) or own

    def AttachCurrentSecurityContext2(self, call: ComCall) -> None:
        """[MC-MQAC] 3.17.4.1.87 AttachCurrentSecurityContext2 (Opnum 93)."""
        self.AttachCurrentSecurityContext(call)

    def put_SoapHeader(self, call: ComCall, bstrSoapHeader: str | bytes | None) -> None:
        """[MC-MQAC] 3.17.4.1.90 SoapHeader (Opnum 96)."""
        given = text(bstrSoapHeader)
        self.keep(call, "soap_header", sys.getsizeof(given))
        self.soap_header = given

    def put_SoapBody(self, call: ComCall, bstrSoapBody: str | bytes | None) -> None:
        """[MC-MQAC] 3.17.4.1.91 SoapBody (Opnum 97)."""
        given = text(bstrSoapBody)
        self.keep(call, "soap_body", sys.getsizeof(given))
        self.soap_body = given

    # Queues

    def get_ResponseQueueInfo(self, call: ComCall) -> ComObject | None:
        """[MC-MQAC] 3.17.4.1.76 ResponseQueueInfo (Opnum 82)."""
        return self._queue_info(call, self.attributes.response_queue_format_name)

    def putref_ResponseQueueInfo(self, call: ComCall, pqinfoResponse: object) -> None:
        """[MC-MQAC] 3.17.4.1.77 ResponseQueueInfo (Opnum 83)."""
        attributes, names = self.attributes, _named(pqinfoResponse)
        self.keep_names(call, "response queues", names)
        attributes.response_queue_format_name, several = _one_or_several(names)
        attributes.response_multi_queue_format_name = several

    def get_AdminQueueInfo(self, call: ComCall) -> ComObject | None:
        """[MC-MQAC] 3.17.4.1.78 AdminQueueInfo (Opnum 84)."""
        return self._queue_info(call, self.attributes.administration_queue_format_name)

    def putref_AdminQueueInfo(self, call: ComCall, pqinfoAdmin: object) -> None:
        """[MC-MQAC] 3.17.4.1.79 AdminQueueInfo (Opnum 85)."""
        attributes, names = self.attributes, _named(pqinfoAdmin)
        self.keep_names(call, "administration queues", names)
        attributes.administration_queue_format_name, several = _one_or_several(names)
        attributes.administration_multi_queue_format_name = several

    get_ResponseQueueInfo_v1 = get_ResponseQueueInfo
    get_ResponseQueueInfo_v2 = get_ResponseQueueInfo
    put_ResponseQueueInfo_v1 = putref_ResponseQueueInfo
    put_ResponseQueueInfo_v2 = putref_ResponseQueueInfo
    get_AdminQueueInfo_v1 = get_AdminQueueInfo
    get_AdminQueueInfo_v2 = get_AdminQueueInfo
    put_AdminQueueInfo_v1 = putref_AdminQueueInfo
    put_AdminQueueInfo_v2 = putref_AdminQueueInfo

    def get_DestinationQueueInfo(self, call: ComCall) -> ComObject | None:
        """[MC-MQAC] 3.17.4.1.42 DestinationQueueInfo (Opnum 48)."""
        return self._queue_info(call, self.attributes.destination_queue_format_name)

    def get_TransactionStatusQueueInfo(self, call: ComCall) -> ComObject | None:
        """[MC-MQAC] 3.17.4.1.55 TransactionStatusQueueInfo (Opnum 61)."""
        return self._queue_info(call, self.attributes.transaction_status_queue_format_name)

    def _queue_info(self, call: ComCall, name: FormatName | None) -> ComObject | None:
        """An MSMQQueueInfo; NULL where no queue is named (G281)."""
        return None if name is None else self._machine.queue_info(call, (name,))

    def get_ResponseDestination(self, call: ComCall) -> ComObject:
        """The last one set (G296); [MC-MQAC] 3.17.4.1.80 ResponseDestination (Opnum 86)."""
        attributes = self.attributes
        return self._destination(
            call,
            attributes.response_multi_queue_format_name,
            attributes.response_queue_format_name,
        )

    def putref_ResponseDestination(self, call: ComCall, pdestResponse: object) -> None:
        """[MC-MQAC] 3.17.4.1.81 ResponseDestination (Opnum 87)."""
        self.putref_ResponseQueueInfo(call, pdestResponse)

    def get_Destination(self, call: ComCall) -> ComObject:
        """[MC-MQAC] 3.17.4.1.82 Destination (Opnum 88)."""
        attributes = self.attributes
        return self._destination(
            call,
            attributes.destination_multi_queue_format_name,
            attributes.destination_queue_format_name,
        )

    def _destination(
        self, call: ComCall, several: tuple[FormatName, ...], single: FormatName | None
    ) -> ComObject:
        """An MSMQDestination, which may name no queue."""
        names = several or (() if single is None else (single,))
        made = MSMQDestination(self._machine, names)
        made.keep_names(call, "format name", names)
        return made

    # Sending

    def Send(
        self, call: ComCall, DestinationQueue: object, Transaction: Variant | None
    ) -> Completion[None]:
        """[MC-MQAC] 3.17.4.1.48 Send (Opnum 54)."""
        return send(self._machine, call, self, DestinationQueue, Transaction)


def _named(pointer: object) -> tuple[FormatName, ...]:
    """The queues that an object names, () for NULL."""
    named = instance(pointer, NamedQueues)
    return () if named is None else named.resolved_format_names()


def _one_or_several(
    names: tuple[FormatName, ...],
) -> tuple[FormatName | None, tuple[FormatName, ...]]:
    """The one queue that is named, or else several.

    The queues of a distribution list are several, too: a packet has another header for them.
    """
    is_one = len(names) == 1 and names[0].type is not FormatNameType.QUEUE_FORMAT_TYPE_DL
    return (names[0], ()) if is_one else (None, names)
