"""The routes of /api/v1: what each is called, takes and gives. The OpenAPI is made of them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from rpcqm.api import (
    administration,
    dead_letters,
    events,
    machine,
    messages,
    models,
    network,
    network_models,
    opened,
    orders,
    overview,
    parameters,
    permissions,
    queues,
    scheduled,
    searching,
    tokens,
    triggers,
)
from rpcqm.api.asked import Asked, Reply

BASE = "/api/v1"
OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, whose segments in braces are names.

    `content` is the model of a JSON body, `takes` the type of another one. `gives` are the models
    of successful answers by status; None has no body, a text is the type of another one, and of
    several it depends on the parameters which one is given.
    `keyed` and `resumes` are those with Idempotency-Key and with Last-Event-ID.
    """

    method: str
    path: str
    function: Callable[[Asked], Awaitable[Reply]]
    gives: Mapping[int, type | str | tuple[type | str, ...] | None]
    parameters: type = parameters.Nothing
    content: type | None = None
    takes: str = ""
    headers: type | None = None
    keyed: bool = False
    resumes: bool = False
    segments: tuple[str, ...] = field(init=False)
    names: tuple[int, ...] = field(init=False)
    """Which of the segments are names."""

    def __post_init__(self) -> None:
        segments = tuple(self.path.split("/")[1:])
        names = tuple(at for at, segment in enumerate(segments) if segment.startswith("{"))
        object.__setattr__(self, "segments", segments)
        object.__setattr__(self, "names", names)

    @property
    def name(self) -> str:
        """Its name among all."""
        return self.function.__name__


_QUEUE = "/queues/{name}"
_MESSAGES = f"{_QUEUE}/messages"
_MESSAGE = f"{_MESSAGES}/{{lookup_id}}"
_OUTGOING = "/outgoing-queues/{name}"
_ONE = {200: models.Message}
_PAGE = {200: models.Messages}
_PEEKED = {200: models.PeekedMessages}
_BODY = {200: (OCTETS, models.Body)}

