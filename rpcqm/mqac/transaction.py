"""Units of work as objects, and the objects that begin them ([MC-MQAC] 3.6 to 3.9)."""

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.types.mqac import BOID, XACTTRANSINFO
from rpcqm.codec.types.mqacvalues import (
    MQ_MTS_TRANSACTION,
    MQ_NO_TRANSACTION,
    MQ_SINGLE_MESSAGE,
    MQ_XA_TRANSACTION,
    XACTTC_SYNC,
)
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.arguments import boolean, integer, plain
from rpcqm.operations.audit import COM, ordered_from
from rpcqm.qm.transactions import Transactions

if TYPE_CHECKING:
    from rpcqm.mqac.machine import Machine

_log = get_logger("mqac")

_OBJECTS = frozenset({VARENUM.VT_DISPATCH, VARENUM.VT_UNKNOWN})


class TransactionImpl(ComObject):
    """An internal transaction ([MC-MQAC] 3.8), aborted when nobody can end it any more.

    `users` counts the objects that hold it, `is_exported` says whether a client may hold it.
    """

    INTERFACES = ("ITransaction",)

    def __init__(self, transactions: Transactions, identity: Identity) -> None:
        self._transactions = transactions
        self.transaction_identifier = uuid4()
        self.is_committed_or_aborted = False
        self.users = 0
        self.is_exported = False
        transactions.create_transaction(self.transaction_identifier, identity.sid)

    def Commit(self, call: ComCall, fRetaining: int, grfTC: int, grfRM: int) -> Completion[None]:
        """[MC-MQAC] 3.8.4.1.1 Commit (Opnum 3)."""
        if grfRM or fRetaining or grfTC != XACTTC_SYNC:
            raise MQError(HResult.XACT_E_NOTSUPPORTED)
        self._check_open(call)
        ending = self._transactions.transaction_commit(self.transaction_identifier)
        self.is_committed_or_aborted = True
        return ending

    def Abort(
        self, call: ComCall, pboidReason: object, fRetaining: int, fAsync: int
    ) -> Completion[None]:
        """[MC-MQAC] 3.8.4.1.2 Abort (Opnum 4)."""
        if fRetaining or fAsync:
            raise MQError(HResult.XACT_E_NOTSUPPORTED)
        self._check_open(call)
        ending = self._transactions.transaction_abort(self.transaction_identifier)
        self.is_committed_or_aborted = True
        return ending

    def GetTransactionInfo(self, call: ComCall) -> XACTTRANSINFO:
        """[MC-MQAC] 3.8.4.1.3 GetTransactionInfo (Opnum 5)."""
        return XACTTRANSINFO(
            uow=BOID(rgb=self.transaction_identifier.bytes_le),
            isoLevel=0,
            isoFlags=0,
            grfTCSupported=0,
            grfRMSupported=0,
            grfTCSupportedRetaining=0,
            grfRMSupportedRetaining=0,
        )

    def _check_open(self, call: ComCall) -> None:
        """Raise MQ_ERROR_TRANSACTION_SEQUENCE if it has ended, or belongs to another caller."""
        self._transactions.find(self.transaction_identifier, call.identity.sid)

    def released(self) -> None:
        self.is_exported = False
        self.give_up()

    def give_up(self) -> None:
        """Abort a transaction that nobody can end any more."""
        if self.users or self.is_exported or self.is_committed_or_aborted:
            return
        self.is_committed_or_aborted = True
        self._transactions.transaction_abort(self.transaction_identifier)


