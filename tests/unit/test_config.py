"""The configuration: precedence, types, and every mistake explained with its line."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.config import Configuration, ConfigurationError, check, load
from rpcqm.config.checking import check_file
from rpcqm.config.lists import MAXIMUM_ITEMS
from rpcqm.config.positions import key_lines
from rpcqm.config.schema import Setting, settings, tables
from rpcqm.srmp.settings import Redirection


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rpcqm.toml"


def mistakes(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        check(file)
    return [str(mistake).removeprefix(f"{file}:") for mistake in caught.value.mistakes]


def test_without_a_source_everything_is_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    configuration = load(environment={})
    assert configuration == Configuration()
    assert configuration.data_dir == Path("var")
    assert configuration.host == "127.0.0.1"
    assert configuration.epm_port == 1135
    switches = dataclasses.asdict(configuration.security).items()
    assert {name for name, value in switches if value is True} <= {"ntlm"}


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(file: Path) -> None:
    file.write_text('host = "10.0.0.1"\nepm_port = 1\nrpc_port = 2\nqm2qm_port = 3\n')
    environment = {"RPCQM_EPM_PORT": "11", "RPCQM_RPC_PORT": "12"}
    configuration = load({"epm_port": 21}, file, environment)
    assert configuration.epm_port == 21
    assert configuration.rpc_port == 12
    assert configuration.qm2qm_port == 3
    assert configuration.host == "10.0.0.1"


def test_the_environment_names_the_file(file: Path) -> None:
    file.write_text('[logging]\nlevel = "debug"\n')
    assert load(environment={"RPCQM_CONFIG": str(file)}).logging.level == "debug"


def test_the_environment_sets_switches_of_tables() -> None:
    environment = {"RPCQM_SECURITY_DEBUG_RPC": "yes", "RPCQM_LOGGING_FORMAT": "json"}
    configuration = load(environment=environment)
    assert configuration.security.debug_rpc is True
    assert configuration.logging.format == "json"


def test_a_wrong_value_of_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(environment={"RPCQM_EPM_PORT": "mapper", "RPCQM_SECURITY_DEBUG_RPC": "perhaps"})
    assert str(caught.value).splitlines() == [
        "RPCQM_EPM_PORT: `epm_port` is a whole number, not 'mapper'.",
        "RPCQM_SECURITY_DEBUG_RPC: `security.debug_rpc` is true or false, not 'perhaps'.",
    ]


def test_a_wrong_option_is_named_by_its_option() -> None:
    with pytest.raises(ConfigurationError, match="--epm-port: `epm_port` is from -1 to 65535"):
        load({"epm_port": 65536}, environment={})


def test_the_state_directory_of_a_service_manager_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/rpcqm:/var/lib/other")
    assert load(environment={}).data_dir == Path("/var/lib/rpcqm")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epm_prt = 1", "1: there is no setting `epm_prt`; did you mean `epm_port`?"),
        ("\n\ndata-dir = 'x'", "3: there is no setting `data-dir`; did you mean `data_dir`?"),
        ("zzz = 1", "1: there is no setting `zzz`."),
        ("[securty]\n", "1: there is no table `securty`; did you mean `security`?"),
        (
            "debug_rpc = true",
            "1: there is no setting `debug_rpc`; did you mean `security.debug_rpc`?",
        ),
        (
            "[security]\n# why\ndebug_rcp = true",
            "3: there is no setting `security.debug_rcp`; did you mean `security.debug_rpc`?",
        ),
        ("security = true", "1: `security` is a table; write [security]."),
        ("host = 5", "1: `host` is a text, not 5."),
        (r"name = 'a\b'", "1: `name` has characters that it cannot have: 'a\\\\b'."),
        ("host = ''", "1: `host` is empty."),
        ("epm_port = true", "1: `epm_port` is a whole number, not true."),
        ("epm_port = 1.5", "1: `epm_port` is a whole number, not 1.5."),
        ("epm_port = [\n 1,\n]", "1: `epm_port` is a whole number, not a list."),
        ("rpc_port = -2", "1: `rpc_port` is from -1 to 65535, not -2."),
        ("[security]\ndebug_rpc = 1", "2: `security.debug_rpc` is true or false, not 1."),
        ("data_dir = 1", "1: `data_dir` is a path, not 1."),
        (
            "[logging]\nlevel = 'loud'",
            "2: `logging.level` is one of debug, info, warning, error, not 'loud'.",
        ),
        ("[storage]\nreserve = 0", "2: `storage.reserve` is from 1 to 1073741824, not 0."),
        (
            "epm_port = 135\n\nrpc_port = 135",
            "3: `rpc_port` is 135, which `epm_port` has already.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(file: Path, text: str, expected: str) -> None:
    assert mistakes(file, text) == [expected]


def test_every_mistake_is_told_not_only_the_first(file: Path) -> None:
    text = "epm_port = 'x'\nnonsense = 1\n[security]\nnope = true\ndebug_rpc = 0\n"
    assert [line.split(":")[0] for line in mistakes(file, text)] == ["1", "2", "4", "5"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("host = \n", "1"),
        ("a = 1\nb = 2\nc = 'open\n", "3"),
        ("epm_port = 1\nepm_port = 2\n", "2"),
        ("x = '''\nnever closed", "2"),
    ],
)
def test_broken_syntax_is_explained_with_its_line(file: Path, text: str, line: str) -> None:
    (mistake,) = mistakes(file, text)
    assert mistake.startswith(f"{line}: ")
    assert mistake.endswith(".")


def test_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere: cannot be read: No such file"):
        load(file=tmp_path / "nowhere", environment={})
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        check(tmp_path)


def test_a_text_that_is_not_closed_is_told_as_such(file: Path) -> None:
    told = mistakes(file, 'host = "127.0.0.1"\nname = "other\nepm_port = 1\n')
    assert told == ["2: a text is not closed where its line ends."]


def test_a_file_that_is_not_text_is_explained_with_its_line(file: Path) -> None:
    file.write_bytes(b"host = 'a'\n# \xff\n")
    with pytest.raises(ConfigurationError, match=":2: is not UTF-8 text"):
        check(file)


def test_ports_that_pick_a_free_one_do_not_collide(file: Path) -> None:
    file.write_text("epm_port = 0\nrpc_port = 0\nbinary_port = -1\nhttp_port = -1\n")
    assert check(file).rpc_port == 0


def test_durations_and_sizes_may_have_units(file: Path) -> None:
    file.write_text(
        '[limits]\nidle_seconds = "5min"\nheld_bytes = "64MB"\n[storage]\nquota = "1GB"\n'
    )
    found = load({}, file, {"RPCQM_BINARY_RETRY_MILLISECONDS": "2s"})
    assert (found.limits.idle_seconds, found.limits.held_bytes) == (300, 64 << 20)
    assert (found.storage.quota, found.binary.retry_milliseconds) == (1 << 20, 2000)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            'idle_seconds = "5x"',
            "is '5x', which is no number with a unit; units are ms, s, min, h, d.",
        ),
        ('idle_seconds = "200ms"', "is '200ms', which is not a whole number of seconds."),
        ('idle_seconds = "2d"', "is from 0 to 86400, not 172800."),
        ('calls = "5s"', "is a whole number, not '5s'."),
    ],
)
def test_an_amount_that_does_not_fit_is_a_mistake(file: Path, line: str, why: str) -> None:
    (told,) = mistakes(file, f"[limits]\n{line}\n")
    assert told == f"2: `limits.{line.split()[0]}` {why}"


def test_every_table_of_the_schema_is_known() -> None:
    fields = {entry.name for entry in dataclasses.fields(Configuration)}
    plain = {setting.path[0] for setting in settings() if len(setting.path) == 1}
    assert fields == plain | set(tables())


URL = "http://h/msmq/*"
REDIRECTIONS = f"[{{ from = '{URL}', to = '{URL}' }}]", (Redirection(URL, URL),)
EXAMPLES: dict[str, tuple[str, object]] = {
    "aliases": ("['queues.example.com', '[::2]:80']", ("queues.example.com", "[::2]:80")),
    "console.allow_hosts": ("['queues.example.com']", ("queues.example.com",)),
    "console.trusted_proxy": ("'192.0.2.1'", "192.0.2.1"),
    "dcom.launch": ("'D:(A;;RP;;;BA)'", "D:(A;;RP;;;BA)"),
    "dcom.access": ("'D:(A;;LC;;;BA)'", "D:(A;;LC;;;BA)"),
    "dcom.advertise": ("['h', '::1']", ("h", "::1")),
    "directory.administrators": ("['S-1-5-21-1-2-3-4']", ("S-1-5-21-1-2-3-4",)),
    "directory.publish": ("['settings']", ("settings",)),
    "directory.search_bases": ("['OU=a,DC=b']", ("OU=a,DC=b",)),
    "directory.servers": ("['dc1.example.org:389']", ("dc1.example.org:389",)),
    "otel.endpoint": ("'http://h:4318/v1/traces'", "http://h:4318/v1/traces"),
    "replica.log": ("['tls://h:4222']", ("tls://h:4222",)),
    "replica.on_promote": ("['ip', 'address']", ("ip", "address")),
    "replica.on_demote": ("['ip', 'address']", ("ip", "address")),
    "srmp.proxy": ("'http://h:3128'", "http://h:3128"),
    "srmp.receipts_to": ("['h', '::1']", ("h", "::1")),
    "srmp.default_stream_receipt_url": ("'https://h/msmq/q'", "https://h/msmq/q"),
    "srmp.outbound_exceptions": (f"['{URL}']", (URL,)),
    "srmp.inbound": REDIRECTIONS,
    "srmp.outbound": REDIRECTIONS,
    "srmp.stream_receipt": REDIRECTIONS,
}
NEEDED = {
    "https_port": "[srmp]\ncertificate = 'c'\nkey = 'k'\n",
    "srmp.certificate": "key = 'k'\n",
    "srmp.key": "certificate = 'c'\n",
    "console.certificate": "key = 'k'\n",
    "console.key": "certificate = 'c'\n",
}
NEEDED_BEFORE = {"replica.log": "name = 'queues'\n"}


@pytest.mark.parametrize("setting", list(settings()), ids=lambda setting: setting.key)
def test_every_setting_can_be_set_in_a_file(file: Path, setting: Setting) -> None:
    examples: dict[type, tuple[str, object]] = {
        bool: ("true", True),
        int: ("7", 7),
        str: ("'there'", "there"),
        Path: ("'there'", Path("there")),
    }
    text, expected = examples.get(setting.kind, ("", None))
    if setting.about.between:
        expected = max(7, setting.about.between[0])
        text = str(expected)
    if setting.key in ("binary.peers", "remote.peers"):
        text, expected = "'there=192.0.2.1'", "there=192.0.2.1"
    if setting.key in EXAMPLES:
        text, expected = EXAMPLES[setting.key]
    if setting.about.choices:
        text, expected = f"'{setting.about.choices[-1]}'", setting.about.choices[-1]
    *table, name = setting.path
    before = NEEDED_BEFORE.get(setting.key, "") + (f"[{table[0]}]\n" if table else "")
    file.write_text(before + f"{name} = {text}\n" + NEEDED.get(setting.key, ""))
    found: object = check(file)
    for part in setting.path:
        found = getattr(found, part)
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("inbound = 'x'", "`srmp.inbound` is a list of tables with `from` and `to`, not 'x'."),
        ("inbound = [1]", "`srmp.inbound` is a table; write [[srmp.inbound]]."),
        ("receipts_to = [1]", "`srmp.receipts_to` is a text, not 1."),
        (
            "receipts_to = ['http://h']",
            "`srmp.receipts_to` is 'http://h', which is no host: leave out scheme, port and path.",
        ),
        (
            "proxy = 'https://h'",
            "`srmp.proxy` is 'https://h', which is no URL that begins with http://.",
        ),
        (
            "proxy = 'http://h/x'",
            "`srmp.proxy` is 'http://h/x', which names more than a host and a port.",
        ),
        (
            "default_stream_receipt_url = 'http://h/*'",
            "`srmp.default_stream_receipt_url` is 'http://h/*', which may not have a `*`.",
        ),
        (
            "outbound_exceptions = ['http://h:x/']",
            "`srmp.outbound_exceptions` is 'http://h:x/', which is no URL: its host or its port "
            "is wrong.",
        ),
        (
            "transparent_store_and_forward = 1",
            "`srmp.transparent_store_and_forward` is true or false, not 1.",
        ),
        ("certificate = 'c'", "`srmp.certificate` needs `srmp.key`."),
        ("key = 'k'", "`srmp.key` needs `srmp.certificate`."),
        (
            "receipt_coalescing_milliseconds = '11s'",
            "`srmp.receipt_coalescing_milliseconds` is from 0 to 10000, not 11000.",
        ),
    ],
)
def test_nonsense_in_the_table_of_messages_over_http_is_a_mistake(
    file: Path, text: str, expected: str
) -> None:
    assert mistakes(file, f"[srmp]\n{text}\n") == [f"2: {expected}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[console]\ncertificate = 'c'\n", "`console.certificate` needs `console.key`."),
        ("[console]\nkey = 'k'\n", "`console.key` needs `console.certificate`."),
        (
            f"[otel]\nservice_name = '{'n' * 256}'\n",
            "`otel.service_name` is 'nnn",
        ),
        ('[otel]\nservice_name = "a\\nb"\n', "`otel.service_name` is 'a\\nb', which has "),
    ],
)
def test_nonsense_in_the_tables_of_the_console_and_traces_is_a_mistake(
    file: Path, text: str, expected: str
) -> None:
    (told,) = mistakes(file, text)
    assert told.startswith(f"2: {expected}")


def test_https_without_a_certificate_is_a_mistake(file: Path) -> None:
    told = mistakes(file, "https_port = 443\n")
    assert told == ["1: `https_port` is 443, which needs `srmp.certificate` and `srmp.key`."]


def test_each_mistake_in_a_map_has_its_own_line(file: Path) -> None:
    text = """\