ROUTES = (
    Route("GET", "/queue-manager", administration.show_machine, {200: models.Machine}),
    Route(
        "PATCH",
        "/queue-manager",
        administration.change_machine,
        {200: models.Machine},
        content=models.MachineChanges,
    ),
    Route(
        "GET",
        "/queue-manager/permissions",
        machine.show_machine_permissions,
        {200: models.Permissions},
    ),
    Route(
        "PUT",
        "/queue-manager/permissions",
        machine.set_machine_permissions,
        {204: None},
        content=models.Permissions,
    ),
    Route(
        "GET",
        "/queue-manager/permissions/{account}",
        permissions.explain_machine_access,
        {200: permissions.AccessExplanation},
        permissions.ByToken,
    ),
    Route("POST", "/queue-manager/compact", machine.compact_store, {200: machine.Compacted}),
    Route(
        "POST",
        "/queue-manager/backups",
        machine.make_backup,
        {204: None},
        content=machine.Backup,
    ),
    Route("GET", "/statistics", machine.show_statistics, {200: machine.Statistics}),
    Route("GET", "/public-queues", machine.list_public_queues, {200: machine.PublicQueues}),
    Route("GET", "/explanations/{code}", machine.explain_code, {200: machine.Explanations}),
    Route(
        "GET",
        "/event-trail",
        machine.show_event_trail,
        {200: machine.EventTrail},
        machine.WhichEvents,
    ),
    Route("GET", "/overview", overview.show_overview, {200: overview.Overview}),
    Route("GET", "/queues", queues.list_queues, {200: models.QueueList}, parameters.PageOfQueues),
    Route(
        "POST",
        "/queues",
        queues.create_queue,
        {201: models.QueueInformation},
        content=models.QueueDraft,
    ),
    Route("GET", _QUEUE, queues.show_queue, {200: models.QueueInformation}, parameters.Named),
    Route(
        "PATCH",
        _QUEUE,
        queues.change_queue,
        {200: models.QueueInformation},
        parameters.Named,
        models.QueueChanges,
    ),
    Route(
        "POST",
        f"{_QUEUE}/rename",
        queues.rename_queue,
        {200: models.QueueInformation},
        parameters.Named,
        models.OtherName,
    ),
    Route(
        "POST",
        f"{_QUEUE}/scheduled-messages",
        scheduled.schedule_message,
        {201: scheduled.ScheduledId},
        parameters.Named,
        scheduled.ScheduledDraft,
    ),
    Route(
        "GET",
        "/scheduled-messages",
        scheduled.list_scheduled_messages,
        {200: scheduled.ScheduledMessages},
    ),
    Route(
        "DELETE",
        "/scheduled-messages/{id}",
        scheduled.cancel_scheduled_message,
        {204: None},
    ),
    Route("DELETE", _QUEUE, queues.delete_queue, {204: None}, parameters.Named),
    Route(
        "GET",
        f"{_QUEUE}/permissions",
        queues.show_permissions,
        {200: models.Permissions},
        parameters.Named,
    ),
    Route(
        "PUT",
        f"{_QUEUE}/permissions",
        queues.set_permissions,
        {204: None},
        parameters.Named,
        models.Permissions,
    ),
    Route(
        "GET",
        f"{_QUEUE}/permissions/{{account}}",
        permissions.explain_access,
        {200: permissions.AccessExplanation},
        permissions.QueueByToken,
    ),
    Route(
        "GET",
        f"{_QUEUE}/permission-entries",
        permissions.list_permission_entries,
        {200: permissions.PermissionEntries},
        parameters.Named,
    ),
    Route(
        "PATCH",
        f"{_QUEUE}/permission-entries",
        permissions.change_permission_entries,
        {200: permissions.PermissionEntries, 204: None},
        parameters.Named,
        permissions.PermissionChanges,
    ),
    Route(
        "POST",
        _MESSAGES,
        messages.send_message,
        {201: models.Sent},
        parameters.Named,
        takes="*/*",
        headers=models.MessageProperties,
        keyed=True,
    ),
    Route(
        "POST",
        f"{_MESSAGES}/batch",
        messages.send_messages,
        {201: models.SentMessages},
        parameters.Named,
        models.MessagesDraft,
        keyed=True,
    ),
    Route("GET", _MESSAGES, messages.peek_messages, _PEEKED, parameters.PageOfMessages),
    Route("DELETE", _MESSAGES, messages.purge_queue, {200: models.Affected}, parameters.Named),
    Route("GET", _MESSAGE, messages.peek_message, _ONE, parameters.Peek),
    Route("DELETE", _MESSAGE, messages.remove_message, _ONE, parameters.Named),
    Route("GET", f"{_MESSAGE}/body", messages.peek_body, _BODY, parameters.PeekBody),
    Route("GET", f"{_MESSAGE}/packet", messages.export_message, {200: OCTETS}, parameters.Named),
    Route(
        "POST",
        f"{_QUEUE}/import",
        messages.import_message,
        {201: models.Imported},
        parameters.Named,
        takes=OCTETS,
    ),
    Route(
        "POST",
        f"{_QUEUE}/move",
        orders.move_messages,
        {200: orders.Outcome},
        parameters.Named,
        orders.Move,
    ),
    Route(
        "POST",
        f"{_QUEUE}/copy",
        orders.copy_messages,
        {200: orders.Outcome},
        parameters.Named,
        orders.Copy,
    ),
    Route(
        "POST",
        f"{_QUEUE}/resend",
        orders.resend_messages,
        {200: orders.Outcome},
        parameters.Named,
        orders.Resend,
    ),
    Route(
        "POST",
        "/orders/{order}",
        orders.go_on_with_order,
        {200: orders.Outcome},
        content=orders.Step,
    ),
    Route("DELETE", "/orders/{order}", orders.stop_order, {200: orders.Outcome}),
    Route("POST", f"{_QUEUE}/receive", messages.receive_messages, _PAGE, parameters.Receive),
    Route(
        "GET",
        "/messages",
        searching.search_messages,
        {200: models.FoundMessages},
        parameters.Search,
    ),
    Route(
        "GET",
        f"{_QUEUE}/opened",
        opened.list_opened_of_queue,
        {200: opened.OpenedPage},
        opened.WhichOpenedOfQueue,
    ),
    Route("GET", "/opened", opened.list_opened, {200: opened.OpenedPage}, opened.WhichOpened),
    Route("DELETE", "/opened/{opened}", opened.end_opened, {204: None}),
    Route("GET", "/connections", opened.list_connections, {200: opened.Connections}),
    Route("DELETE", "/connections/{connection}", opened.end_connection, {204: None}),
    Route("GET", "/leases", messages.list_leases, {200: models.LeaseList}),
    Route("POST", "/leases/{lease}/complete", messages.complete_lease, {204: None}),
    Route("POST", "/leases/{lease}/release", messages.release_lease, {204: None}),
    Route(
        "POST",
        "/leases/{lease}/extend",
        messages.extend_lease,
        {200: models.Lease},
        parameters.Extend,
    ),
    Route(
        "POST",
        "/transactions",
        messages.work,
        {201: models.SentMessages},
        content=models.TransactionDraft,
        keyed=True,
    ),
    Route("GET", "/transactions", network.list_transactions, {200: network_models.Transactions}),
    Route(
        "GET",
        "/dead-letters",
        dead_letters.list_dead_letters,
        {200: models.DeadLetterPage},
        parameters.DeadLetters,
    ),
    Route(
        "GET",
        "/dead-letters/{lookup_id}",
        dead_letters.inspect_dead_letter,
        {200: models.DeadLetter},
        parameters.WhichDeadLetters,
    ),
    Route(
        "POST",
        "/dead-letters/resend",
        dead_letters.resend_dead_letters,
        {200: models.ResentLetters},
        content=models.Resend,
    ),
    Route(
        "POST",
        "/dead-letters/acknowledge",
        dead_letters.acknowledge_dead_letters,
        {200: models.Affected},
    ),
    Route("GET", "/sessions", network.list_sessions, {200: network_models.Sessions}),
    Route(
        "GET",
        "/incoming-sequences",
        network.list_incoming_sequences,
        {200: network_models.IncomingSequences},
    ),
    Route("GET", "/routing", network.show_routing, {200: network_models.Routing}),
    Route("GET", "/outgoing-queues", administration.list_outgoing, {200: models.OutgoingQueues}),
    Route(
        "GET",
        _OUTGOING,
        administration.show_outgoing,
        {200: models.OutgoingQueue},
        parameters.Named,
    ),
    Route(
        "GET",
        f"{_OUTGOING}/transfer",
        network.show_transfer,
        {200: network_models.Transfer},
        parameters.Named,
    ),
    Route(
        "POST",
        f"{_OUTGOING}/pause",
        administration.pause_outgoing,
        {200: models.OutgoingQueue},
        parameters.Named,
    ),
    Route(
        "POST",
        f"{_OUTGOING}/resume",
        administration.resume_outgoing,
        {200: models.OutgoingQueue},
        parameters.Named,
    ),
    Route(
        "POST",
        f"{_OUTGOING}/resend",
        administration.resend_outgoing,
        {200: models.OutgoingQueue},
        parameters.Named,
    ),
    Route("GET", "/accounts", administration.list_accounts, {200: models.Accounts}),
    Route(
        "POST",
        "/accounts",
        administration.add_account,
        {201: models.Account},
        content=models.AccountDraft,
    ),
    Route(
        "PUT",
        "/accounts/{name}/password",
        administration.set_password,
        {204: None},
        content=models.Password,
    ),
    Route("DELETE", "/accounts/{name}", administration.remove_account, {204: None}),
    Route(
        "GET",
        "/events",
        events.listen_to_events,
        {200: events.EVENT_STREAM},
        parameters.Listening,
        resumes=True,
    ),
    Route("GET", "/tokens", tokens.list_tokens, {200: tokens.Tokens}),
    Route(
        "POST",
        "/tokens",
        tokens.create_token,
        {201: tokens.MadeToken},
        content=tokens.TokenDraft,
    ),
    Route("DELETE", "/tokens/{name}", tokens.delete_token, {204: None}),
    Route("GET", "/triggers", triggers.list_triggers, {200: triggers.Triggers}),
    Route(
        "POST",
        "/triggers",
        triggers.create_trigger,
        {201: triggers.Trigger},
        content=triggers.TriggerDraft,
    ),
    Route("GET", "/triggers/{name}", triggers.show_trigger, {200: triggers.Trigger}),
    Route(
        "PUT",
        "/triggers/{name}",
        triggers.change_trigger,
        {200: triggers.Trigger},
        content=triggers.TriggerChange,
    ),
    Route("DELETE", "/triggers/{name}", triggers.delete_trigger, {204: None}),
    Route("GET", "/message-traces/{id}", administration.trace_message, {200: models.MessageTrace}),
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Neither HEAD nor OPTIONS (G322)."""

_BY_WORDS: dict[tuple[str, ...], list[int]] = {}
"""The places of routes in ROUTES, by their segments without what names are called."""
_NAMES: dict[int, list[tuple[int, ...]]] = {}
"""Where names stand in paths of so many segments."""
for _place, _route in enumerate(ROUTES):
    _names = _route.names
    _words = tuple("" if each in _names else word for each, word in enumerate(_route.segments))
    _BY_WORDS.setdefault(_words, []).append(_place)
    if _names not in (_known := _NAMES.setdefault(len(_words), [])):
        _known.append(_names)


def find(segments: tuple[str, ...]) -> list[tuple[Route, dict[str, str]]]:
    """The routes of a path, below BASE, with the names in it."""
    places: list[int] = []
    for names in _NAMES.get(len(segments), ()):
        words = list(segments)
        for each in names:
            words[each] = ""
        if all(segments):
            places += _BY_WORDS.get(tuple(words), ())
    return [(route, _named(route, segments)) for route in map(ROUTES.__getitem__, sorted(places))]


def _named(route: Route, segments: tuple[str, ...]) -> dict[str, str]:
    return {route.segments[each][1:-1]: segments[each] for each in route.names}