class MSMQTransaction(Automation):
    """A transaction, as clients pass it to Send and Receive ([MC-MQAC] 3.9)."""

    INTERFACES = ("IMSMQTransaction3", "IMSMQTransaction2", "IMSMQTransaction")

    def __init__(self, transaction: TransactionImpl | None = None) -> None:
        self.transaction: TransactionImpl | None = None
        if transaction is not None:
            self._hold(transaction)

    def _hold(self, transaction: TransactionImpl) -> None:
        transaction.users += 1
        self.transaction = transaction

    get_Transaction = not_implemented
    get_Properties = not_implemented

    def Commit(
        self,
        call: ComCall,
        fRetaining: Variant | None,
        grfTC: Variant | None,
        grfRM: Variant | None,
    ) -> Completion[None]:
        """[MC-MQAC] 3.9.4.1.2 Commit (Opnum 8)."""
        return self._existing().Commit(
            call, boolean(fRetaining, False), integer(grfTC, XACTTC_SYNC), integer(grfRM, 0)
        )

    def Abort(
        self, call: ComCall, fRetaining: Variant | None, fAsync: Variant | None
    ) -> Completion[None]:
        """[MC-MQAC] 3.9.4.1.3 Abort (Opnum 9)."""
        return self._existing().Abort(
            call, None, boolean(fRetaining, False), boolean(fAsync, False)
        )

    def _existing(self) -> TransactionImpl:
        if self.transaction is None:
            raise MQError(HResult.E_INVALIDARG, "the object has no transaction")
        return self.transaction

    def InitNew(self, call: ComCall, varTransaction: Variant) -> None:
        """Take over an existing transaction; [MC-MQAC] 3.9.4.2.1 InitNew (Opnum 10)."""
        if self.transaction is not None:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
        given = plain(varTransaction)
        held = None if given is None or given.vt not in _OBJECTS else given.value
        if not isinstance(held, TransactionImpl):
            raise MQError(HResult.E_INVALIDARG, "no ITransaction")
        self._hold(held)

    def get_ITransaction(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.9.4.3.1 ITransaction (Opnum 12)."""
        if self.transaction is None:
            return EMPTY
        self.transaction.is_exported = True
        return Variant(VARENUM.VT_UNKNOWN, self.transaction)

    def released(self) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            transaction.users -= 1
            transaction.give_up()


class MSMQTransactionDispenser(Automation):
    """Begins internal transactions ([MC-MQAC] 3.6)."""

    INTERFACES = (
        "IMSMQTransactionDispenser3",
        "IMSMQTransactionDispenser2",
        "IMSMQTransactionDispenser",
    )

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def BeginTransaction(self, call: ComCall) -> MSMQTransaction:
        """[MC-MQAC] 3.6.4.1.1 BeginTransaction (Opnum 7)."""
        with ordered_from(call.peer, COM):
            begun = TransactionImpl(self._machine.transactions, call.identity)
        return MSMQTransaction(begun)

    get_Properties = not_implemented


class MSMQCoordinatedTransactionDispenser(Automation):
    """The dispenser of a coordinator's transactions, which this queue manager does not have.

    [MC-MQAC] 3.7.
    """

    INTERFACES = (
        "IMSMQCoordinatedTransactionDispenser3",
        "IMSMQCoordinatedTransactionDispenser2",
        "IMSMQCoordinatedTransactionDispenser",
    )

    def BeginTransaction(self, call: ComCall) -> MSMQTransaction:
        """Fail as without a coordinator (G284); [MC-MQAC] 3.7.4.1.1 BeginTransaction (Opnum 7)."""
        raise MQError(HResult.MQ_ERROR_DTC_CONNECT)

    get_Properties = not_implemented


class TransactionScope:
    """The transaction that one call is part of.

    `transaction` is None without one. That of a single message ends with the call: by `finish` or
    by `undo`.
    """

    __slots__ = ("_transactions", "is_single", "transaction")

    def __init__(
        self,
        transactions: Transactions,
        transaction: Transaction | None,
        is_single: bool = False,
    ) -> None:
        self._transactions = transactions
        self.transaction = transaction
        self.is_single = is_single

    @property
    def _identifier(self) -> UUID:
        assert self.transaction is not None
        return self.transaction.identifier

    def finish(self) -> Completion[None]:
        """Complete when the caller may be answered."""
        if not self.is_single:
            return completed(None)
        return self._transactions.transaction_commit(self._identifier)

    def undo(self) -> None:
        """Abort the transaction of a single message."""
        if self.is_single:
            self._transactions.transaction_abort(self._identifier)


def transaction_scope(
    transactions: Transactions, identity: Identity, argument: Variant | None
) -> TransactionScope:
    """The transaction for the argument of Send and Receive ([MC-MQAC] 2.2.2.1, 3.17.4.1.48).

    An absent argument and MQ_MTS_TRANSACTION mean no transaction here: no call has a context of
    COM+. Raises MQ_ERROR_TRANSACTION_SEQUENCE for one that has ended (G414), or is another
    caller's; MQ_ERROR_DTC_CONNECT for one of XA, and E_INVALIDARG for anything else (G284).
    """
    given = plain(argument)
    if given is not None and given.vt in _OBJECTS:
        return TransactionScope(transactions, _transaction_of(transactions, identity, given))
    number = integer(given, MQ_MTS_TRANSACTION)
    if number in (MQ_NO_TRANSACTION, MQ_MTS_TRANSACTION):
        return TransactionScope(transactions, None)
    if number == MQ_XA_TRANSACTION:
        raise MQError(HResult.MQ_ERROR_DTC_CONNECT)
    if number != MQ_SINGLE_MESSAGE:
        raise MQError(HResult.E_INVALIDARG, f"Transaction {number}")
    single = transactions.create_transaction(uuid4(), identity.sid)
    return TransactionScope(transactions, single, is_single=True)


def _transaction_of(
    transactions: Transactions, identity: Identity, given: Variant
) -> Transaction | None:
    """The transaction of an MSMQTransaction, or of its ITransaction; None for NULL."""
    pointer = given.value
    if pointer is None:
        return None
    if isinstance(pointer, MSMQTransaction):
        pointer = pointer.transaction
    if not isinstance(pointer, TransactionImpl):
        raise MQError(HResult.E_INVALIDARG, "no MSMQTransaction")
    return transactions.find(pointer.transaction_identifier, identity.sid)
