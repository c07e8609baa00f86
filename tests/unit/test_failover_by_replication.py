"""packaging/kubernetes-replica and systemd-replica are what docs/failover.md says of them."""

import os
import re
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rpcqm.config import Configuration, load
from rpcqm.config.replica_files import read_access
from tests.support.certificates import write_tls_files
from tests.support.replica.nats_servers import SERVER
from tests.unit.test_kubernetes import VERSIONS
from tests.unit.test_packaging import ROOT

KUBERNETES = ROOT / "packaging/kubernetes-replica"
SYSTEMD = ROOT / "packaging/systemd-replica"
FILES: dict[str, Any] = {
    path.name: list(yaml.safe_load_all(path.read_text("utf-8"))) for path in KUBERNETES.iterdir()
}
OBJECTS: list[dict[str, Any]] = [*FILES["nats.yaml"], *FILES["rpcqm.yaml"]]
ACCOUNT = 'user = "rpcqm"\npassword = "secret"\n'


def the(kind: str, name: str) -> dict[str, Any]:
    (found,) = [e for e in OBJECTS if (e["kind"], e["metadata"]["name"]) == (kind, name)]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = the("StatefulSet", name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def loaded(text: str, tmp_path: Path) -> Configuration:
    """What a node reads, with files that are there in the place of the operator's."""
    account, own = tmp_path / "account.toml", tmp_path / "rpcqm.toml"
    certificate, _ = write_tls_files(tmp_path)
    account.write_text(ACCOUNT)
    account.chmod(0o600)
    text = re.sub(r'(?m)^credentials_file = ".*"', f'credentials_file = "{account}"', text)
    text = re.sub(r'(?m)^ca_file = ".*"', f'ca_file = "{certificate}"', text)
    own.write_text(re.sub(r"/etc/rpcqm/(take|leave)-address", f"{SYSTEMD}/\\1-address", text))
    return load({}, own, {})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "described", OBJECTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}"
)
def test_kubernetes_accepts_every_object(described: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(described, version, strict=True)


def test_all_files_are_applied_together() -> None:
    (kustomization,) = FILES["kustomization.yaml"]
    assert set(kustomization["resources"]) == FILES.keys() - {"kustomization.yaml"}


def test_a_standby_is_waited_for_by_nobody() -> None:
    spec = the("StatefulSet", "rpcqm")["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    probes = container("rpcqm")
    asked = {each: probes[f"{each}Probe"]["httpGet"]["path"] for each in ("startup", "liveness")}
    assert set(asked.values()) == {"/healthz"}
    assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_service_leads_to_the_ready_node_alone() -> None:
    service = the("Service", "rpcqm")["spec"]
    assert "publishNotReadyAddresses" not in service
    assert service.get("clusterIP") != "None"
    labels = the("StatefulSet", "rpcqm")["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    ports = {each["name"] for each in container("rpcqm")["ports"]}
    assert {each["targetPort"] for each in service["ports"]} == ports - {"console"}


@pytest.mark.parametrize(("name", "replicas"), [("rpcqm", 2), ("nats", 3)])
def test_no_two_of_a_kind_are_on_one_machine(name: str, replicas: int) -> None:
    spec = the("StatefulSet", name)["spec"]
    assert spec["replicas"] == replicas
    affinity = spec["template"]["spec"]["affinity"]["podAntiAffinity"]
    (rule,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]


@pytest.mark.parametrize("name", ["rpcqm", "nats"])
def test_the_pods_have_no_right_that_they_do_not_need(name: str) -> None:
    pod = the("StatefulSet", name)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    for each in (*pod.get("initContainers", ()), *pod["containers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_nodes_of_the_pods_find_the_log(tmp_path: Path) -> None:
    text = the("ConfigMap", "rpcqm")["data"]["rpcqm.toml"]
    configuration = loaded(text, tmp_path)
    assert configuration.name == the("Service", "rpcqm")["metadata"]["name"]
    assert configuration.console.host == "0.0.0.0"
    service = the("Service", "nats")["metadata"]["name"]
    namespace = FILES["kustomization.yaml"][0]["namespace"]
    hosts = [f"nats-{number}.{service}.{namespace}.svc.cluster.local" for number in range(3)]
    assert configuration.replica.log == tuple(f"tls://{host}:4222" for host in hosts)
    assert read_access(configuration.replica).user == "rpcqm"


def test_the_account_that_a_node_reads_is_its_own_alone() -> None:
    """Kubernetes lets a group read the files of a Secret, which rpcqm refuses."""
    pod = the("StatefulSet", "rpcqm")["spec"]["template"]["spec"]
    (copies,) = pod["initContainers"]
    assert "--mode=0600" in copies["command"]
    text = the("ConfigMap", "rpcqm")["data"]["rpcqm.toml"]
    said = tomllib.loads(text)["replica"]
    place = said["credentials_file"].rpartition("/")[0]
    mounts = {each["mountPath"]: each["name"] for each in container("rpcqm")["volumeMounts"]}
    (volume,) = [each for each in pod["volumes"] if each["name"] == mounts[place]]
    assert volume["emptyDir"]["medium"] == "Memory"
    assert f"--target-directory={place}" in copies["command"]


def test_both_machines_read_one_configuration(tmp_path: Path) -> None:
    configuration = loaded((SYSTEMD / "rpcqm.toml").read_text(), tmp_path)
    assert configuration.name == "mailhost"
    assert len(configuration.replica.log) == 3
    assert read_access(configuration.replica).context is not None
    for script in (configuration.replica.on_promote, configuration.replica.on_demote):
        assert os.access(script[0], os.X_OK)
        subprocess.run(["sh", "-n", script[0]], check=True, timeout=30)


@pytest.mark.parametrize("place", ["kubernetes", "systemd", "try"])
def test_the_servers_of_the_log_accept_their_configuration(place: str, tmp_path: Path) -> None:
    """The real server reads it, and each of them syncs what it has before it answers."""
    assert SERVER is not None
    text = {
        "kubernetes": the("ConfigMap", "nats")["data"]["nats.conf"],
        "systemd": (SYSTEMD / "nats.conf").read_text("utf-8"),
        "try": (SYSTEMD / "try.conf").read_text("utf-8"),
    }[place]
    assert re.search(r"(?m)^\s*sync_interval: always$", text)
    certificate, key = write_tls_files(tmp_path)
    text = re.sub(r"/etc/nats/[a-z/]+\.key", str(key), text)
    text = re.sub(r"/etc/nats/[a-z/]+\.crt", str(certificate), text)
    text = re.sub(r'store_dir: "[^"]*"', f'store_dir: "{tmp_path / "log"}"', text)
    accounts = tmp_path / "accounts"
    accounts.mkdir()
    account = (SYSTEMD / "nats.conf").read_text("utf-8").partition("accounts {")[2]
    (accounts / "accounts.conf").write_text("accounts {" + account)
    (tmp_path / "nats.conf").write_text(text)
    done = subprocess.run(
        [SERVER, "--config", str(tmp_path / "nats.conf"), "-t"],
        env={**os.environ, "POD_NAME": "nats-0", "RPCQM_LOG_PASSWORD": "secret"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr


def test_the_servers_service_starts_what_the_page_says() -> None:
    parsed = ConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(SYSTEMD / "nats.service")
    assert parsed["Service"]["ExecStart"].endswith("--config /etc/nats/nats.conf")
    assert 'store_dir: "/var/lib/nats"' in (SYSTEMD / "nats.conf").read_text()
    assert parsed["Service"]["StateDirectory"] == "nats"


def test_each_promise_names_a_test_that_is_there() -> None:
    page = (ROOT / "docs/failover.md").read_text("utf-8")
    table = page.partition("### What is promised")[2].partition("*Acknowledged*")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 4
    assert all("`test_" in cell or "as with two" in cell for row in rows for cell in row)
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", table):
        assert f"def {name}(" in tests
