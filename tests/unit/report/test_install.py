import subprocess
from typing import Any

import pytest
import yaml

from stoker.errors import Stalled
from stoker.report.definitions import definition_manifests
from stoker.report.install import InstallSettings, Login, install_manifests
from stoker.report.install_key import DeployKey, new_deploy_key, wants_deploy_key

KEY = DeployKey("-----BEGIN OPENSSH PRIVATE KEY-----\n", "ssh-ed25519 AAAA stoker")


def settings(**changes: Any) -> InstallSettings:
    values: dict[str, Any] = {
        "image": "registry.invalid/stoker@sha256:00",
        "repo": "git@forge.invalid:acme/fleet.git",
        "fleet": "clusters/prod-eu/fleet.yaml",
        "fleet_id": "c0ffee01",
        "namespaces": ("llm",),
        **changes,
    }
    return InstallSettings(**values)


def objects(**changes: Any) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(install_manifests(settings(**changes))))


def named(kind: str, **changes: Any) -> dict[str, Any]:
    return next(o for o in objects(**changes) if o["kind"] == kind)


def container(**changes: Any) -> dict[str, Any]:
    spec = named("Deployment", **changes)["spec"]["template"]["spec"]
    found: dict[str, Any] = spec["containers"][0]
    return found


def test_everything_comes_in_an_order_that_can_be_applied():
    kinds = [o["kind"] for o in objects(deploy_key=KEY)]

    assert ["Namespace", *["CustomResourceDefinition"] * 4] == kinds[:5]
    assert ["Secret", "Deployment", "Service"] == kinds[-3:]


def test_two_fleets_in_one_namespace_share_no_name():
    """cases.md row 155: deleting one must leave the other whole."""
    shared = {"Namespace", "CustomResourceDefinition"}

    def names(fleet_id: str) -> set[tuple[str, str, str]]:
        return {
            (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"])
            for o in objects(fleet_id=fleet_id, deploy_key=KEY)
            if o["kind"] not in shared
        }

    assert set() == names("aaaaaaaa") & names("bbbbbbbb")


def test_two_controllers_never_select_each_others_pods():
    one = named("Deployment", fleet_id="aaaaaaaa")["spec"]["selector"]["matchLabels"]
    other = named("Deployment", fleet_id="bbbbbbbb")["spec"]["template"]["metadata"]["labels"]

    assert not one.items() <= other.items()


def test_without_a_fleet_id_names_still_differ_and_the_controller_derives_its_own():
    """An id made up here would not be the one that `stoker diff` on a laptop derives."""
    one = named("Deployment", fleet_id="")
    other = named("Deployment", fleet_id="", fleet="clusters/prod-us/fleet.yaml")

    assert one["metadata"]["name"] != other["metadata"]["name"]
    assert not [a for a in container(fleet_id="")["args"] if a.startswith("--fleet-id")]


def test_the_pod_is_restricted():
    """The restricted Pod Security Standard, which the namespace enforces."""
    pod = named("Deployment")["spec"]["template"]["spec"]
    security = container()["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
    assert not security["allowPrivilegeEscalation"]
    assert security["readOnlyRootFilesystem"]
    assert ["ALL"] == security["capabilities"]["drop"]


def test_writable_folders_are_mounted():
    mounts = {m["mountPath"] for m in container()["volumeMounts"]}

    assert {"/var/lib/stoker", "/tmp"} <= mounts
    assert "--state-folder=/var/lib/stoker/state" in container()["args"]


def test_probes_look_at_health_and_readiness():
    assert "/healthz" == container()["livenessProbe"]["httpGet"]["path"]
    assert "/readyz" == container()["readinessProbe"]["httpGet"]["path"]


def rules(kind: str, name: str, **changes: Any) -> list[dict[str, Any]]:
    found = next(
        o for o in objects(**changes) if o["kind"] == kind and o["metadata"]["name"] == name
    )
    return list(found["rules"])


def test_wide_rights_are_for_reading_and_for_mirrors():
    writes = {"create", "update", "patch", "delete"}
    writable = {
        resource
        for rule in rules("ClusterRole", "stoker-c0ffee01")
        for resource in rule["resources"]
        if writes & set(rule["verbs"]) and "resourceNames" not in rule
    }

    assert {
        "fleets",
        "fleets/status",
        "modelservices",
        "modelservices/status",
        "scalepolicies",
        "scalepolicies/status",
    } == writable


def test_secrets_are_never_readable_cluster_wide():
    read = {r for rule in rules("ClusterRole", "stoker-c0ffee01") for r in rule["resources"]}

    assert {"nodes", "pods", "namespaces", "nodestates", "customresourcedefinitions"} <= read
    assert "secrets" not in read


def test_workloads_are_written_only_in_named_namespaces():
    places = [
        o["metadata"]["namespace"]
        for o in objects(namespaces=("llm", "batch"))
        if o["kind"] == "Role" and o["metadata"]["name"].endswith("-apply")
    ]

    assert ["batch", "llm"] == places


def test_no_namespace_of_workloads_is_printed():
    """`kubectl delete -f` of this output must not delete a single workload."""
    text = install_manifests(settings(namespaces=("llm", "batch", "llm", "stoker-system")))
    spaces = [o["metadata"]["name"] for o in yaml.safe_load_all(text) if o["kind"] == "Namespace"]

    assert ["stoker-system"] == spaces


def test_the_namespaces_of_workloads_are_not_the_controllers_to_make_or_delete():
    """A RoleBinding in a namespace says nothing of the namespace itself, so names are listed."""
    (rule,) = [
        rule
        for rule in rules("ClusterRole", "stoker-c0ffee01", namespaces=("llm", "batch"))
        if "resourceNames" in rule
    ]

    assert ["namespaces"] == rule["resources"]
    assert ["batch", "llm"] == rule["resourceNames"]
    assert {"get", "patch", "update"} == set(rule["verbs"])
    assert [] == [
        r for r in rules("ClusterRole", "stoker-c0ffee01", namespaces=()) if "resourceNames" in r
    ]


def test_every_binding_gives_its_role_to_the_controllers_account():
    account = {"kind": "ServiceAccount", "name": "stoker-c0ffee01", "namespace": "stoker-system"}
    roles = {(o["kind"], o["metadata"]["name"]) for o in objects() if o["kind"].endswith("Role")}
    bindings = [o for o in objects() if o["kind"].endswith("Binding")]

    assert all([account] == binding["subjects"] for binding in bindings)
    assert roles == {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"deploy_key": KEY, "known_hosts": "forge.invalid ssh-ed25519 AAAA\n"},
            [
                "--ssh-key=/etc/stoker/git/ssh-privatekey",
                "--known-hosts=/etc/stoker/git/known_hosts",
            ],
            id="new key",
        ),
        pytest.param(
            {"secret": "mine", "login": Login.HTTPS},
            ["--credentials=/etc/stoker/git/credentials"],
            id="token",
        ),
        pytest.param(
            {"secret": "mine"},
            [
                "--ssh-key=/etc/stoker/git/ssh-privatekey",
                "--known-hosts=/etc/stoker/git/known_hosts",
            ],
            id="own key",
        ),
        pytest.param({}, [], id="open repository"),
    ],
)
def test_the_controller_is_told_how_to_log_in(given, expected):
    git = [a for a in container(**given)["args"] if "/etc/stoker/git/" in a]

    assert expected == git


