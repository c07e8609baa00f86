"""MSMQApplication: a queue manager ([MC-MQAC] 3.2)."""

from typing import Any

from rpcqm.adm.directory import AttributeFilter, equals
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.properties import ManagementMachineProperty
from rpcqm.codec.property_values import MsmqConnected
from rpcqm.codec.types.mqacvalues import MQCERT_REGISTER
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.dcom.com_object import ComCall, Outcome
from rpcqm.mqac import told
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.administration import ask, order
from rpcqm.mqac.arguments import integer, octets, plain, text
from rpcqm.mqac.certificates import register_certificate, register_own_certificate
from rpcqm.mqac.guids import guid_of
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.owned import LONGEST_COMPUTER_NAME as MOST_OF_NAME
from rpcqm.mqac.owned import Owned
from rpcqm.qm.machine import version_numbers

_P = ManagementMachineProperty
_SHORT = 0x7FFF
_SERVED = 4, 1
"""The version of MSMQ that introduced the served interfaces, those that end with 4 (G418)."""


class MSMQApplication(Owned):
    """The queue manager of a computer; `computer_name` is None for this one."""

    INTERFACES = ("IMSMQApplication3", "IMSMQApplication2", "IMSMQApplication")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.computer_name: str | None = None

    # The directory

    def MachineIdOfMachineName(self, call: ComCall, MachineName: str | bytes | None) -> str:
        """The identifier of a queue manager, without braces; NULL is this one.

        Source: [MC-MQAC] 3.2.4.1.1 MachineIdOfMachineName (Opnum 7).
        """
        name = text(MachineName) or self._machine.queue_manager.computer_name
        if self._machine.names.is_local(name):
            return str(self._machine.queue_manager.identifier)
        for attribute in ("computer_name", "qualified_computer_name"):
            found = self._listed(equals(attribute, name))
            if found is not None:
                return str(found.identifier)
        raise MQError(HResult.MQ_ERROR_MACHINE_NOT_FOUND, name)

    def MachineNameOfMachineId(self, call: ComCall, bstrGuid: str | bytes | None) -> str:
        """[MC-MQAC] 3.2.4.2.2 MachineNameOfMachineId (Opnum 9)."""
        given = text(bstrGuid)
        identifier = guid_of(given)
        if identifier is None:
            raise MQError(HResult.E_INVALIDARG, f"{given} is no GUID")
        found = self._listed(equals("identifier", identifier))
        if found is None:
            raise MQError(HResult.MQ_ERROR_MACHINE_NOT_FOUND, given)
        return found.computer_name

    def _listed(self, wanted: AttributeFilter) -> QueueManager | None:
        """A queue manager from the directory; this one needs no directory (G277)."""
        own = self._machine.queue_manager
        if wanted.matches(own):
            return own
        status, found = self._machine.directory.read_directory(QueueManager, [wanted])
        if status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED:
            raise MQError(HResult.MQ_ERROR_NO_DS)
        return found

    async def RegisterCertificate(
        self, call: ComCall, Flags: Variant | None, ExternalCertificate: Variant | None
    ) -> Outcome:
        """Register a certificate as one of the caller's, durably (G278).

        Source: [MC-MQAC] 3.2.4.2.1 RegisterCertificate (Opnum 8).
        """
        if self.computer_name is not None:
            raise MQError(HResult.E_NOTIMPL)
        external = plain(ExternalCertificate)
        only_new = (
            integer(Flags, MQCERT_REGISTER.MQCERT_REGISTER_ALWAYS)
            == MQCERT_REGISTER.MQCERT_REGISTER_IF_NOT_EXIST
        )
        if external is None:
            return await register_own_certificate(self._machine, call, only_new)
        if only_new:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "a certificate of one's own")
        await register_certificate(self._machine, call, octets(external))
        return Outcome(HResult.MQ_OK)

    # The version

    def get_MSMQVersionMajor(self, call: ComCall) -> int:
        """[MC-MQAC] 3.2.4.2.3 MSMQVersionMajor (Opnum 10)."""
        self._require_here()
        return _SERVED[0]

    def get_MSMQVersionMinor(self, call: ComCall) -> int:
        """[MC-MQAC] 3.2.4.2.4 MSMQVersionMinor (Opnum 11)."""
        self._require_here()
        return _SERVED[1]

    def get_MSMQVersionBuild(self, call: ComCall) -> int:
        """[MC-MQAC] 3.2.4.2.5 MSMQVersionBuild (Opnum 12)."""
        self._require_here()
        major, minor, patch = version_numbers(self._machine.queue_manager)
        return min(10_000 * major + 100 * minor + patch, _SHORT)

    def get_IsDsEnabled(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.2.4.2.6 IsDsEnabled (Opnum 13)."""
        self._require_here()
        return self._machine.queue_manager.directory_integrated

    def _require_here(self) -> None:
        if self.computer_name is not None:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "only of the local queue manager")

    get_Properties = not_implemented

    # For administrators, as by qmmgmt

    def put_Machine(self, call: ComCall, bstrMachine: str | bytes | None) -> None:
        """[MC-MQAC] 3.2.4.3.6 Machine (Opnum 20)."""
        self.computer_name = self.keep_text(call, "machine", bstrMachine, MOST_OF_NAME) or None

    def get_Machine(self, call: ComCall) -> str:
        """[MC-MQAC] 3.2.4.3.7 Machine (Opnum 21)."""
        return self.computer_name or self._machine.queue_manager.computer_name

    async def _told(self, call: ComCall, identifier: ManagementMachineProperty) -> Any:
        return await ask(self._machine, call.identity, self.computer_name, None, identifier)

    async def _texts(self, call: ComCall, identifier: ManagementMachineProperty) -> Variant:
        texts = SafeArray(VARENUM.VT_BSTR, told.texts(await self._told(call, identifier)))
        return Variant(VARENUM.VT_ARRAY | VARENUM.VT_BSTR, texts)

    async def ActiveQueues(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.2.4.3.1 ActiveQueues (Opnum 15)."""
        return await self._texts(call, _P.PROPID_MGMT_MSMQ_ACTIVEQUEUES)

    async def get_PrivateQueues(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.2.4.3.2 PrivateQueues (Opnum 16)."""
        return await self._texts(call, _P.PROPID_MGMT_MSMQ_PRIVATEQ)

    async def get_DirectoryServiceServer(self, call: ComCall) -> str:
        """[MC-MQAC] 3.2.4.3.3 DirectoryServiceServer (Opnum 17)."""
        server = await self._told(call, _P.PROPID_MGMT_MSMQ_DSSERVER)
        if server is None:
            raise MQError(HResult.MQ_ERROR_NO_DS)
        if not isinstance(server, str):
            raise told.refuse(server)
        return server

    async def get_IsConnected(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.2.4.3.4 IsConnected (Opnum 18)."""
        connected = await self._told(call, _P.PROPID_MGMT_MSMQ_CONNECTED)
        return told.one_of(connected, tuple(MsmqConnected)) == MsmqConnected.MSMQ_CONNECTED

    async def get_BytesInAllQueues(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.2.4.3.5 BytesInAllQueues (Opnum 19)."""
        size = await self._told(call, _P.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES)
        return Variant(VARENUM.VT_I8, told.whole(size, 63))

    async def _order(self, call: ComCall, action: str) -> None:
        await order(self._machine, call, self.computer_name, None, action)

    async def Connect(self, call: ComCall) -> None:
        """[MC-MQAC] 3.2.4.3.8 Connect (Opnum 22)."""
        await self._order(call, "CONNECT")

    async def Disconnect(self, call: ComCall) -> None:
        """[MC-MQAC] 3.2.4.3.9 Disconnect (Opnum 23)."""
        await self._order(call, "DISCONNECT")

    async def Tidy(self, call: ComCall) -> None:
        """Reclaim disk space; no message is removed (G31).

        Source: [MC-MQAC] 3.2.4.3.10 Tidy (Opnum 24).
        """
        await self._order(call, "TIDY")
