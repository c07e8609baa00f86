"""The static directory's file: what it says, and what is said of its mistakes."""

import hashlib
import os
from pathlib import Path

import pytest

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.adm.enums import QueueType
from rpcqm.config import ConfigurationError
from rpcqm.config.checking import check_file
from rpcqm.config.directory import DirectoryFile, load_directory
from rpcqm.config.directory_schema import TABLES
from tests.support.qm.directories import (
    DIRECTORY,
    LIST,
    OWN_QUEUE,
    ROUTER,
    SERVER,
    THEIR_QUEUE,
    WORKSTATION,
    write_directory,
)


@pytest.mark.conformance(
    "MQDMPR-element-Enterprise",
    "MQDMPR-element-Site",
    "MQDMPR-element-RoutingLink",
    "MQDMPR-element-User",
)
def test_every_element_of_a_directory_can_be_said(tmp_path: Path) -> None:
    contents = load_directory(write_directory(tmp_path))
    assert contents.enterprise is not None
    assert (contents.enterprise.name, contents.enterprise.default_time_to_live) == ("example", 3600)
    berlin, paris = contents.sites
    assert [gate.identifier for gate in berlin.site_gate_collection] == [ROUTER]
    (link,) = contents.routing_links
    assert (link.site1_reference, link.site2_reference, link.actual_cost) == (berlin, paris, 10)
    assert (link.site1_identifier, link.site_gate_identifier_list) == (berlin.identifier, [ROUTER])
    own, router, server = contents.queue_managers
    assert (own.identifier, own.queue_manager_quota) == (WORKSTATION, 4096)
    assert own.out_routing_server_identifier_list == [ROUTER]
    assert server.in_routing_server_identifier_list == [ROUTER]
    assert (router.routing_server, router.addresses) == (True, ["192.0.2.20"])
    assert router.site_identifier_list == [berlin.identifier, paris.identifier]
    (user,) = contents.users
    assert (
        user.security_identifier.hex() == "010500000000000515000000010000000200000003000000e9030000"
    )
    digest = hashlib.md5(b"0\x82\x01", usedforsecurity=False).digest()
    assert user.certificate_digest_list == [digest]
    assert user.certificates[:20] == b"\1\0\0\0" + digest
    assert user.certificates[36:] == b"\3\0\0\0" + b"0\x82\x01"


def test_queues_and_lists_are_named_by_their_identifiers(tmp_path: Path) -> None:
    contents = load_directory(write_directory(tmp_path))
    own, theirs = contents.queues
    assert (own.identifier, own.pathname, own.label) == (
        OWN_QUEUE,
        "WORKSTATION\\reports",
        "Reports",
    )
    assert (theirs.identifier, theirs.transactional) == (THEIR_QUEUE, True)
    assert theirs.qualified_pathname == "server.example.org\\orders"
    assert theirs.queue_manager is not None
    assert theirs.queue_manager.identifier == SERVER
    assert own.queue_type is QueueType.PUBLIC
    assert contents.distribution_lists[0].identifier == LIST
    (alias,) = contents.queue_aliases
    assert (alias.name, alias.format_name) == ("shop", r"DIRECT=OS:other\private$\a")
    assert (alias.full_path, alias.directory_path) == ("CN=shop", "")