[[srmp.outbound]]
from = "http://good/*"
to = "http://proxy/"
[[srmp.outbound]]
from = "good/*"
to = "http://proxy/"
[[srmp.outbound]]
from = "http://a*b"
[[srmp.inbound]]
form = "http://a/*"
to = "http://b/*"
[[srmp.inbound]]
from = "http://a/q"
to = "http://b/*"
"""
    assert mistakes(file, text) == [
        "5: `srmp.outbound.from` is 'good/*', which is no URL that begins with http:// or "
        "https://.",
        "7: `srmp.outbound` lacks `to`.",
        "8: `srmp.outbound.from` is 'http://a*b', which has a `*` before its end.",
        "10: there is no setting `srmp.inbound.form`; did you mean `srmp.inbound.from`?",
        "9: `srmp.inbound` lacks `from`.",
        "14: `srmp.inbound.to` has a `*`, but its `from` has none.",
    ]


def test_what_an_earlier_map_makes_useless_is_a_mistake(file: Path) -> None:
    one = "[[srmp.inbound]]\nfrom = 'http://A/*'\nto = 'http://b/*'\n"
    told = mistakes(file, one + one.lower())
    assert told == ["5: `srmp.inbound.from` is there twice: 'http://a/*'."]


def test_maps_keep_the_order_of_the_file(file: Path) -> None:
    maps = [("http://b/*", "http://c/*"), ("http://a/q", "http://d/q")]
    lines = [f"[[srmp.inbound]]\nfrom = '{a}'\nto = '{b}'\n" for a, b in maps]
    file.write_text("".join(lines))
    assert list(check(file).srmp.inbound) == maps


@pytest.mark.bound("file.list_items")
def test_a_list_has_a_bound(file: Path) -> None:
    file.write_text(f"[srmp]\nreceipts_to = {['h'] * MAXIMUM_ITEMS}\n")
    assert len(check(file).srmp.receipts_to) == MAXIMUM_ITEMS
    told = mistakes(file, f"[srmp]\nreceipts_to = {['h'] * (MAXIMUM_ITEMS + 1)}\n")
    assert told == [f"2: `srmp.receipts_to` has more than {MAXIMUM_ITEMS} items."]


def test_lists_cannot_be_set_in_the_environment() -> None:
    with pytest.raises(ConfigurationError, match=r"RPCQM_SRMP_INBOUND: .* in a file only"):
        load(environment={"RPCQM_SRMP_INBOUND": "x"})


keys = st.sampled_from(["a", "b", "c", '"quoted key"', "x.y", "x.z"])
values = st.sampled_from(
    ["1", "'text'", '"""\nlines\n# not a comment\n"""', "[\n1,\n# two\n2]", "{ p = 1 }", "true"]
)
filler = st.sampled_from(["", "# comment", "   ", "\t# [table]"])


