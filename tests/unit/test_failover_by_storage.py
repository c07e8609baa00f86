"""packaging/kubernetes-failover and systemd-failover are what docs/failover.md says of them."""

import copy
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rpcqm.cli.unit import SETTINGS, unit
from tests.unit.test_kubernetes import OBJECTS, VERSIONS, the
from tests.unit.test_packaging import ROOT

OVERLAY = ROOT / "packaging/kubernetes-failover/kustomization.yaml"
SYSTEMD = ROOT / "packaging/systemd-failover"
MOUNT = "var-lib-rpcqm.mount"


def kustomization(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return read


def patched() -> dict[str, Any]:
    """The stateful set as `kubectl kustomize` makes it."""
    (patch,) = kustomization(OVERLAY)["patches"]
    assert patch["target"] == {
        "kind": "StatefulSet",
        "name": the("StatefulSet")["metadata"]["name"],
    }
    changed = copy.deepcopy(the("StatefulSet"))
    for operation in yaml.safe_load(patch["patch"]):
        *way, last = operation["path"].removeprefix("/").split("/")
        place: Any = changed
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
        assert (operation["op"] == "replace") == (last in place)
        place[last] = operation["value"]
    return changed


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_the_stateful_set_with_its_patch(version: str) -> None:
    kubernetes_validate.validate(patched(), version, strict=True)


def test_one_pod_of_the_cluster_has_the_replicated_volume() -> None:
    spec = patched()["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert spec["replicas"] == 1
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert claim["spec"]["storageClassName"]
    (plain,) = the("StatefulSet")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"] == plain["spec"]["resources"]


def test_a_node_that_does_not_answer_is_given_up_soon() -> None:
    tolerations = patched()["spec"]["template"]["spec"]["tolerations"]
    keys = {"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"}
    assert {each["key"] for each in tolerations} == keys
    assert {each["tolerationSeconds"] for each in tolerations} == {30}


def test_the_patch_builds_on_the_objects_without_it() -> None:
    (base,) = kustomization(OVERLAY)["resources"]
    place = (OVERLAY.parent / base).resolve()
    files = kustomization(place / "kustomization.yaml")["resources"]
    assert [each for name in files for each in yaml.safe_load_all((place / name).read_text())] == (
        OBJECTS
    )


def read_unit(path: Path) -> ConfigParser:
    parsed = ConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(path)
    return parsed


def test_the_service_does_not_start_without_its_mount() -> None:
    mount = read_unit(SYSTEMD / MOUNT)["Mount"]
    added = read_unit(SYSTEMD / "rpcqm.service.d/failover.conf")
    assert added["Unit"]["BindsTo"] == added["Unit"]["After"] == MOUNT
    assert added["Unit"]["AssertPathIsMountPoint"] == mount["Where"]
    assert mount["Where"].strip("/").replace("/", "-") + ".mount" == MOUNT
    assert tomllib.loads(SETTINGS)["data_dir"] == mount["Where"]
    assert f"StateDirectory={Path(mount['Where']).name}" in unit(Path("/usr/bin/env"))


def test_one_program_decides_where_the_service_starts() -> None:
    """systemd on a machine that is fenced off would start it again without end."""
    added = read_unit(SYSTEMD / "rpcqm.service.d/failover.conf")
    assert added["Service"]["Restart"] == "no"
    assert "Install" not in read_unit(SYSTEMD / MOUNT)
    (promoter,) = tomllib.loads((SYSTEMD / "drbd-reactor.toml").read_text())["promoter"]
    (resource,) = promoter["resources"].values()
    assert resource["start"][:2] == [MOUNT, "rpcqm.service"]
    assert resource["on-drbd-demote-failure"] == "reboot"


def test_the_device_fences_and_keeps_what_is_synced_on_both_disks() -> None:
    text = re.sub(r"#.*", "", (SYSTEMD / "drbd.res").read_text())
    said = dict(re.findall(r"([\w-]+) ([\w-]+);", text))
    assert said["protocol"] == "C"
    assert said["quorum"] == "majority"
    assert said["on-no-quorum"] == "io-error"
    disks = re.findall(r"\bdisk (/\S+|none);", text)
    assert len(disks) == 3
    assert disks.count("none") == 1
    name = re.findall(r"resource (\w+)", text)
    assert f"/by-res/{name[0]}/" in read_unit(SYSTEMD / MOUNT)["Mount"]["What"]