def test_identifiers_that_are_not_given_follow_from_names(tmp_path: Path) -> None:
    first = load_directory(write_directory(tmp_path))
    again = load_directory(write_directory(tmp_path, DIRECTORY.replace('"Berlin"', '"BERLIN"')))
    for one, other in zip(first.sites, again.sites, strict=True):
        assert one.identifier == other.identifier
    assert first.sites[0].identifier != first.sites[1].identifier


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            '[[site]]\nname = "a"\n\n[[site]]\nname = "b"\ngate = ["x"]\n',
            "6: there is no setting `site.gate`; did you mean `site.gates`?",
        ),
        ('[[sites]]\nname = "a"\n', "1: there is no table `sites`; did you mean `site`?"),
        ('[site]\nname = "a"\n', "1: `site` is a table; write [[site]]."),
        ("site = 3\n", "1: `site` is a table; write [[site]]."),
        ("[[site]]\nname = 3\n", "2: `site.name` is a text, not 3."),
        ("[[site]]\ngates = []\n", "1: `site` lacks `name`, a text."),
        (
            '[[site]]\nname = "a"\n[[site]]\nname = "A"\n',
            "4: `site.name` is there twice: 'A'.",
        ),
        (
            '[[site]]\nname = "a"\ngates = ["nobody"]\n',
            "3: `site.gates` names queue manager 'nobody', which is not in this file.",
        ),
        (
            '[[routing_link]]\nsites = ["a"]\ncost = 1\n',
            "2: `routing_link.sites` is a list of two names of sites, not a list.",
        ),
        (
            '[[site]]\nname="a"\n[[site]]\nname="b"\n[[routing_link]]\nsites=["a","b"]\ncost=0\n',
            "7: `routing_link.cost` is a cost from 1 to 999999, not 0.",
        ),
        (
            '[[queue_manager]]\nname = "x"\nidentifier = "y"\n',
            "3: `queue_manager.identifier` is a GUID like 6b29fc40-ca47-1067-b31d-00dd010662da, "
            "not 'y'.",
        ),
        (
            f"[[queue]]\npath = 'x\\private$\\q'\nidentifier = \"{LIST}\"\n",
            "2: `queue.path` is the path name of a public queue, COMPUTER\\NAME, "
            "no $ at its end, not 'x\\\\private$\\\\q'.",
        ),
        (
            f"[[queue]]\npath = 'x\\q'\nidentifier = \"{LIST}\"\n",
            "2: `queue.path` names queue manager 'x', which is not in this file.",
        ),
        (
            '[[user]]\nname = "a"\nsid = "alice"\n',
            "3: `user.sid` is a security identifier like S-1-5-21-1-2-3-1001, not 'alice'.",
        ),
        (
            f'[[distribution_list]]\nname = "a"\nidentifier = "{LIST}"\n'
            f"members = ['DL={OWN_QUEUE}']\n",
            f"4: `distribution_list.members` names DL={OWN_QUEUE}, which is not in this file.",
        ),
        (
            f'[[queue_alias]]\nname = "a"\nformat_name = "DL={LIST}"\n',
            "3: `queue_alias.format_name` is the name of a queue, DIRECT=…, PUBLIC=… or PRIVATE=…, "
            f"not 'DL={LIST}'.",
        ),
        (
            f"[[queue]]\npath = 'x\\q'\nidentifier = \"{LIST}\"\nprivacy = []\n"
            f'[[queue_manager]]\nname = "x"\nidentifier = "{ROUTER}"\n',
            "4: `queue.privacy` is one of none, optional, body, not a list.",
        ),
        ("[[site]\n", "1: Expected ']]' at the end of an array declaration."),
    ],
)
def test_every_mistake_is_one_sentence_with_its_line(
    tmp_path: Path, text: str, mistake: str
) -> None:
    path = write_directory(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_directory(path)
    assert str(caught.value) == f"{path}:{mistake}"


MACHINE = f'[[queue_manager]]\nname = "x"\nidentifier = "{ROUTER}"\n'


def test_names_of_every_alphabet_and_the_prefix_of_system_messaging_are_understood(
    tmp_path: Path,
) -> None:
    text = (
        f"{MACHINE}[[queue]]\npath = 'x\\Größe 5'\nidentifier = \"{OWN_QUEUE}\"\n"
        f'[[distribution_list]]\nname = "a"\nidentifier = "{LIST}"\n'
        f"members = ['FormatName:DIRECT=OS:y\\Größe', 'formatname:PUBLIC={OWN_QUEUE}']\n"
    )
    contents = load_directory(write_directory(tmp_path, text))
    assert [queue.pathname for queue in contents.queues] == [r"x\Größe 5"]
    (members,) = (each.format_names for each in contents.distribution_lists)
    assert members == [r"DIRECT=OS:y\Größe", f"PUBLIC={OWN_QUEUE}"]


def test_public_queues_whose_names_differ_in_case_only_are_a_mistake(tmp_path: Path) -> None:
    text = MACHINE + "".join(
        f"[[queue]]\npath = 'x\\{name}'\nidentifier = \"{identifier}\"\n"
        for name, identifier in (("Größe", OWN_QUEUE), ("GRÖßE", THEIR_QUEUE))
    )
    with pytest.raises(ConfigurationError, match="path"):
        load_directory(write_directory(tmp_path, text))


def test_all_mistakes_are_told(tmp_path: Path) -> None:
    path = write_directory(tmp_path, '[[site]]\nname = 3\n\n[[user]]\nname = "a"\n')
    with pytest.raises(ConfigurationError) as caught:
        load_directory(path)
    assert len(caught.value.mistakes) == 2


def test_the_check_takes_directories_and_configurations_with_one(tmp_path: Path) -> None:
    directory = write_directory(tmp_path)
    check_file(directory)
    configuration = tmp_path / "rpcqm.toml"
    configuration.write_text(f"directory_file = '{directory}'\n")
    check_file(configuration)
    directory.write_text("[[site]]\n")
    for path in (directory, configuration):
        with pytest.raises(ConfigurationError, match="`site` lacks `name`, a text"):
            check_file(path)


def test_a_changed_file_is_read_again_and_a_wrong_one_is_not_taken(tmp_path: Path) -> None:
    path = write_directory(tmp_path)
    source = DirectoryFile(path)
    assert len(source().sites) == 2
    assert source() is source()
    path.write_text('[[site]]\nname = "Rome"\n')
    assert [site.name for site in source().sites] == ["Rome"]
    path.write_text("[[site]]\n")
    assert [site.name for site in source().sites] == ["Rome"]
    path.rename(tmp_path / "away")
    with pytest.raises(DirectoryUnavailableError, match="No such file"):
        source()
    os.rename(tmp_path / "away", path)
    assert [site.name for site in source().sites] == ["Rome"]


def test_a_file_with_mistakes_is_no_directory_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        DirectoryFile(write_directory(tmp_path, "[[site]]\n"))
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        DirectoryFile(tmp_path / "none")


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "directory.md").read_text("utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    contents = load_directory(write_directory(tmp_path, example))
    assert [queue.pathname for queue in contents.queues] == ["ROUTER1\\orders"]


def test_the_documentation_has_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "directory.md").read_text("utf-8")
    for table, entries in TABLES.items():
        header = "[enterprise]" if table == "enterprise" else f"[[{table}]]"
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{header}`")]
        assert [key for key in entries if f"`{key}`" not in row] == []
