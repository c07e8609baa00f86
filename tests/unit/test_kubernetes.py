"""packaging/kubernetes says what Kubernetes accepts, and what is true of `rpcqm serve`."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rpcqm.config import Configuration, load
from tests.unit.test_packaging import ROOT

VERSIONS = ("1.28", "1.32")
"""Of Kubernetes: an old one that is still run, and a newer one."""
FILE = ROOT / "packaging/kubernetes/rpcqm.yaml"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(FILE.read_text("utf-8")))


def the(kind: str) -> dict[str, Any]:
    (found,) = [each for each in OBJECTS if each["kind"] == kind]
    return found


POD = the("StatefulSet")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
PORTS = {each["name"]: each["containerPort"] for each in CONTAINER["ports"]}


@pytest.fixture(scope="module")
def image() -> dict[str, str]:
    """The variables of the image."""
    text = (ROOT / "packaging/Containerfile").read_text("utf-8")
    return dict(re.findall(r"\b(RPCQM_\w+)=(\S+)", text.partition("ENV ")[2]))


@pytest.fixture
def configuration(tmp_path: Path, image: dict[str, str]) -> Configuration:
    """What the queue manager in the pod reads."""
    path = tmp_path / "rpcqm.toml"
    path.write_text(the("ConfigMap")["data"]["rpcqm.toml"], "utf-8")
    return load({}, path, image)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("described", OBJECTS, ids=lambda each: each["kind"])
def test_kubernetes_accepts_every_object(described: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(described, version, strict=True)


def test_the_schemas_refuse_what_is_wrong() -> None:
    wrong = the("StatefulSet") | {"spec": {**the("StatefulSet")["spec"], "replicas": "one"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def test_the_pod_listens_where_its_ports_say(configuration: Configuration) -> None:
    assert {name: getattr(configuration, f"{name}_port") for name in PORTS} == PORTS


def test_probes_ask_what_is_served_at_the_pods_address(configuration: Configuration) -> None:
    probes = [CONTAINER[f"{each}Probe"]["httpGet"] for each in ("startup", "readiness", "liveness")]
    assert [each["path"] for each in probes] == ["/readyz", "/readyz", "/healthz"]
    assert {PORTS[each["port"]] for each in probes} == {configuration.console_port}
    assert configuration.console.host == "0.0.0.0"


def test_one_process_has_the_volume_to_itself(configuration: Configuration) -> None:
    spec = the("StatefulSet")["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    assert spec["replicas"] == 1
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert mounts[claim["metadata"]["name"]] == str(configuration.data_dir)
    (run,) = [each["value"] for each in CONTAINER["env"] if each["name"] == "RUNTIME_DIRECTORY"]
    assert mounts["run"] == run
    assert CONTAINER["args"][-1].startswith(mounts["configuration"])


def test_the_pod_has_no_right_that_it_does_not_need() -> None:
    assert POD["securityContext"]["runAsNonRoot"]
    assert not POD["automountServiceAccountToken"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_service_finds_the_pod() -> None:
    spec, pod = the("Service")["spec"], the("StatefulSet")["spec"]
    assert spec["selector"].items() <= pod["template"]["metadata"]["labels"].items()
    assert pod["serviceName"] == the("Service")["metadata"]["name"]
    assert {each["targetPort"] for each in spec["ports"]} <= PORTS.keys()
    # The console is for those who administrate, by `kubectl port-forward`.
    assert "console" not in {each["targetPort"] for each in spec["ports"]}
