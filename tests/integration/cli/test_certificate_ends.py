"""Who looks after a queue manager is told before its certificates end (G659)."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.certificates import write_tls_files

END = datetime.now(UTC).replace(microsecond=0) + timedelta(days=10)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


def configured(directory: Path) -> str:
    return (
        f'[console]\ncertificate = "{directory}/tls.pem"\nkey = "{directory}/tls.key"\n'
        f'[binary]\nsigning_certificate = "{directory}/signs.pem"\n'
        f'signing_key = "{directory}/signs.key"\n[storage]\nreserve = 1\n'
    )


@pytest.fixture(scope="module")
def machine(directory: Path) -> Iterator[PrivateQueueManager]:
    write_tls_files(directory, end=END)
    text = configured(directory).partition("[binary]")[0]
    with private_queue_manager(("--console-port", "0"), text) as machine:
        yield machine


def attention(machine: PrivateQueueManager) -> dict[str, str]:
    told = json.loads(machine.run("status", "--overview", "--json").stdout)
    return {each["code"]: each["text"] for each in told["attention"]}


def test_a_certificate_that_ends_soon_is_told_until_it_is_renewed(
    machine: PrivateQueueManager, directory: Path
) -> None:
    day = END.date().isoformat()
    text = f"The certificate of console.certificate is valid until {day} only."
    assert attention(machine)["certificate_expires"] == text
    doctor = str(machine.run("doctor", check=False).stdout)
    assert text in re.sub(r"\s+", " ", doctor)
    past = datetime.now(UTC) - timedelta(days=3)
    write_tls_files(directory, end=past)
    machine.reload(configured(directory).partition("[binary]")[0])
    assert "others refuse it" in attention(machine)["certificate_expired"]
    write_tls_files(directory)
    machine.reload(configured(directory).partition("[binary]")[0])
    assert not [code for code in attention(machine) if code.startswith("certificate")]