@given(st.lists(st.tuples(st.lists(filler, max_size=2), keys, values), unique_by=lambda e: e[1]))
def test_each_key_is_found_on_the_line_where_it_begins(
    entries: list[tuple[list[str], str, str]],
) -> None:
    lines: list[str] = []
    expected = {}
    for blank, key, value in entries:
        lines += blank
        path = tuple(part.strip('"') for part in key.split("."))
        expected[path] = len(lines) + 1
        lines += f"{key} = {value}".split("\n")
    found = key_lines("\n".join(lines))
    assert {path: found[path] for path in expected} == expected


def test_tables_and_their_keys_have_their_own_lines() -> None:
    assert key_lines("a = 1\n[t]\n\nb = 2\n[t.u]\nc = 3\n") == {
        ("a",): 1,
        ("t",): 2,
        ("t", "b"): 4,
        ("t", "u"): 5,
        ("t", "u", "c"): 6,
    }


NO_ALIAS = "which is neither HOST nor HOST:PORT."


@pytest.mark.parametrize(
    ("alias", "why"),
    [
        ("http://queues.example.com", NO_ALIAS),
        ("queues.example.com/msmq", NO_ALIAS),
        ("queues.example.com:", NO_ALIAS),
        ("queues.example.com:0", NO_ALIAS),
        ("queues.example.com:65536", NO_ALIAS),
        ("[::2]80", NO_ALIAS),
        ("", NO_ALIAS),
        ("localhost", "which is this computer already."),
        ("127.0.0.5", "which is this computer already."),
        ("::1", "which is this computer already."),
        ("0.0.0.0", "which is no address of one computer."),
        ("239.1.2.3", "which is no address of one computer."),
    ],
)
def test_what_is_no_further_name_of_this_computer_is_a_mistake(
    file: Path, alias: str, why: str
) -> None:
    assert mistakes(file, f"aliases = ['b', '{alias}']\n") == [f"1: `aliases` is '{alias}', {why}"]


