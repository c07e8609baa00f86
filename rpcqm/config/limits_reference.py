"""The bounds on everything that a stranger can make grow: names, values, and consequences.

docs/limits.md and `rpcqm doctor` are made from this table. A test requires for each row a test with
its name (`@pytest.mark.bound`).
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from rpcqm.config.schema import Configuration, Setting, settings


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound.

    `name` is the key of a setting, or a name of its own where the bound is fixed; then `text` says
    what it bounds, `where` is the module and the attribute that hold its value, and `unit` what
    that counts.
    """

    name: str
    beyond: str
    text: str = ""
    where: str = ""
    unit: str = ""

    @property
    def is_setting(self) -> bool:
        return not self.where

    def value(self, configuration: Configuration) -> int:
        """The bound under a configuration."""
        if self.is_setting:
            return int(attrgetter(self.name)(configuration))
        module, _, path = self.where.partition(":")
        found: object = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
            if isinstance(found, type):
                found = found()
        if not isinstance(found, int | float):
            raise TypeError(f"{self.where} is no number")
        return int(found)


REFUSED = "the call is refused"
CLOSED = "the connection is closed"
BAD_REQUEST = "the request is answered with 400, and the connection closed"

BOUNDS: tuple[Bound, ...] = (
    # Connections.
    Bound("limits.connections", "a connection is closed as soon as it is there"),
    Bound("limits.connections_per_address", "a connection is closed as soon as it is there"),
    Bound("limits.unauthenticated_seconds", CLOSED),
    Bound(
        "connections.local_reserve",
        "a connection to the local socket is closed as soon as it is there",
        "Connections beyond all others for administrators on the local socket.",
        "rpcqm.base.admission:LOCAL_RESERVE",
        "connections",
    ),
    Bound(
        "connections.users_reserve",
        "a connection to the local socket is closed as soon as it is there",
        "How many of these are for other users of the machine as well.",
        "rpcqm.base.admission:USERS_RESERVE",
        "connections",
    ),
    Bound(
        "connections.other_descriptors",
        "fewer connections are let in than limits.connections says",
        "Open files that are left for the store and the listening ports, besides an eighth of all.",
        "rpcqm.base.admission:OTHER_DESCRIPTORS",
        "descriptors",
    ),
    Bound(
        "connections.fewest",
        "further connections are refused",
        "Connections that are let in however few files may be open.",
        "rpcqm.base.admission:FEWEST",
        "connections",
    ),
    Bound(
        "connections.pause_seconds",
        "what waits to be accepted is looked at again",
        "Time for which nothing is accepted when the system has no descriptor left.",
        "rpcqm.base.acceptor:PAUSE_SECONDS",
        "seconds",
    ),
    Bound("limits.unsent_bytes", CLOSED),
    Bound("limits.held_bytes", "the connections that hold most are closed"),
    Bound("limits.unread_seconds", CLOSED),
    Bound("limits.unfinished_seconds", CLOSED),
    Bound("limits.idle_seconds", CLOSED),
    Bound("limits.stop_seconds", "what is not answered is cut off"),
    # Calls.
    Bound("limits.calls", "the call is refused with nca_s_server_too_busy"),
    Bound("limits.waiting_calls", "the call is refused with nca_s_server_too_busy"),
    Bound("limits.call_bytes", "the call is refused, and the connection is closed"),
    Bound("limits.call_fragments", "the call is refused, and the connection is closed"),
    Bound("limits.contexts", "the context is refused with local_limit_exceeded"),
    Bound("limits.security_contexts", "the authentication is refused"),
    Bound("limits.handles", REFUSED),
    Bound("limits.cursors", "the call is refused with MQ_ERROR_INSUFFICIENT_RESOURCES"),
    Bound(
        "rpc.fragment_size",
        CLOSED,
        "Size of one fragment of a request.",
        "rpcqm.rpc.limits:Limits.fragment_size",
        "octets",
    ),
    Bound(
        "rpc.token_size",
        CLOSED,
        "Size of a PDU with a leg of authentication.",
        "rpcqm.rpc.limits:Limits.token_size",
        "octets",
    ),
    Bound(
        "rpc.nesting",
        "the call is refused with RPC_X_BAD_STUB_DATA",
        "Structures of an argument that hold others of their kind.",
        "rpcqm.codec.ndr.decode:MAXIMUM_DEPTH",
        "levels",
    ),
    Bound(
        "rpc.pending_reads",
        "the read is refused with MQ_ERROR_INSUFFICIENT_RESOURCES",
        "Reads of one open queue by RemoteRead that have begun and not ended.",
        "rpcqm.interfaces._pending:MAXIMUM_ENTRIES",
        "reads",
    ),
    Bound(
        "rpc.pending_reads_of_qm2qm",
        "the read is refused with MQ_ERROR_INSUFFICIENT_RESOURCES",
        "Reads of one open queue by qm2qm that have begun and not ended.",
        "rpcqm.interfaces.qm2qm:MAXIMUM_READS",
        "reads",
    ),
    Bound(
        "rpc.endpoint_maps",
        "all of them are forgotten, and made anew when they are asked for",
        "Addresses for which the endpoint mapper keeps a map.",
        "rpcqm.rpc.endpoint_mapper:MOST_MAPS",
        "addresses",
    ),
    # Guesses at passwords.
    Bound(
        "guard.free_guesses",
        "the next attempt is refused unseen for a while",
        "Wrong passwords for one account from one address in a minute.",
        "rpcqm.rpc.security.logon_throttle:FREE_GUESSES",
        "guesses",
    ),
    Bound(
        "guard.first_delay",
        "the next attempt is looked at",
        "Time for which the sixth wrong password puts off the next attempt; it doubles.",
        "rpcqm.rpc.security.logon_throttle:FIRST_DELAY",
        "milliseconds",
    ),
    Bound(
        "guard.longest_delay",
        "the next attempt is looked at",
        "Time for which any wrong password puts off the next attempt.",
        "rpcqm.rpc.security.logon_throttle:LONGEST_DELAY",
        "milliseconds",
    ),
    Bound(
        "guard.forgotten_after",
        "the next delay is the first again",
        "Time without a wrong password, after a delay, for which the delay is remembered.",
        "rpcqm.rpc.security.logon_throttle:FORGOTTEN_AFTER",
        "milliseconds",
    ),
    Bound(
        "guard.guesses_of_address",
        "accounts that have not logged on from there are refused unseen for the rest of it",
        "Wrong passwords from one address in a minute, for all accounts together.",
        "rpcqm.rpc.security.logon_throttle:GUESSES_OF_ADDRESS",
        "guesses",
    ),
    Bound(
        "guard.accounts_of_address",
        "the account that is not slowed, and was guessed at first, is forgotten",
        "Accounts that are remembered for one address.",
        "rpcqm.rpc.security.logon_throttle:ACCOUNTS_OF_ADDRESS",
        "accounts",
    ),
    Bound(
        "guard.addresses",
        "the one that has guessed least recently is forgotten",
        "Addresses remembered as having guessed wrong, and as many again that are slowed.",
        "rpcqm.rpc.security.logon_throttle:ADDRESSES",
        "addresses",
    ),
    Bound(
        "guard.logged_on",
        "the one that logged on least recently is forgotten",
        "Accounts, each with an address, that are remembered as having logged on.",
        "rpcqm.rpc.security.logon_throttle:LOGGED_ON",
        "accounts",
    ),
    Bound(
        "guard.name_characters",
        "the rest does not count",
        "Characters by which accounts are told apart.",
        "rpcqm.rpc.security.logon_throttle:LONGEST_NAME",
        "characters",
    ),
    # The log.
    Bound(
        "log.characters",
        "the text is cut, and its length is told",
        "Characters of each text in a line of the log or in an error.",
        "rpcqm.base.text:SHOWN_CHARACTERS",
        "characters",
    ),
    Bound(
        "log.items",
        "the others are left out",
        "Items of a list in a line of the log.",
        "rpcqm.base.log:ITEMS",
        "items",
    ),
    Bound(
        "log.traceback_lines",
        "the lines in the middle are left out",
        "Lines of a traceback in the log.",
        "rpcqm.base.log:TRACEBACK_LINES",
        "lines",
    ),
    Bound(
        "log.lines_at_once",
        "the line is left out, and the next one tells how many were",
        "Lines of one kind that one peer, or one account, may cause at once.",
        "rpcqm.base.log:LINES_AT_ONCE",
        "lines",
    ),
    Bound(
        "log.lines_per_second",
        "the line is left out, and the next one tells how many were",
        "Lines of one kind that one peer, or one account, may cause in the long run.",
        "rpcqm.base.log:LINES_PER_SECOND",
        "lines a second",
    ),
    Bound(
        "log.lines_without_peer_at_once",
        "the line is left out, and the next one tells how many were",
        "Lines of one kind that name no peer and no account, at once.",
        "rpcqm.base.log:LINES_WITHOUT_PEER_AT_ONCE",
        "lines",
    ),
    Bound(
        "log.lines_without_peer_per_second",
        "the line is left out, and the next one tells how many were",
        "Lines of one kind that name no peer and no account, in the long run.",
        "rpcqm.base.log:LINES_WITHOUT_PEER_PER_SECOND",
        "lines a second",
    ),
    Bound(
        "log.peers",
        "all further peers share one rate",
        "Peers, accounts and kinds of lines whose rates are told apart.",
        "rpcqm.base.log:PEERS",
        "rates",
    ),
    # Messages of other queue managers.
    Bound(
        "strangers.queues",
        "the acknowledgement is dropped",
        "Outgoing queues for acknowledgements to strangers.",
        "rpcqm.qm.acknowledgement_queues:QUEUES_AT_MOST",
        "queues",
    ),
    Bound(
        "strangers.queues_of_one_source",
        "the acknowledgement is dropped",
        "The same for messages from one address.",
        "rpcqm.qm.acknowledgement_queues:QUEUES_OF_ONE_SOURCE",
        "queues",
    ),
    Bound(
        "strangers.bytes",
        "the acknowledgement is dropped",
        "What waits in all of these queues together.",
        "rpcqm.qm.acknowledgement_queues:BYTES_AT_MOST",
        "octets",
    ),
    Bound(
        "strangers.dead_letters",
        "a refused message from elsewhere is not kept",
        "What the dead-letter queue holds at most when a message from elsewhere joins it that "
        "could not be delivered here.",
        "rpcqm.qm.acknowledgements:STRANGERS_DEAD_LETTERS",
        "KB",
    ),
    Bound(
        "binary.places",
        "the one that was tried longest ago is forgotten",
        "Addresses and ports whose failed attempts to connect are remembered.",
        "rpcqm.binary.connection.attempts:PLACES",
        "places",
    ),
    Bound(
        "binary.pings_of_one_address",
        "the ping is not answered",
        "Pings of one address in a second that are answered.",
        "rpcqm.binary.ping:PINGS_OF_ONE_ADDRESS",
        "pings",
    ),
    Bound(
        "binary.pinging_addresses",
        "the one that asked longest ago is forgotten",
        "Addresses whose pings are counted.",
        "rpcqm.binary.ping:PINGING_ADDRESSES",
        "addresses",
    ),
    Bound(
        "binary.violations",
        "the address is not let in for 5 seconds",
        "Connections of one address that break the rules within a minute.",
        "rpcqm.binary.connection.tcp:VIOLATIONS",
        "connections",
    ),
    Bound(
        "binary.held_bytes",
        "the connections that hold most are closed",
        "Unfinished packets on all connections.",
        "rpcqm.binary.connection.tcp:HELD_BYTES",
        "octets",
    ),
    Bound(
        "srmp.message",
        "the request is answered with 400",
        "Body and extension of a message that comes by HTTP.",
        "rpcqm.codec.packet.base:LARGEST_BODY_BY_HTTP",
        "B",
    ),
    Bound(
        "srmp.hops",
        "the request is answered with 400",
        "Hosts by which a message by HTTP has come that is for another machine.",
        "rpcqm.srmp.hops:MAXIMUM_HOPS",
        "hosts",
    ),
    Bound(
        "srmp.relay_queues",
        "the message is answered with 500",
        "Outgoing queues, beyond which messages by HTTP for other machines make no new one.",
        "rpcqm.srmp.connection.destinations:RELAY_QUEUES",
        "queues",
    ),
    Bound(
        "srmp.streams",
        "of the address from which most have come, the one that was used longest ago is forgotten",
        "Streams of transactional messages by HTTP of which it is known how far they have come.",
        "rpcqm.srmp.connection.incoming_streams:STREAMS",
        "streams",
    ),
    Bound(
        "srmp.history",
        "of the address from which most have come, the oldest is forgotten",
        "Messages by HTTP that are known again when they come a second time.",
        "rpcqm.srmp.settings:SrmpSettings.history_size",
        "messages",
    ),
    Bound(
        "srmp.envelope_templates",
        "that which was used longest ago is forgotten, and such envelopes are parsed again",
        "Forms of envelopes that are known again without parsing them.",
        "rpcqm.srmp.settings:SrmpSettings.envelope_templates",
        "forms",
    ),
    Bound(
        "srmp.template_envelope",
        "it is parsed each time that it comes",
        "Longest envelope whose form is remembered.",
        "rpcqm.srmp.templates:LONGEST",
        "octets",
    ),
    Bound(
        "srmp.template_request",
        "it is composed each time",
        "Longest request of which the packet is composed like one before.",
        "rpcqm.codec.packet.template:LONGEST",
        "octets",
    ),
    Bound(
        "packet.remembered_headers",
        "where its properties start is found each time",
        "Where the properties start at most in packets whose headers are compared with the last.",
        "rpcqm.codec.packet.user_message:LONGEST_HEADERS",
        "octets",
    ),
    # Shapes of stubs.
    Bound(
        "rpc.request_shapes",
        "one that was not found lately is forgotten, and such requests are decoded again",
        "Shapes of one operation's requests that are known again without decoding them.",
        "rpcqm.codec.ndr.shapes:MOST",
        "shapes",
    ),
    Bound(
        "rpc.alike_request_shapes",
        "one that was not found lately is forgotten, and such requests are decoded again",
        "Shapes that differ only behind the part of fixed size.",
        "rpcqm.codec.ndr.shapes:MOST_ALIKE",
        "shapes",
    ),
    Bound(
        "rpc.request_shape_sizes",
        "the first that was learned is forgotten, and such stubs take a few more steps",
        "Lengths of one operation's stubs whose values are taken out in one step.",
        "rpcqm.codec.ndr.shapes:MOST_SIZES",
        "lengths",
    ),
    Bound(
        "rpc.request_shape_constants",
        "it has no shape, and is decoded each time",
        "What is the same in all requests of one shape.",
        "rpcqm.codec.ndr.shape:MOST_CONSTANT",
        "octets",
    ),
    Bound(
        "rpc.request_shape_stub",
        "nothing is learned from it, and others of its shape are decoded until one is shorter",
        "Longest stub that a shape is learned from.",
        "rpcqm.codec.ndr.shapes:LONGEST",
        "octets",
    ),
    # Request templates.
    Bound(
        "rpc.request_templates",
        "the one that was used longest ago is forgotten",
        "Templates of messages that clients send, of all of them.",
        "rpcqm.interfaces._send_templates:TEMPLATES",
        "templates",
    ),
    Bound(
        "rpc.request_templates_of_a_handle",
        "they are looked for among all",
        "Templates that an open queue remembers as its own.",
        "rpcqm.interfaces._send_templates:OF_HANDLE",
        "templates",
    ),
    Bound(
        "rpc.open_queues_of_a_lane",
        "all of them are forgotten, and found again",
        "Open queues that a connection sends to, or reads from, by templates without looking for "
        "them.",
        "rpcqm.interfaces._handle_lane:OF_LANE",
        "open queues",
    ),
    Bound(
        "rpc.request_templates_learned_at_once",
        "requests are carried out one by one",
        "Templates that are made in one moment.",
        "rpcqm.interfaces._send_templates:LEARNED_AT_ONCE",
        "templates",
    ),
    Bound(
        "rpc.request_templates_learned",
        "requests are carried out one by one",
        "Templates that are made in a second.",
        "rpcqm.interfaces._send_templates:LEARNED_PER_SECOND",
        "templates",
    ),
    Bound(
        "rpc.receive_templates",
        "the one that was used longest ago is forgotten",
        "Kinds of messages whose answers to one shape of requests are known.",
        "rpcqm.interfaces._receive_answers:MOST_KINDS",
        "templates",
    ),
    Bound(
        "rpc.receive_template_forms",
        "the oldest is forgotten, and such messages are answered with one by one",
        "Forms of packets that those which clients receive are tried with.",
        "rpcqm.interfaces._receive_answers:MOST_FORMS",
        "forms",
    ),
    Bound(
        "rpc.receive_templates_learned_at_once",
        "requests are carried out one by one",
        "Templates of answers that are made in one moment.",
        "rpcqm.interfaces._receive_answers:LEARNED_AT_ONCE",
        "templates",
    ),
    Bound(
        "rpc.receive_templates_learned",
        "requests are carried out one by one",
        "Templates of answers that are made in a second.",
        "rpcqm.interfaces._receive_answers:LEARNED_PER_SECOND",
        "templates",
    ),
    Bound(
        "rpc.templated_messages_of_a_turn",
        "those that wait are carried out",
        "Messages for one queue, or removals from it, that wait for the end of a turn.",
        "rpcqm.qm.turn:MOST_MESSAGES",
        "messages",
    ),
    Bound(
        "rpc.templated_octets_of_a_turn",
        "those that wait are carried out",
        "Octets of bodies for one queue that wait for the end of a turn.",
        "rpcqm.qm.turn:MOST_BYTES",
        "octets",
    ),
    Bound(
        "binary.known_shapes",
        "the one that was used longest ago is forgotten",
        "Shapes of packets that are remembered, for each direction of all sessions.",
        "rpcqm.binary.connection.known_shapes:MOST_SHAPES",
        "shapes",
    ),
    Bound(
        "binary.known_forms",
        "the one that was learned longest ago is forgotten, and packets of it come one by one",
        "Forms, which say where values lie in packets, that each packet is tried with.",
        "rpcqm.binary.connection.known_shapes:MOST_FORMS",
        "forms",
    ),
    Bound(
        "binary.shapes_learned_at_once",
        "packets are taken one by one",
        "Shapes that are learned one after the other.",
        "rpcqm.binary.connection.known_shapes:LEARN_AT_ONCE",
        "shapes",
    ),
    Bound(
        "binary.packets_between_shapes",
        "packets are taken one by one",
        "Unknown packets between two shapes that are learned.",
        "rpcqm.binary.connection.known_shapes:LEARN_EVERY",
        "packets",
    ),
    Bound(
        "binary.messages_taken_together",
        "the others are taken in another commit",
        "Messages of one read that are taken in one commit.",
        "rpcqm.binary.connection.arrival_batch:MOST_MESSAGES",
        "messages",
    ),
    Bound(
        "binary.octets_taken_together",
        "the others are taken in another commit",
        "Octets of packets of one read that are taken in one commit.",
        "rpcqm.binary.connection.arrival_batch:MOST_BYTES",
        "octets",
    ),
    Bound(
        "binary.packets_not_looked_at",
        "the next packet is looked at again",
        "Packets in a row that are not tried with any shape, because as many before had none.",
        "rpcqm.binary.connection.arrival_batches:MOST_MISSED",
        "packets",
    ),
    Bound(
        "srmp.hosts_of_strangers",
        "the addresses of the host that was used longest ago are forgotten",
        "Hosts of URLs in strangers' messages whose addresses are remembered.",
        "rpcqm.srmp.connection.stranger_urls:HOSTS",
        "hosts",
    ),
    Bound(
        "binary.pending_messages",
        "nothing more is read from it until half of them are on the disk",
        "Messages of one connection that are not on the disk yet.",
        "rpcqm.binary.connection.receiving:MOST_PENDING",
        "messages",
    ),
    Bound(
        "binary.unsent_bytes",
        CLOSED,
        "What one connection has not taken of what was sent to it.",
        "rpcqm.binary.connection.tcp:UNSENT_BYTES",
        "octets",
    ),
    # Messages over HTTP.
    Bound(
        "http.line_bytes",
        BAD_REQUEST,
        "Target of a request.",
        "rpcqm.http.limits:LINE_BYTES",
        "octets",
    ),
    Bound(
        "http.field_bytes",
        BAD_REQUEST,
        "Name of a header, and its value.",
        "rpcqm.http.limits:FIELD_BYTES",
        "octets",
    ),
    Bound(
        "http.headers",
        BAD_REQUEST,
        "Headers of a request.",
        "rpcqm.http.limits:HEADERS",
        "headers",
    ),
    Bound(
        "http.answer_bytes",
        "the connection is closed, and the answer counts",
        "Body of an answer to what is sent from here, which is read away.",
        "rpcqm.http.client_session:ANSWER_BYTES",
        "octets",
    ),
    Bound(
        "http.places",
        "places whose connections are not in use are forgotten",
        "Places to which connections are kept, and names whose addresses are remembered.",
        "rpcqm.http.client:PLACES",
        "places",
    ),
    # Bodies, for programs that ask what is in them (G102).
    Bound(
        "body.dotnet_depth",
        "the body is refused with an error before anything is made of it",
        "Objects and arrays of .NET within each other.",
        "rpcqm.codec.bodies.dotnet_binary:MAXIMUM_DEPTH",
        "levels",
    ),
    Bound(
        "body.dotnet_free_values",
        "the body is refused with an error before anything is made of it",
        "Values that a body of .NET may hold however small it is.",
        "rpcqm.codec.bodies.dotnet_binary:FREE_VALUES",
        "values",
    ),
    Bound(
        "body.dotnet_values_per_octet",
        "the body is refused with an error before anything is made of it",
        "Values that a body of .NET may hold besides, for each of its octets.",
        "rpcqm.codec.bodies.dotnet_binary:VALUES_PER_OCTET",
        "values",
    ),
    Bound(
        "body.xml_depth",
        "the body is refused with an error before anything is made of it",
        "Elements of XML within each other.",
        "rpcqm.codec.bodies.xml_bounds:MAXIMUM_DEPTH",
        "levels",
    ),
    Bound(
        "body.xml_nodes",
        "the body is refused with an error before anything is made of it",
        "Elements and attributes of a body in XML.",
        "rpcqm.codec.bodies.xml_bounds:MAXIMUM_NODES",
        "nodes",
    ),
    Bound(
        "body.xml_name",
        "the body is refused with an error before anything is made of it",
        "Size of a name in XML, with its namespace.",
        "rpcqm.codec.bodies.xml_bounds:MAXIMUM_NAME",
        "characters",
    ),
    Bound(
        "body.xml_names",
        "the body is refused with an error before anything is made of it",
        "Size of all names that differ in a body in XML.",
        "rpcqm.codec.bodies.xml_bounds:MAXIMUM_NAMES",
        "characters",
    ),
    # Envelopes of messages over HTTP (G203).
    Bound(
        "srmp.envelope",
        "the request is answered by 400",
        "Size of the envelope of a message over HTTP.",
        "rpcqm.srmp.xml:MAXIMUM_ENVELOPE",
        "octets",
    ),
    Bound(
        "srmp.envelope_nodes",
        "the request is answered by 400",
        "Elements and attributes of an envelope.",
        "rpcqm.srmp.xml:MAXIMUM_NODES",
        "nodes",
    ),
    Bound(
        "srmp.part_headers",
        "the request is answered by 400",
        "Size of the headers of a part of a request.",
        "rpcqm.srmp.multipart:MAXIMUM_PART_HEADERS",
        "octets",
    ),
    Bound(
        "srmp.key_bits",
        "the signature proves nothing, and hinders nothing",
        "Key of the certificate that comes with a signature.",
        "rpcqm.srmp.signature:KEY_BITS",
        "bits",
    ),
    Bound(
        "srmp.exponent_bits",
        "the signature proves nothing, and hinders nothing",
        "Public exponent of an RSA key that comes with a signature.",
        "rpcqm.srmp.signature:EXPONENT_BITS",
        "bits",
    ),
    # Files that were made elsewhere (G104).
    Bound(
        "file.list_items",
        "the file is refused in one sentence",
        "Items of a list in a configuration file, such as the maps of `[srmp]`.",
        "rpcqm.config.lists:MAXIMUM_ITEMS",
        "items",
    ),
    Bound(
        "file.configuration_octets",
        "the file is refused in one sentence",
        "Size of a configuration file.",
        "rpcqm.config.load:MAXIMUM_CONFIGURATION",
        "octets",
    ),
    Bound(
        "file.windows_export_octets",
        "the file is refused in one sentence",
        "Size of a file that `rpcqm migrate windows` reads.",
        "rpcqm.cli.windows_export:LARGEST_FILE",
        "octets",
    ),
    Bound(
        "file.configuration_lines",
        "the file is refused in one sentence",
        "Lines of a configuration file.",
        "rpcqm.config.load:MAXIMUM_LINES",
        "lines",
    ),
    Bound(
        "file.depth",
        "the file is refused in one sentence",
        "Tables and lists of such a file within each other, the file itself among them.",
        "rpcqm.config.load:MAXIMUM_DEPTH",
        "levels",
    ),
    Bound(
        "file.directory_octets",
        "the file is refused in one sentence",
        "Size of a directory file.",
        "rpcqm.config.directory:MAXIMUM_DIRECTORY",
        "octets",
    ),
    Bound(
        "file.directory_mistakes",
        "the others are not looked for",
        "Mistakes of a directory file that are told.",
        "rpcqm.config.directory_objects:MOST_MISTAKES",
        "mistakes",
    ),
    Bound(
        "backup.note_octets",
        "the backup is refused as damaged",
        "Size of the note of a backup.",
        "rpcqm.store.backup:MAXIMUM_NOTE",
        "octets",
    ),
    Bound(
        "backup.levels",
        "the backup is refused before anything is made",
        "Directories of a backup within each other, itself among them.",
        "rpcqm.store.backup:DEEPEST",
        "levels",
    ),
    Bound(
        "backup.files",
        "the backup is refused before anything is made",
        "Files of a backup.",
        "rpcqm.store.backup:MAXIMUM_FILES",
        "files",
    ),
    Bound(
        "backup.mark_octets",
        "a mark that differs from the last one only behind them is the same one",
        "What is read of the mark of restored data.",
        "rpcqm.store.restored:MAXIMUM_MARK",
        "octets",
    ),
    # COM objects.
    Bound("dcom.objects", "the call that makes one gets E_OUTOFMEMORY"),
    Bound("dcom.objects_per_caller", "the call that makes one gets E_OUTOFMEMORY"),
    Bound("dcom.waiting_calls_per_caller", REFUSED),
    Bound("dcom.ping_sets_per_caller", "the ping is answered with ERROR_NOT_ENOUGH_QUOTA"),
    Bound(
        "dcom.references_of_an_interface",
        "more get E_OUTOFMEMORY",
        "Public references to one interface of an object, and private ones of one caller.",
        "rpcqm.dcom.exporter:MOST_REFERENCES",
        "references",
    ),
    Bound(
        "dcom.ping_sets_of_an_object",
        "the ping is answered with OR_INVALID_OID",
        "Sets of pings that one object is in.",
        "rpcqm.dcom.ping_sets:MOST_SETS",
        "sets",
    ),
    Bound(
        "dcom.reclaimed_at_once",
        "the others are served before the rest is reclaimed",
        "Objects of dead clients that are reclaimed in a row.",
        "rpcqm.dcom.ping_sets:BATCH",
        "objects",
    ),
    Bound(
        "dcom.variant_nesting",
        "the call is refused with RPC_X_BAD_STUB_DATA",
        "VARIANTs that hold others, by reference or in arrays.",
        "rpcqm.codec.automation.variants:MAXIMUM_DEPTH",
        "levels",
    ),
    Bound(
        "dcom.octets_in_messages_per_caller",
        "setting more, and reading more messages, gets MQ_ERROR_INSUFFICIENT_RESOURCES",
        "What the messages that objects of a caller hold take.",
        "rpcqm.mqac.held_octets:MOST_HELD",
        "bytes",
    ),
    Bound(
        "dcom.notifications_of_an_open_queue",
        "more get MQ_ERROR_INSUFFICIENT_RESOURCES",
        "Notifications of EnableNotification that one open queue waits with.",
        "rpcqm.mqac.notifications:AT_MOST",
        "notifications",
    ),
    Bound(
        "dcom.sinks_of_an_object",
        "more get CONNECT_E_ADVISELIMIT",
        "Sinks that one object tells of its events.",
        "rpcqm.dcom.connection_points:CONNECTION_LIMIT",
        "sinks",
    ),
    Bound(
        "dcom.sinks_per_caller",
        "more get CONNECT_E_ADVISELIMIT",
        "Sinks of one caller, each with a connection to it.",
        "rpcqm.dcom.client:MOST_SINKS_PER_CALLER",
        "sinks",
    ),
    Bound(
        "dcom.sinks",
        "more get CONNECT_E_ADVISELIMIT",
        "Sinks of all callers.",
        "rpcqm.dcom.client:MOST_SINKS",
        "sinks",
    ),
    Bound(
        "dcom.events_of_a_sink",
        "more are dropped, with a line of the log",
        "Events that wait for one sink.",
        "rpcqm.dcom.client:MOST_WAITING",
        "events",
    ),
    Bound(
        "dcom.certificates_of_a_user",
        "more get MQ_ERROR_INSUFFICIENT_RESOURCES",
        "Certificates that a user has registered by RegisterCertificate.",
        "rpcqm.mqac.certificates:AT_MOST",
        "certificates",
    ),
    # Programs: leases, and keys of requests.
    Bound(
        "leases.longest",
        REFUSED,
        "How long a lease may be, and how far it can be extended at once.",
        "rpcqm.qm.leases:LONGEST_LEASE",
        "milliseconds",
    ),
    Bound(
        "leases.of_account",
        "a receive gets fewer messages; one that gets none is refused",
        "Leases of one account.",
        "rpcqm.qm.leases:LEASES_OF_ACCOUNT",
        "leases",
    ),
    Bound(
        "leases.in_all",
        "a receive gets fewer messages; one that gets none is refused",
        "Leases of all accounts.",
        "rpcqm.qm.leases:LEASES_IN_ALL",
        "leases",
    ),
    Bound(
        "leases.messages_at_once",
        REFUSED,
        "Messages that one receive with leases asks for.",
        "rpcqm.qm.leases:MESSAGES_AT_ONCE",
        "messages",
    ),
    Bound(
        "leases.bytes_at_once",
        "the others stay in the queue",
        "After so many bytes one receive with leases takes no more messages.",
        "rpcqm.qm.leases:BYTES_AT_ONCE",
        "bytes",
    ),
    Bound("metrics.queues", "they are one series together"),
    Bound(
        "overview.points",
        "the oldest one is forgotten",
        "Points of the history that an overview tells.",
        "rpcqm.operations.history:POINTS",
        "points",
    ),
    Bound(
        "overview.most_stuck",
        "those with younger messages are not told of",
        "Outgoing queues without a session that an overview tells of.",
        "rpcqm.qm.totals:MOST_STUCK",
        "queues",
    ),
    Bound(
        "program.page_bytes",
        "the others are on the next page",
        "After so many bytes a page of messages that are looked at has no more.",
        "rpcqm.operations.messages:PAGE_BYTES",
        "bytes",
    ),
    Bound(
        "program.queue_texts",
        "all are written again",
        "Queues whose text in the list of queues is kept while nothing of it changes.",
        "rpcqm.api.queues:MOST_TEXTS",
        "queues",
    ),
    Bound(
        "program.most_sent",
        REFUSED,
        "Messages, and leases to complete, of one request of a program.",
        "rpcqm.qm.program_work:MOST_SENT",
        "messages",
    ),
    Bound(
        "program.longest_key",
        REFUSED,
        "Characters of the key of a request.",
        "rpcqm.qm.sent_keys:LONGEST_KEY",
        "characters",
    ),
    Bound(
        "program.keys_of_account",
        "the account's oldest key is forgotten",
        "Keys of requests of one account that are kept for a day.",
        "rpcqm.qm.sent_keys:KEYS_OF_ACCOUNT",
        "keys",
    ),
    Bound(
        "program.keys_in_all",
        "the account that has most loses its oldest key",
        "Keys of requests of all accounts that are kept for a day.",
        "rpcqm.qm.sent_keys:KEYS_IN_ALL",
        "keys",
    ),
    Bound(
        "dead_letters.resent_at_once",
        "the answer says that there are more",
        "Dead letters that one request sends again.",
        "rpcqm.operations.dead_letters:RESENT_AT_ONCE",
        "messages",
    ),
    Bound(
        "dead_letters.looked_at_once",
        "those of the reason behind them are not found by that request",
        "Dead letters that are looked at for those of a reason.",
        "rpcqm.operations.dead_letters:LOOKED_AT_ONCE",
        "messages",
    ),
    Bound(
        "routing.nodes",
        "the rest is not shown",
        "Sites, queue managers and links each that one look at a directory shows.",
        "rpcqm.operations.routing:MOST_NODES",
        "objects",
    ),
    Bound(
        "traces.asked",
        "what others know of the message is not told",
        "Other queue managers that are asked about one message.",
        "rpcqm.operations.traces:MOST_ASKED",
        "queue managers",
    ),
    Bound(
        "traces.answers",
        "the oldest one is asked for again",
        "Answers of other queue managers about messages that are kept.",
        "rpcqm.service.remote_traces:MOST_ANSWERS",
        "answers",
    ),
    Bound(
        "events.kept",
        "the oldest of its kind is forgotten",
        "Events of each kind that are kept in memory, and acts of operators.",
        "rpcqm.operations.trail:EVENTS_KEPT",
        "events",
    ),
    Bound(
        "events.listeners",
        REFUSED,
        "Programs and pages that listen to events.",
        "rpcqm.operations.events:LISTENERS",
        "listeners",
    ),
    Bound(
        "events.listeners_of_account",
        REFUSED,
        "Those of one account.",
        "rpcqm.operations.events:LISTENERS_OF_ACCOUNT",
        "listeners",
    ),
    Bound(
        "events.backlog",
        "the listener is dropped; it comes again with the number of its last event",
        "Events that wait for a listener that is slow.",
        "rpcqm.operations.events:BACKLOG",
        "events",
    ),
    Bound(
        "events.queues_of_listener",
        REFUSED,
        "Queues that a listener names.",
        "rpcqm.operations.events:QUEUES_OF_LISTENER",
        "queues",
    ),
    Bound(
        "tokens.in_all",
        REFUSED,
        "Tokens, which administrators make.",
        "rpcqm.service.tokens:MOST_TOKENS",
        "tokens",
    ),
    Bound(
        "tokens.queues_of_token",
        REFUSED,
        "Queues that one token is for.",
        "rpcqm.service.tokens:MOST_QUEUES",
        "queues",
    ),
    Bound(
        "tokens.longest_life",
        REFUSED,
        "After which time a token can end at most.",
        "rpcqm.service.tokens:LONGEST_LIFE",
        "milliseconds",
    ),
    Bound(
        "program.rows_in_flight",
        "the others are counted only",
        "Leases, transactions and sessions that `rpcqm top` is told of at once.",
        "rpcqm.operations.flight:MOST_ROWS",
        "of each",
    ),
    # Pages.
    Bound(
        "console.longest_body",
        "its beginning is shown as text or as octets",
        "Octets of a body that a page reads as XML, JSON or .NET, and characters that it shows.",
        "rpcqm.console.bodies:LONGEST_BODY",
        "bytes",
    ),
    Bound(
        "console.sessions",
        "the oldest session ends",
        "Logons at the pages at a time.",
        "rpcqm.console.sessions:MOST_SESSIONS",
        "sessions",
    ),
    Bound(
        "console.sessions_of_account",
        "the oldest session of the account ends",
        "Logons of one account at the pages at a time.",
        "rpcqm.console.sessions:SESSIONS_OF_ACCOUNT",
        "sessions",
    ),
    Bound(
        "console.logons_waiting",
        "the oldest one cannot be used any more",
        "One-time logons that nobody has used yet.",
        "rpcqm.operations.logons:MOST_WAITING",
        "tokens",
    ),
    Bound(
        "console.logon_life",
        "it cannot be used any more",
        "How long a one-time logon can be used.",
        "rpcqm.operations.logons:LIFE",
        "milliseconds",
    ),
    Bound(
        "console.listeners",
        "a page does not follow what happens",
        "Pages that follow what happens at a time.",
        "rpcqm.console.changes:MOST_LISTENERS",
        "pages",
    ),
    Bound(
        "console.listeners_of_session",
        "a page does not follow what happens",
        "Pages of one logon that follow what happens at a time.",
        "rpcqm.console.changes:LISTENERS_OF_SESSION",
        "pages",
    ),
    Bound(
        "console.form_bytes",
        "the form is refused",
        "A form of somebody who is logged on.",
        "rpcqm.console.forms:FORM_BYTES",
        "bytes",
    ),
    Bound(
        "console.logon_bytes",
        "the form is refused",
        "A form of somebody who is not logged on.",
        "rpcqm.console.forms:LOGON_BYTES",
        "bytes",
    ),
    Bound(
        "console.fields",
        "the form is refused",
        "Fields of a form, or of a query.",
        "rpcqm.console.forms:MOST_FIELDS",
        "fields",
    ),
    Bound(
        "console.exports",
        "the export is refused",
        "Queues that are exported from pages at a time.",
        "rpcqm.operations.exports:MOST_EXPORTS",
        "exports",
    ),
    Bound(
        "console.exports_of_account",
        "the export is refused",
        "Queues that one account exports from pages at a time.",
        "rpcqm.operations.exports:EXPORTS_OF_ACCOUNT",
        "exports",
    ),
    Bound(
        "console.head_without_server",
        "the connection is answered 503 before its request has ended",
        "Octets of a request that are read where the console cannot be loaded.",
        "rpcqm.service.unavailable:HEAD_BYTES",
        "bytes",
    ),
    # Traces.
    Bound("otel.waiting_spans", "spans are lost, and counted in the log"),
    Bound(
        "traces.open",
        "the oldest are forgotten: their spans `forward` and `settle` are not told",
        "Messages that are traced and wait for their next event, of readers and of next hops each.",
        "rpcqm.otel.spans:MOST_OPEN",
        "messages",
    ),
    Bound(
        "traces.roots",
        "the oldest are forgotten: one that comes back over the network is told as sent again",
        "Messages sent here whose span `send` is known to have been told.",
        "rpcqm.otel.spans:MOST_OPEN",
        "messages",
    ),
    Bound(
        "traces.at_once",
        "their spans are not told until others have been looked at",
        "Spans beyond twice the share of messages that is to be told of, of messages from here "
        "and from elsewhere each: identifiers may have been chosen for being told.",
        "rpcqm.otel.spans:MOST_AT_ONCE",
        "spans",
    ),
    Bound(
        "traces.traceparent",
        "it is no context of a trace, and left out",
        "A header `traceparent` that is looked at.",
        "rpcqm.codec.packet.trace_context:LONGEST_HEADER",
        "characters",
    ),
    Bound(
        "traces.headers",
        "the configuration is refused",
        "Lines of the file with headers for the collector.",
        "rpcqm.config.otel_section:MOST_HEADERS",
        "lines",
    ),
)


def rows(configuration: Configuration) -> Iterator[tuple[Bound, str, int]]:
    """Each bound with its text and its value under a configuration."""
    texts = _texts()
    for bound in BOUNDS:
        yield bound, bound.text or texts[bound.name].about.text, bound.value(configuration)


def _texts() -> dict[str, Setting]:
    return {setting.key: setting for setting in settings()}
