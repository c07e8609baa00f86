"""How the Spark source's option `queue` names a queue."""

import pytest

from rpcqm.pipeline.queue_options import QueueOptions


@pytest.mark.parametrize(
    ("server", "queue", "expected"),
    [
        ("", "orders", r"DIRECT=OS:.\private$\orders"),
        ("192.0.2.1:135", "Größe 5", r"DIRECT=TCP:192.0.2.1\private$\Größe 5"),
        ("mail:1135", "größe=5", r"DIRECT=OS:mail\private$\größe=5"),
        ("mail", r"FormatName:DIRECT=OS:b\private$\q", r"DIRECT=OS:b\private$\q"),
        ("mail", "DeadLetter$", r"DIRECT=OS:mail\system$;DEADLETTER"),
    ],
)
def test_the_option_names_a_queue_as_commands_do(server: str, queue: str, expected: str) -> None:
    options = {"queue": queue, "server": server, "socket": "" if server else "s"}
    assert str(QueueOptions.of(options).name) == expected
