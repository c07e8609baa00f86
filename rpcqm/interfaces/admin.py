"""rpcqm_admin: functions for this machine's administrators that MSMQ's interfaces lack."""

import json
from itertools import islice

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import TokenRight
from rpcqm.base.settling import settling
from rpcqm.base.told import told
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.names.written import format_names
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.trigger_report import encode_answer
from rpcqm.codec.types.mqmq import CALPWSTR
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.codec.types.rpcqm_admin import (
    R_AddAccountRequest,
    R_AddAccountResponse,
    R_AddTriggerRequest,
    R_BeginOrderRequest,
    R_BeginOrderResponse,
    R_CancelScheduledMessageRequest,
    R_CompactRequest,
    R_CompactResponse,
    R_CreateLogonRequest,
    R_CreateLogonResponse,
    R_CreatePublicQueueRequest,
    R_CreateTokenRequest,
    R_CreateTokenResponse,
    R_DeleteTokenRequest,
    R_DisconnectRequest,
    R_EndOpenedRequest,
    R_ExplainAccessRequest,
    R_ExplainAccessResponse,
    R_FindMessageRequest,
    R_FindMessageResponse,
    R_GetEventTrailRequest,
    R_GetEventTrailResponse,
    R_GetEventTrailStateRequest,
    R_GetEventTrailStateResponse,
    R_GetInFlightRequest,
    R_GetInFlightResponse,
    R_GetJournalBoundsRequest,
    R_GetJournalBoundsResponse,
    R_GetMachineSecurityRequest,
    R_GetMachineSecurityResponse,
    R_GetMaxDeliveriesRequest,
    R_GetMaxDeliveriesResponse,
    R_GetOverviewRequest,
    R_GetOverviewResponse,
    R_GetQueueStatusRequest,
    R_GetQueueStatusResponse,
    R_GetQuotaUsesRequest,
    R_GetQuotaUsesResponse,
    R_GetRenamedQueueRequest,
    R_GetRenamedQueueResponse,
    R_GoOnWithOrderRequest,
    R_GoOnWithOrderResponse,
    R_ImportMessageRequest,
    R_ImportMessageResponse,
    R_ListAccountsRequest,
    R_ListAccountsResponse,
    R_ListConnectionsRequest,
    R_ListConnectionsResponse,
    R_ListExposedQueuesRequest,
    R_ListExposedQueuesResponse,
    R_ListOpenedRequest,
    R_ListOpenedResponse,
    R_ListOutgoingQueuesRequest,
    R_ListOutgoingQueuesResponse,
    R_ListPublicQueuesRequest,
    R_ListPublicQueuesResponse,
    R_ListScheduledMessagesRequest,
    R_ListScheduledMessagesResponse,
    R_ListTokensRequest,
    R_ListTokensResponse,
    R_ListTriggersRequest,
    R_ListTriggersResponse,
    R_LookUpAccountsRequest,
    R_LookUpAccountsResponse,
    R_MakeBackupRequest,
    R_MakeBackupResponse,
    R_MakeBackupWithSecretsRequest,
    R_MakeBackupWithSecretsResponse,
    R_RemoveAccountRequest,
    R_RemoveTriggerRequest,
    R_RenameQueueRequest,
    R_ReportTriggersRequest,
    R_ReportTriggersResponse,
    R_ResendDeadLetterRequest,
    R_ResendDeadLettersRequest,
    R_ResendDeadLettersResponse,
    R_ScheduleMessageRequest,
    R_ScheduleMessageResponse,
    R_SearchMessagesRequest,
    R_SearchMessagesResponse,
    R_SetAccountPasswordRequest,
    R_SetEventTrailRequest,
    R_SetJournalBoundsRequest,
    R_SetMachineSecurityRequest,
    R_SetMaintenanceRequest,
    R_SetMaxDeliveriesRequest,
    R_SetTriggerRequest,
)
from rpcqm.interfaces._admin_records import (
    account_record,
    event_record,
    place_record,
    public_queue_record,
    status_record,
    token_record,
)
from rpcqm.interfaces._queue_properties import attributes_of, security_in
from rpcqm.interfaces._searching import answer_search
from rpcqm.operations.accounts import AccountOfDomain
from rpcqm.operations.audit import refusals
from rpcqm.operations.dead_letters import Range
from rpcqm.operations.flight import in_flight
from rpcqm.operations.message_orders import Order
from rpcqm.operations.opened import described_connection
from rpcqm.operations.operations import Operations
from rpcqm.operations.permission_words import described_explanation
from rpcqm.operations.scheduling import described as held_message
from rpcqm.operations.scheduling import draft_in
from rpcqm.operations.triggers import rule_in, versioned_rule_in
from rpcqm.qm.access import require_administrator
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy

MOST_EVENTS = 10_000
"""Events that one call tells of a message, which bounds the response."""

POLICY = InterfacePolicy(transports=frozenset({NCALRPC}))
"""This interface cannot be reached from another machine."""


class Admin:
    """The handlers of the interface; others than administrators get MQ_ERROR_ACCESS_DENIED.

    The descriptor of the machine itself names the callers that may see and change it.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._accounts = operations.accounts
        self._tokens = operations.tokens
        self._logons = operations.logons
        self._machine = operations.machine
        self._queues = operations.queues
        self._messages = operations.messages
        self._outgoing = operations.outgoing
        self._traces = operations.traces
        self._overview = operations.overview
        self._letters = operations.dead_letters
        self._scheduling = operations.scheduling
        self._triggers = operations.triggers
        self._message_orders = operations.message_orders
        self._order_requests = operations.order_requests

    async def R_AddAccount(self, call: Call, request: R_AddAccountRequest) -> R_AddAccountResponse:
        """Create an account; its SID is told once it is durable (Opnum 0)."""
        groups = _texts(request.pGroups)
        sid = await self._accounts.add(call.identity, request.pwszName, request.NtHash, groups)
        return R_AddAccountResponse(ppwszSid=sid, result=0)

    def R_SetAccountPassword(
        self, call: Call, request: R_SetAccountPasswordRequest
    ) -> Completion[None]:
        """Give an account another password (Opnum 1)."""
        return self._accounts.set_password(call.identity, request.pwszName, request.NtHash)

    def R_RemoveAccount(self, call: Call, request: R_RemoveAccountRequest) -> Completion[None]:
        """Delete an account (Opnum 2)."""
        return self._accounts.remove(call.identity, request.pwszName)

    def R_ListAccounts(self, call: Call, request: R_ListAccountsRequest) -> R_ListAccountsResponse:
        """All accounts, by name (Opnum 3)."""
        accounts = [account_record(account) for account in self._accounts.list(call.identity)]
        return R_ListAccountsResponse(pcAccounts=len(accounts), ppAccounts=accounts, result=0)

    async def R_LookUpAccounts(
        self, call: Call, request: R_LookUpAccountsRequest
    ) -> R_LookUpAccountsResponse:
        """Accounts and groups of the domain, by their SIDs and names (Opnum 51)."""
        found = await self._accounts.look_up(call.identity, _texts(request.pWho))
        accounts = [account_record(AccountOfDomain(name, sid)) for sid, name in found.items()]
        return R_LookUpAccountsResponse(pcAccounts=len(accounts), ppAccounts=accounts, result=0)

    async def R_MakeBackup(self, call: Call, request: R_MakeBackupRequest) -> R_MakeBackupResponse:
        """Copy everything that is durable to a directory of this machine (Opnum 4)."""
        problem = await self._machine.make_backup(call.identity, request.pwszDirectory)
        return R_MakeBackupResponse(ppwszProblem=problem, result=HResult.MQ_OK)

    async def R_MakeBackupWithSecrets(
        self, call: Call, request: R_MakeBackupWithSecretsRequest
    ) -> R_MakeBackupWithSecretsResponse:
        """The same, with the keys and passwords that the configuration names (Opnum 18)."""
        problem = await self._machine.make_backup(
            call.identity, request.pwszDirectory, secrets=True
        )
        return R_MakeBackupWithSecretsResponse(ppwszProblem=problem, result=HResult.MQ_OK)

    async def R_Compact(self, call: Call, request: R_CompactRequest) -> R_CompactResponse:
        """Give the disk space of removed messages back; tells what is used (Opnum 5)."""
        before = self._machine.disk_bytes(call.identity)
        await self._machine.compact(call.identity)
        after = self._machine.disk_bytes(call.identity)
        return R_CompactResponse(pBytesBefore=before, pBytesAfter=after, result=HResult.MQ_OK)

    def R_GetQuotaUses(self, call: Call, request: R_GetQuotaUsesRequest) -> R_GetQuotaUsesResponse:
        """Tell how full queues are (Opnum 45)."""
        uses = self._queues.quota_uses(call.identity)
        return R_GetQuotaUsesResponse(ppwszUses=json.dumps(uses), result=HResult.MQ_OK)

    def R_SetMaintenance(self, call: Call, request: R_SetMaintenanceRequest) -> Completion[None]:
        """Take no new message, or take them again; answered once it is durable (Opnum 39)."""
        return self._machine.maintain(call.identity, bool(request.fOn), request.pwszReason)

    def R_Disconnect(self, call: Call, request: R_DisconnectRequest) -> Completion[None]:
        """Use the network no more, for a reason; answered once it is durable (Opnum 40)."""
        return self._machine.connect(call.identity, False, request.pwszReason)

    def R_SetEventTrail(self, call: Call, request: R_SetEventTrailRequest) -> Completion[None]:
        """Begin or end the event trail of a queue (Opnum 6)."""
        name = format_name_of(request.pQueueFormat)
        return self._queues.switch_trail(call.identity, name, bool(request.fOn))

    def R_GetEventTrailState(
        self, call: Call, request: R_GetEventTrailStateRequest
    ) -> R_GetEventTrailStateResponse:
        """Whether a queue has an event trail (Opnum 7)."""
        on = self._queues.has_trail(call.identity, format_name_of(request.pQueueFormat))
        return R_GetEventTrailStateResponse(pfOn=on, result=0)

    def R_SetMaxDeliveries(
        self, call: Call, request: R_SetMaxDeliveriesRequest
    ) -> Completion[None]:
        """Let a queue put poison messages aside, if the caller may set properties (Opnum 19)."""
        return self._queues.set_max_deliveries(
            call.identity,
            format_name_of(request.pQueueFormat),
            request.MaxDeliveries,
            request.pwszSubqueue,
        )

    def R_GetMaxDeliveries(
        self, call: Call, request: R_GetMaxDeliveriesRequest
    ) -> R_GetMaxDeliveriesResponse:
        """After how many failed deliveries a queue puts a message aside, and where (Opnum 20)."""
        limit, subqueue = self._queues.max_deliveries(
            call.identity, format_name_of(request.pQueueFormat)
        )
        return R_GetMaxDeliveriesResponse(pMaxDeliveries=limit, ppwszSubqueue=subqueue, result=0)

    def R_GetEventTrail(
        self, call: Call, request: R_GetEventTrailRequest
    ) -> R_GetEventTrailResponse:
        """What happened to a message, in order (Opnum 8)."""
        wanted = MessageIdentifier(request.pMessageId.Lineage, request.pMessageId.Uniquifier)
        events = [
            event_record(event)
            for event in islice(self._traces.trail(call.identity, wanted), MOST_EVENTS)
        ]
        return R_GetEventTrailResponse(pcEvents=len(events), ppEvents=events, result=0)

    async def R_ImportMessage(
        self, call: Call, request: R_ImportMessageRequest
    ) -> R_ImportMessageResponse:
        """Put a message that was exported into a queue, as it was (Opnum 9)."""
        name = format_name_of(request.pQueueFormat)
        key = await self._messages.import_message(call.identity, name, bytes(request.pPacket))
        return R_ImportMessageResponse(pLookupId=key, result=0)

    async def R_FindMessage(
        self, call: Call, request: R_FindMessageRequest
    ) -> R_FindMessageResponse:
        """Where a message and its copies are (Opnum 10)."""
        wanted = MessageIdentifier(request.pMessageId.Lineage, request.pMessageId.Uniquifier)
        places = [place_record(place) for place in await self._traces.find(call.identity, wanted)]
        return R_FindMessageResponse(pcPlaces=len(places), ppPlaces=places, result=0)

    def R_ListPublicQueues(
        self, call: Call, request: R_ListPublicQueuesRequest
    ) -> R_ListPublicQueuesResponse:
        """The public queues that are known, of all machines (Opnum 11)."""
        found = [public_queue_record(queue) for queue in self._queues.public(call.identity)]
        return R_ListPublicQueuesResponse(pcQueues=len(found), ppQueues=found, result=0)

    async def R_CreatePublicQueue(self, call: Call, request: R_CreatePublicQueueRequest) -> HResult:
        """Create a public queue, once it is published and durable (Opnum 12)."""
        with refusals(call.identity, "create queue", request.pwszPathName):
            require_administrator(call.identity)
        attributes = attributes_of(request.aProp, request.apVar, creating=True)
        attributes.pop("pathname", None)
        attributes |= security_in(request.pSecurityDescriptor)
        path = request.pwszPathName
        await self._queues.create_public(call.identity, path, attributes)
        return HResult.MQ_OK

    def R_ListOutgoingQueues(
        self, call: Call, request: R_ListOutgoingQueuesRequest
    ) -> R_ListOutgoingQueuesResponse:
        """The queues to other queue managers, also those that are not active (Opnum 13)."""
        names: list[str | None] = [
            queue.destination_format_name for queue in self._outgoing.list(call.identity)
        ]
        found = CALPWSTR(cElems=len(names), pElems=names)
        return R_ListOutgoingQueuesResponse(pNames=found, result=0)

    def R_ListExposedQueues(
        self, call: Call, request: R_ListExposedQueuesRequest
    ) -> R_ListExposedQueuesResponse:
        """Name the queues that Anonymous owns, or may read (Opnum 14)."""
        names: list[str | None] = list(self._machine.exposed_queues(call.identity))
        found = CALPWSTR(cElems=len(names), pElems=names)
        return R_ListExposedQueuesResponse(pNames=found, result=0)

    def R_GetQueueStatus(
        self, call: Call, request: R_GetQueueStatusRequest
    ) -> R_GetQueueStatusResponse:
        """What all queues do (Opnum 17)."""
        found = [status_record(status) for status in self._machine.queue_statuses(call.identity)]
        return R_GetQueueStatusResponse(
            pNow=self._machine.now(),
            pStarted=self._machine.started,
            pcQueues=len(found),
            ppQueues=found,
            result=0,
        )

    def R_GetMachineSecurity(
        self, call: Call, request: R_GetMachineSecurityRequest
    ) -> R_GetMachineSecurityResponse:
        """Tell the security descriptor of the queue manager itself (Opnum 15)."""
        parts = request.RequestedInformation
        descriptor = self._machine.security(call.identity, parts)
        return R_GetMachineSecurityResponse(
            pcbDescriptor=len(descriptor), ppDescriptor=descriptor, result=0
        )

    def R_SetMachineSecurity(
        self, call: Call, request: R_SetMachineSecurityRequest
    ) -> Completion[None]:
        """Change the security descriptor of the queue manager itself (Opnum 16)."""
        return self._machine.set_security(
            call.identity, request.SecurityInformation, bytes(request.pDescriptor)
        )

    async def R_CreateToken(
        self, call: Call, request: R_CreateTokenRequest
    ) -> R_CreateTokenResponse:
        """Make a token of an account; its text is told once it is durable (Opnum 21)."""
        queues = None if request.pQueues is None else _texts(request.pQueues)
        rights = [right for right in TokenRight if request.Rights & right.bit]
        text = await self._tokens.create(
            call.identity, request.pwszName, request.pwszAccount, rights, queues, request.Life
        )
        return R_CreateTokenResponse(ppwszToken=text, result=0)

    def R_ListTokens(self, call: Call, request: R_ListTokensRequest) -> R_ListTokensResponse:
        """All tokens, without their texts (Opnum 22)."""
        tokens = [token_record(token) for token in self._tokens.list(call.identity)]
        return R_ListTokensResponse(pcTokens=len(tokens), ppTokens=tokens, result=0)

    def R_DeleteToken(self, call: Call, request: R_DeleteTokenRequest) -> Completion[None]:
        """Delete a token, which nobody can use from now on (Opnum 23)."""
        return self._tokens.delete(call.identity, request.pwszName)

    async def R_GetOverview(
        self, call: Call, request: R_GetOverviewRequest
    ) -> R_GetOverviewResponse:
        """Tell the totals, the last hour, and what needs attention (Opnum 24)."""
        overview = await self._overview.overview(call.identity)
        text = json.dumps(told(overview), separators=(",", ":"))
        return R_GetOverviewResponse(ppwszOverview=text, result=0)

    def R_CreateLogon(self, call: Call, request: R_CreateLogonRequest) -> R_CreateLogonResponse:
        """A token with which a browser logs on once as the caller (Opnum 25)."""
        text, page = self._logons.create(call.identity), self._logons.page
        return R_CreateLogonResponse(ppwszToken=text, ppwszPage=page, result=0)

    def R_GetInFlight(self, call: Call, request: R_GetInFlightRequest) -> R_GetInFlightResponse:
        """Tell who holds leases, transactions and sessions (Opnum 26)."""
        told = json.dumps(in_flight(self._operations, call.identity), separators=(",", ":"))
        return R_GetInFlightResponse(ppwszInFlight=told, result=0)

    def R_ResendDeadLetter(
        self, call: Call, request: R_ResendDeadLetterRequest
    ) -> Completion[None]:
        """Send a dead letter again, if the caller may receive and send it (Opnum 27)."""
        to = None if request.pTo is None else format_name_of(request.pTo)
        ttbr = None if request.TimeToBeReceived == INFINITE else request.TimeToBeReceived
        name = format_name_of(request.pQueueFormat)
        return self._letters.resend(call.identity, name, request.LookupId, to, ttbr)

    async def R_ResendDeadLetters(
        self, call: Call, request: R_ResendDeadLettersRequest
    ) -> R_ResendDeadLettersResponse:
        """Send the dead letters of a queue again, some at a time (Opnum 28)."""
        to = None if request.pTo is None else format_name_of(request.pTo)
        ttbr = None if request.TimeToBeReceived == INFINITE else request.TimeToBeReceived
        name = format_name_of(request.pQueueFormat)
        where = Range(request.pAfter or None, request.pUntil or None)
        sent = await self._letters.resend_all(call.identity, name, to=to, ttbr=ttbr, where=where)
        rest = sent.rest or Range()
        return R_ResendDeadLettersResponse(
            pAfter=rest.after or 0,
            pUntil=rest.until or 0,
            pcResent=sent.messages,
            ppwszStay=json.dumps(sent.reasons(), separators=(",", ":")),
            result=0,
        )

    def R_RenameQueue(self, call: Call, request: R_RenameQueueRequest) -> Completion[None]:
        """Give a private queue another name (Opnum 29)."""
        name = format_name_of(request.pQueueFormat)
        return self._queues.rename(call.identity, name, request.pwszPathName)

    def R_GetRenamedQueue(
        self, call: Call, request: R_GetRenamedQueueRequest
    ) -> R_GetRenamedQueueResponse:
        """Tell what a queue is called now that had a name before (Opnum 30)."""
        name = format_name_of(request.pQueueFormat)
        found = self._queues.renamed_to(call.identity, name)
        return R_GetRenamedQueueResponse(ppwszName=found, result=0)

    def R_AddTrigger(self, call: Call, request: R_AddTriggerRequest) -> Completion[None]:
        """Make a rule of a trigger (Opnum 31)."""
        return self._triggers.add(call.identity, rule_in(request.pwszRule))

    def R_SetTrigger(self, call: Call, request: R_SetTriggerRequest) -> Completion[None]:
        """Change the rule of a trigger (Opnum 32)."""
        return self._triggers.set(call.identity, *versioned_rule_in(request.pwszRule))

    def R_RemoveTrigger(self, call: Call, request: R_RemoveTriggerRequest) -> Completion[None]:
        """Forget the rule of a trigger (Opnum 33)."""
        return self._triggers.remove(call.identity, request.pwszName)

    def R_ListTriggers(self, call: Call, request: R_ListTriggersRequest) -> R_ListTriggersResponse:
        """Tell all rules of triggers and how they do (Opnum 34)."""
        told = json.dumps(self._triggers.described(call.identity), separators=(",", ":"))
        return R_ListTriggersResponse(ppwszTriggers=told, result=0)

    def R_ReportTriggers(
        self, call: Call, request: R_ReportTriggersRequest
    ) -> R_ReportTriggersResponse:
        """Take what the service of triggers tells, and tell it the rules (Opnum 35)."""
        answer = self._triggers.report(call.identity, request.pwszReport)
        return R_ReportTriggersResponse(ppwszAnswer=encode_answer(answer), result=0)

    def R_ExplainAccess(
        self, call: Call, request: R_ExplainAccessRequest
    ) -> R_ExplainAccessResponse:
        """Tell what an account may do, and by which entries (Opnum 36)."""
        name = None if request.pQueueFormat is None else format_name_of(request.pQueueFormat)
        account, token = request.pwszAccount, request.pwszToken or ""
        found = self._operations.permissions.explain(call.identity, name, account, token)
        told = described_explanation(found, machine=name is None)
        text = json.dumps(told, separators=(",", ":"))
        return R_ExplainAccessResponse(ppwszExplanation=text, result=0)

    def R_ListOpened(self, call: Call, request: R_ListOpenedRequest) -> R_ListOpenedResponse:
        """Tell who has queues open (Opnum 46)."""
        name = None if request.pQueueFormat is None else format_name_of(request.pQueueFormat)
        opened = self._operations.opened
        page = opened.page(call.identity, name, request.pwszAfter, request.Limit)
        told = {"opened": page.rows, "next": page.after or None}
        return R_ListOpenedResponse(ppwszOpened=_json(told), result=0)

    def R_ListConnections(
        self, call: Call, request: R_ListConnectionsRequest
    ) -> R_ListConnectionsResponse:
        """Tell the connections of all doors (Opnum 47)."""
        found = self._operations.opened.connections(call.identity)
        told = [described_connection(each) for each in found]
        return R_ListConnectionsResponse(ppwszConnections=_json(told), result=0)

    def R_EndOpened(self, call: Call, request: R_EndOpenedRequest) -> Completion[None]:
        """End what somebody has open (Opnum 48)."""
        return self._operations.opened.end(call.identity, request.pwszIdentifier)

    async def R_BeginOrder(self, call: Call, request: R_BeginOrderRequest) -> R_BeginOrderResponse:
        """Do something to chosen messages of a queue, the first group of them (Opnum 37)."""
        to = None if request.pTo is None else format_name_of(request.pTo)
        name, wanted = format_name_of(request.pQueueFormat), _object(request.pwszOrder)
        begun = self._order_requests.begin(call.identity, name, to, wanted, local=True)
        return R_BeginOrderResponse(ppwszOutcome=await _outcome(begun), result=0)

    async def R_GoOnWithOrder(
        self, call: Call, request: R_GoOnWithOrderRequest
    ) -> R_GoOnWithOrderResponse:
        """Do it to the next group, or stop (Opnum 38)."""
        orders, identity, identifier = self._message_orders, call.identity, request.pwszOrder
        if request.fStop:
            stopped = orders.stop(identity, identifier)
            return R_GoOnWithOrderResponse(ppwszOutcome=_json(stopped.told()), result=0)
        gone_on = orders.go_on(identity, identifier, request.Step)
        return R_GoOnWithOrderResponse(ppwszOutcome=await _outcome(gone_on), result=0)

    async def R_SearchMessages(
        self, call: Call, request: R_SearchMessagesRequest
    ) -> R_SearchMessagesResponse:
        """A page of the messages that meet conditions, for who may peek at them (Opnum 41)."""
        name = None if request.pQueueFormat is None else format_name_of(request.pQueueFormat)
        answer = await settling(
            answer_search(self._operations, call.identity, name, request.pwszSearch)
        )
        return R_SearchMessagesResponse(pcbAnswer=len(answer), ppAnswer=answer, result=0)

    async def R_ScheduleMessage(
        self, call: Call, request: R_ScheduleMessageRequest
    ) -> R_ScheduleMessageResponse:
        """Hold a message back until its time, if the caller could send it (Opnum 42)."""
        draft = draft_in(_object(request.pwszMessage), bytes(request.pBody))
        names = format_names(request.pwszQueues)
        identifier = await self._scheduling.schedule(call.identity, names, draft, request.NotBefore)
        return R_ScheduleMessageResponse(ppwszIdentifier=identifier, result=0)

    def R_ListScheduledMessages(
        self, call: Call, request: R_ListScheduledMessagesRequest
    ) -> R_ListScheduledMessagesResponse:
        """What is held back of the caller, of all for administrators (Opnum 43)."""
        told = [held_message(each) for each in self._scheduling.list(call.identity)]
        text = json.dumps(told, separators=(",", ":"))
        return R_ListScheduledMessagesResponse(ppwszMessages=text, result=0)

    def R_CancelScheduledMessage(
        self, call: Call, request: R_CancelScheduledMessageRequest
    ) -> Completion[None]:
        """Never send a message that is held back (Opnum 44)."""
        return self._scheduling.cancel(call.identity, request.pwszIdentifier)

    def R_SetJournalBounds(
        self, call: Call, request: R_SetJournalBoundsRequest
    ) -> Completion[None]:
        """Bound a queue's journal by age and by number (Opnum 49)."""
        name = format_name_of(request.pQueueFormat)
        return self._queues.set_journal_bounds(
            call.identity, name, request.MaxAge, request.MaxMessages
        )

    def R_GetJournalBounds(
        self, call: Call, request: R_GetJournalBoundsRequest
    ) -> R_GetJournalBoundsResponse:
        """Tell these bounds (Opnum 50)."""
        name = format_name_of(request.pQueueFormat)
        age, messages = self._queues.journal_bounds(call.identity, name)
        return R_GetJournalBoundsResponse(pMaxAge=age, pMaxMessages=messages, result=0)


def _object(text: str) -> dict[str, object]:
    """A JSON object; raises MQError."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "an order is a JSON object")
    return read


async def _outcome(doing: Completion[Order]) -> str:
    """The outcome of an order; a refusal includes its words, which a status does not have."""
    try:
        return _json((await doing).told())
    except MQError as error:
        if not error.detail:
            raise
        return _json({"refused": int(error.status), "detail": error.detail})


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _texts(array: CALPWSTR) -> list[str]:
    """The texts of an array that may have null pointers in it."""
    return [text for text in array.pElems or () if text is not None]