@pytest.mark.parametrize("alias", ["b", "B.", "192.0.2.2"])
def test_another_queue_manager_is_no_further_name_of_this_computer(file: Path, alias: str) -> None:
    peers = "[binary]\npeers = 'b=192.0.2.2, c=192.0.2.3:1802'\n"
    (told,) = mistakes(file, f"aliases = ['{alias}']\n{peers}")
    assert told == f"1: `aliases` has '{alias}', which is b by `binary.peers`."
    file.write_text(f"aliases = ['b:8080', '192.0.2.3']\n{peers}")
    assert check(file).aliases == ("b:8080", "192.0.2.3")


@pytest.mark.parametrize("alias", ["other", "other.example.org", "192.0.2.9"])
def test_a_queue_manager_of_the_directory_is_no_further_name_of_this_computer(
    file: Path, tmp_path: Path, alias: str
) -> None:
    directory = tmp_path / "directory.toml"
    directory.write_text(
        "[enterprise]\nname = 'example'\n[[site]]\nname = 'Berlin'\n"
        "[[queue_manager]]\nname = 'here'\nsites = ['Berlin']\naddresses = ['192.0.2.1']\n"
        "identifier = '6b29fc40-ca47-1067-b31d-00dd010662da'\n"
        "[[queue_manager]]\nname = 'other'\nqualified_name = 'other.example.org'\n"
        "sites = ['Berlin']\naddresses = ['192.0.2.9']\n"
        "identifier = '6b29fc40-ca47-1067-b31d-00dd010662db'\n"
    )
    rest = f"name = 'here'\ndirectory_file = '{directory}'\n"
    file.write_text(f"aliases = ['{alias}']\n{rest}")
    with pytest.raises(ConfigurationError) as caught:
        check_file(file)
    (mistake,) = caught.value.mistakes
    assert str(mistake) == f"aliases: '{alias}' is other in {directory}, another queue manager."
    file.write_text(f"aliases = ['192.0.2.1', '{alias}:80']\n{rest}")
    assert check_file(file) is not None
