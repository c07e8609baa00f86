"""The network namespace that peers run in."""

from tests.support.network.namespace import Namespace

LISTEN_ON_135 = (
    "python3",
    "-c",
    "import socket; s = socket.create_server(('127.0.0.1', 135)); "
    "socket.create_connection(('127.0.0.1', 135)); print('heard')",
)


def test_port_135_is_free_in_each_namespace(namespace: Namespace) -> None:
    with Namespace() as other:
        assert other.run(LISTEN_ON_135).stdout == "heard\n"
        assert namespace.run(LISTEN_ON_135).stdout == "heard\n"


def test_only_loopback_is_there(namespace: Namespace) -> None:
    links = namespace.run(["ip", "-brief", "link"]).stdout.splitlines()
    assert [line.split()[0] for line in links] == ["lo"]