def test_the_private_key_stands_in_the_secret_and_nowhere_else():
    text = install_manifests(settings(deploy_key=KEY))

    assert KEY.private == named("Secret", deploy_key=KEY)["stringData"]["ssh-privatekey"]
    assert 1 == text.count("BEGIN OPENSSH PRIVATE KEY")
    assert "PRIVATE" not in repr(settings(deploy_key=KEY))


def test_without_a_key_there_is_no_secret():
    assert "Secret" not in [o["kind"] for o in objects()]


@pytest.mark.parametrize(
    ("repo", "expected"),
    [
        ("git@forge.invalid:acme/fleet.git", True),
        ("ssh://git@forge.invalid/acme/fleet.git", True),
        ("https://forge.invalid/acme/fleet.git", False),
        ("http://127.0.0.1:8080/fleet.git", False),
        ("/srv/fleet.git", False),
        ("./a:b", False),
    ],
)
def test_only_ssh_urls_want_a_deploy_key(repo, expected):
    assert expected == wants_deploy_key(repo)


def test_each_deploy_key_is_new():
    one, two = new_deploy_key("stoker-c0ffee01"), new_deploy_key("stoker-c0ffee01")

    assert one.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert one.public.startswith("ssh-ed25519 ")
    assert one.public.endswith(" stoker-c0ffee01")
    assert one.private != two.private
    assert one.private not in repr(one)


def failing(error: Exception):
    def run(*args: Any, **options: Any) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(), "ssh-keygen-missing"),
        (subprocess.CalledProcessError(1, "ssh-keygen"), "ssh-keygen-failed"),
    ],
    ids=["not installed", "failed"],
)
def test_a_machine_that_can_make_no_key_says_so(monkeypatch, error, code):
    monkeypatch.setattr(subprocess, "run", failing(error))

    with pytest.raises(Stalled) as caught:
        new_deploy_key("x")

    assert code == caught.value.code


def test_the_definitions_are_those_of_the_group():
    manifests = definition_manifests()

    assert ["fleets", "modelservices", "nodestates", "scalepolicies"] == [
        m["spec"]["names"]["plural"] for m in manifests
    ]
    assert {"stoker.dev"} == {m["spec"]["group"] for m in manifests}
    assert {"v1alpha1"} == {v["name"] for m in manifests for v in m["spec"]["versions"]}
    assert all(["stoker"] == m["spec"]["names"]["categories"] for m in manifests)


def test_nothing_in_a_node_state_is_required():
    """Several writers send merge patches: a required field would refuse the first of them."""
    state = next(m for m in definition_manifests() if m["metadata"]["name"].startswith("nodestat"))

    assert "required" not in str(state["spec"]["versions"][0]["schema"])


def test_only_named_secrets_beside_the_controller_can_be_read():
    """The deploy key is one of its neighbours."""

    def secret_rules(**changes: Any) -> list[dict[str, Any]]:
        roles = [o for o in objects(**changes) if o["kind"] == "Role"]
        state = next(o for o in roles if o["metadata"]["name"].endswith("-state"))
        return [rule for rule in state["rules"] if "secrets" in rule["resources"]]

    assert secret_rules() == []
    assert [["b-token", "prom"]] == [
        rule["resourceNames"] for rule in secret_rules(header_secrets=("prom", "b-token"))
    ]
