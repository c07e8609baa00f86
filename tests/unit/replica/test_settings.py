"""What may be shown of the settings of a log."""

from rpcqm.replica.nats import NatsSettings
from rpcqm.replica.postgresql import PostgresqlSettings


def test_no_password_of_an_address_is_shown() -> None:
    for settings in (
        NatsSettings(("nats://rpcqm:secret@log",), "orders", options=(("password", "secret"),)),
        PostgresqlSettings("postgresql://rpcqm:secret@log/orders", "orders"),
    ):
        assert "secret" not in repr(settings)
        assert "orders" in repr(settings)
