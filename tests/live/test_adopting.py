"""The paths of docs/adopting.md, walked on a real API server with simulated nodes.

Before and after: the same pods, none restarted, the count kept; then a change in Git goes
through, and so does a field that leaves Git. kubectl and Helm are the real programs; Flux
and Argo CD are their objects, and applies under their managers' names.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from definitions import a_definition
from live.running import until
from stoker.cli.app import run
from stoker.cli.world import World, WorldNode
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.sim.controlplane import ControlPlane
from stories.crash.life import AT_ONCE
from stories.files import a_fleet
from unit.objects.test_carried import BODIES

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
NODES = tuple(WorldNode(f"gpu-{number}") for number in range(1, 4))


def a_tool(name: str) -> str:
    """A program of `make setup`, else of this machine; the test is skipped without."""
    lock = hashlib.sha256((ROOT / "requirements" / "tools.lock").read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    unpacked = cache / "stoker" / "tools" / lock / name
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: make setup unpacks it")
    return found


class Town:
    """A cluster in which workloads run, a fleet in mode Correct, and who works with them."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.plane = plane
        self.world = World(folder, NODES, times=AT_ONCE, plane=plane)
        self.cluster = self.world.cluster
        self._folder = folder
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        self._kubelet = threading.Thread(target=self.world.kubelet.run, args=(self._stop,))
        self._kubelet.start()
        fleet = a_fleet(include=["/bundles/**/bundle.yaml"], prune={"mode": "Never"})
        self.world.commit("Fleet", {"clusters/local/fleet.yaml": fleet})

    def close(self) -> None:
        self._stop.set()
        self._kubelet.join(30)
        self.world.close()

    def space(self, name: str = "") -> str:
        """A namespace of one test."""
        name = name or f"adopt-{next(self._numbers)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.cluster.apply(body, manager="setup")
        return name

    def tool(self, name: str, *arguments: str, given: str = "") -> str:
        """Run kubectl or helm against the cluster, as a person does."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "KUBECONFIG": str(self.plane.kubeconfig_path),
        }
        done = subprocess.run(
            [a_tool(name), *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def import_(self, capsys: Any, space: str, *sources: str, more: tuple[str, ...] = ()) -> str:
        """`stoker import … --to` a folder of its own; gives what it said."""
        capsys.readouterr()
        folder = self.world.work_tree / "bundles" / (space or sources[0].replace("/", "-"))
        arguments = ["import", *sources, *more, "--to", str(folder)]
        arguments += ["--kubeconfig", str(self.plane.kubeconfig_path)]
        code = run([*arguments, *(("-n", space) if space else ())])
        said = capsys.readouterr().err
        assert code == 0, said
        return str(said)

    def folder(self, space: str) -> str:
        """The folder that holds the Bundle of a namespace."""
        for bundle in sorted(self.world.work_tree.glob("bundles/**/bundle.yaml")):
            if yaml.safe_load(bundle.read_text())["metadata"]["namespace"] == space:
                return str(bundle.parent.relative_to(self.world.work_tree))
        raise AssertionError(space)

    def diff(self, capsys: Any) -> str:
        """What `stoker diff` prints of the files as they stand."""
        capsys.readouterr()
        path = str(self.world.work_tree)
        run(["diff", "-f", path, "--kubeconfig", str(self.plane.kubeconfig_path)])
        return str(capsys.readouterr().out)

    def merge(self, message: str) -> set[str]:
        """Commit what stands in the work tree, and two passes.

        Gives what the second still finds to do: `unchanged` and nothing else at rest.
        """
        self.world.commit_all(message)
        for _ in range(2):
            done = self.world.one_pass()
            assert done is not None
            assert done.failure is None
        assert done is not None
        assert done.changes is not None
        return {str(change.action) for unit in done.changes.units for change in unit.changes}

    def edit(self, path: str, change: Any) -> None:
        """Change one imported manifest."""
        target = self.world.work_tree / path
        manifest = yaml.safe_load(target.read_text())
        change(manifest)
        target.write_text(yaml.safe_dump(manifest, sort_keys=False))

    def pods(self, space: str) -> dict[str, tuple[str, int]]:
        """UID and restarts of each pod."""
        return {
            str(pod["metadata"]["name"]): (
                str(pod["metadata"]["uid"]),
                sum(c["restartCount"] for c in pod["status"].get("containerStatuses") or ()),
            )
            for pod in self.world.objects("", "Pod", space)
        }

    def ready(self, space: str, count: int) -> dict[str, tuple[str, int]]:
        """Wait until so many pods are Ready; gives `pods`."""
        until(lambda: len(self.world.ready_pods(space)) == count)
        return self.pods(space)

    def deployment(self, space: str, name: str = "embed-e5") -> dict[str, Any]:
        return self.cluster.get(ObjectRef("apps", "Deployment", space, name))

    def managers(self, space: str, name: str = "embed-e5") -> set[str]:
        """Who owns fields of the Deployment itself."""
        entries = self.deployment(space, name)["metadata"]["managedFields"]
        return {entry["manager"] for entry in entries if not entry.get("subresource")}


@pytest.fixture(scope="module")
def town(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Town]:
    made = Town(tmp_path_factory.mktemp("town"), own_control_plane)
    try:
        yield made
    finally:
        made.close()


def a_deployment(space: str, name: str = "embed-e5", replicas: int = 2) -> dict[str, Any]:
    """With an env variable that is to leave Git later."""
    labels = {"app": name}
    env = [{"name": "OLD", "value": "1"}, {"name": "LEVEL", "value": "info"}]
    container = {
        "name": "engine",
        "image": "registry.example/app:1",
        "env": env,
        "ports": [{"containerPort": 8000}],
        "resources": {"requests": {"cpu": "100m"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "labels": {"team": "search"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def a_service(space: str, name: str = "embed-e5") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}]},
    }


def without_old(manifest: dict[str, Any]) -> None:
    """A label changes, and an env variable leaves Git."""
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["env"] = [item for item in container["env"] if item["name"] != "OLD"]
    manifest["metadata"]["labels"] = {"owner": "ml"}


def check_adopted(town: Town, space: str, before: dict[str, tuple[str, int]], path: str) -> None:
    """The same pods, nobody else left to answer; then a change in Git goes through."""
    stands = town.deployment(space)
    assert town.pods(space) == before
    assert stands["metadata"]["annotations"]["stoker.dev/owner"].endswith("/embed-e5")
    ours = {name for name in town.managers(space) if name.startswith("stoker-")}
    assert town.managers(space) - {"kube-controller-manager"} == ours

    town.edit(path, without_old)
    assert town.merge("A change") == {"unchanged"}

    changed = town.deployment(space)
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in container["env"]] == ["LEVEL"]
    assert changed["metadata"]["labels"] == {"owner": "ml"}
    assert changed["spec"]["replicas"] == stands["spec"]["replicas"]


def test_from_kubectl(town, capsys):
    """Client-side apply, and a count that somebody scaled since."""
    space = town.space()
    bodies = [a_deployment(space), a_service(space)]
    town.tool("kubectl", "apply", "-f", "-", given=yaml.safe_dump_all(bodies))
    before = town.ready(space, 2)

    said = town.import_(capsys, space, "deployment/embed-e5", "service/embed-e5")
    assert "1 service, 2 objects to adopt, 0 restarts, 0 deletes" in said
    assert "0 to delete" in town.diff(capsys)
    assert town.merge("Adopt") == {"unchanged"}

    check_adopted(town, space, before, f"{town.folder(space)}/deployment-embed-e5.yaml")


CHART = """\
apiVersion: v2
name: embed
version: 1.0.0
"""


def test_from_helm(town, capsys, tmp_path):
    """The chart's release becomes files; its Secrets stay with Helm until they are deleted."""
    space = town.space()
    chart = tmp_path / "embed"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(CHART)
    for body in (a_deployment(space), a_service(space)):
        del body["metadata"]["namespace"]
        text = yaml.safe_dump(body).replace(
            "image: registry.example/app:1", "image: {{ .Values.i }}"
        )
        (chart / "templates" / f"{body['kind'].lower()}.yaml").write_text(text)
    (chart / "values.yaml").write_text("i: registry.example/app:1\n")
    token = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {t: abc}\n"
    (chart / "templates" / "secret.yaml").write_text(token)
    town.tool("helm", "install", "embed", str(chart), "-n", space)
    before = town.ready(space, 2)

    said = town.import_(capsys, space, "helm/embed")
    assert "1 service, 2 objects to adopt, 0 restarts, 0 deletes" in said
    assert f"Secret {space}/token (keep it out of Git" in said
    assert "helm release secrets (1)" in said
    assert town.merge("Adopt") == {"unchanged"}

    check_adopted(town, space, before, f"{town.folder(space)}/deployment-embed-e5.yaml")
    assert town.cluster.get(ObjectRef("", "Secret", space, "token"))["data"]


def an_autoscaler(space: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "embed-e5"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "embed-e5", "namespace": space},
        "spec": {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": target},
    }


def test_from_a_horizontal_pod_autoscaler(town, capsys):
    """The count that the autoscaler made is kept, now and after changes in Git."""
    space = town.space()
    bodies = [a_deployment(space), an_autoscaler(space)]
    town.tool("kubectl", "apply", "-f", "-", given=yaml.safe_dump_all(bodies))
    before = town.ready(space, 3)

    said = town.import_(capsys, space, "deployment/embed-e5", "hpa/embed-e5")
    assert "embed-e5 count stays with HorizontalPodAutoscaler/embed-e5" in said
    assert town.merge("Adopt") == {"unchanged"}

    check_adopted(town, space, before, f"{town.folder(space)}/deployment-embed-e5.yaml")
    assert town.deployment(space)["spec"]["replicas"] == 3


def test_from_keda(town, capsys):
    """KEDA keeps its ScaledObject, and with it the count; its own HPA is not carried."""
    space = town.space()
    define(town, "keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
    town.tool("kubectl", "apply", "-f", "-", given=yaml.safe_dump(a_deployment(space)))
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "embed-e5", "namespace": space},
        "spec": {"scaleTargetRef": {"name": "embed-e5"}, "minReplicaCount": 3, "triggers": []},
    }
    town.tool("kubectl", "apply", "-f", "-", given=yaml.safe_dump(scaled))
    ref = ObjectRef("keda.sh", "ScaledObject", space, "embed-e5", "v1alpha1")
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "embed-e5"}
    uid = town.cluster.get(ref)["metadata"]["uid"]
    made = an_autoscaler(space)
    made["metadata"]["name"] = "keda-hpa-embed-e5"
    made["metadata"]["ownerReferences"] = [{**owner, "uid": uid, "controller": True}]
    town.cluster.create(made, manager="keda-operator")
    before = town.ready(space, 3)

    said = town.import_(capsys, space, "deployment/embed-e5", "scaledobject/embed-e5")
    assert "1 service, 2 objects to adopt, 0 restarts, 0 deletes" in said
    assert "embed-e5 count stays with ScaledObject/embed-e5" in said
    assert town.merge("Adopt") == {"unchanged"}

    check_adopted(town, space, before, f"{town.folder(space)}/deployment-embed-e5.yaml")
    assert town.deployment(space)["spec"]["replicas"] == 3
    assert town.cluster.get(ref)["metadata"]["annotations"]["stoker.dev/owner"]


def define(town: Town, group: str, version: str, kind: str, plural: str) -> None:
    """Install a kind and wait until it is served."""
    town.cluster.apply(a_definition(group, version, kind, plural), manager="setup")
    ref = ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", f"{plural}.{group}")

    def established() -> bool:
        status = town.cluster.get(ref).get("status") or {}
        found = {c["type"]: c["status"] for c in status.get("conditions") or ()}
        return found.get("Established") == "True"

    until(established)
    town.cluster.forget_discovery()


def a_kustomization(space: str, *, suspend: bool) -> dict[str, Any]:
    entries = [{"id": f"{space}_embed-e5_apps_Deployment", "v": "v1"}]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": {"suspend": suspend},
        "status": {"inventory": {"entries": entries}},
    }


def test_from_flux(town, capsys):
    """While the Kustomization works nothing is taken from it; suspended, everything is."""
    space = town.space()
    town.space("flux-system")
    define(town, "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
    body = a_deployment(space)
    marks = {"kustomize.toolkit.fluxcd.io/name": "apps"}
    body["metadata"]["labels"] |= {**marks, "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    town.cluster.apply(body, manager="kustomize-controller")
    town.cluster.apply(a_kustomization(space, suspend=False), manager="flux")
    before = town.ready(space, 2)

    said = town.import_(capsys, "", "flux/apps")
    assert "1 service, 1 object to adopt, 0 restarts, 0 deletes" in said
    assert "error" in town.merge("Adopt")
    assert "other-controller-active" in town.diff(capsys)
    assert "stoker.dev/owner" not in str(town.deployment(space)["metadata"].get("annotations"))

    town.cluster.apply(a_kustomization(space, suspend=True), manager="flux")
    assert town.merge("Suspended") == {"unchanged"}

    check_adopted(town, space, before, "bundles/flux-apps/apps/deployment-embed-e5.yaml")
    assert "flux-system" not in str(town.deployment(space)["metadata"]["labels"])


def an_application(space: str, policy: dict[str, Any]) -> dict[str, Any]:
    deployment = {"group": "apps", "version": "v1", "kind": "Deployment"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "embed", "namespace": "argocd"},
        "spec": {"syncPolicy": policy},
        "status": {"resources": [{**deployment, "namespace": space, "name": "embed-e5"}]},
    }


def test_from_argo_cd(town, capsys):
    """Argo CD applies as kubectl does on the client's side, with a note of what it applied."""
    space = town.space()
    town.space("argocd")
    define(town, "argoproj.io", "v1alpha1", "Application", "applications")
    body = a_deployment(space)
    tracking = f"embed:apps/Deployment:{space}/embed-e5"
    body["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(body)}
    body["metadata"]["annotations"] |= note
    town.cluster.create(body, manager="argocd-controller")
    automated = an_application(space, {"automated": {"selfHeal": True}})
    town.cluster.create(automated, manager="argocd")
    before = town.ready(space, 2)

    said = town.import_(capsys, "", "argocd/embed")
    assert "1 service, 1 object to adopt, 0 restarts, 0 deletes" in said
    assert "error" in town.merge("Adopt")
    assert "other-controller-active" in town.diff(capsys)

    ref = ObjectRef("argoproj.io", "Application", "argocd", "embed", "v1alpha1")
    manual = {"spec": {"syncPolicy": {"automated": None}}}
    town.cluster.patch(ref, "merge", manual, manager="kubectl-patch")
    assert town.merge("Manual") == {"unchanged"}

    check_adopted(town, space, before, "bundles/argocd-embed/embed/deployment-embed-e5.yaml")
    notes = town.deployment(space)["metadata"]["annotations"]
    assert not [key for key in notes if key.startswith(("argocd", "kubectl"))]


def a_vllm(space: str) -> dict[str, Any]:
    """An engine as its own documentation deploys it."""
    body = a_deployment(space, "qwen")
    (container,) = body["spec"]["template"]["spec"]["containers"]
    commit = "7ae557604adf67be50417f59c2c2f167def9a775"
    arguments = ["--model", "Qwen/Qwen2.5-0.5B-Instruct", "--revision", commit]
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container |= {"image": "vllm/vllm-openai:v0.9.1", "args": arguments, "resources": limits}
    return body


def test_a_deployment_of_vllm_becomes_a_model_service(town, capsys):
    """Its template is frozen as it runs; Git decides the count from then on."""
    space = town.space()
    town.tool("kubectl", "apply", "-f", "-", given=yaml.safe_dump(a_vllm(space)))
    before = town.ready(space, 2)
    spec = town.deployment(space, "qwen")["spec"]

    more = ("--as-kind", "modelservice")
    said = town.import_(capsys, space, "deployment/qwen", more=more)
    assert "1 service, 1 object to adopt, 0 restarts, 0 deletes" in said
    include = ["/bundles/**/bundle.yaml", f"/bundles/{space}/*.yaml"]
    fleet = a_fleet(include=include, prune={"mode": "Never"})
    town.world.commit("Fleet", {"clusters/local/fleet.yaml": fleet})
    town.merge("Adopt")

    stands = town.deployment(space, "qwen")
    assert town.pods(space) == before
    assert stands["spec"]["template"] == spec["template"]
    assert stands["spec"]["selector"] == spec["selector"]
    assert {
        name for name in town.managers(space, "qwen") if not name.startswith("stoker-")
    } == set()

    town.edit(f"bundles/{space}/qwen.yaml", lambda file: file["spec"].update(replicas=3))
    town.merge("Up")

    assert before.items() < town.ready(space, 3).items()


@pytest.mark.parametrize("verb", ["apply", "create"])
def test_every_usual_kind_is_adopted_as_it_stands(town, capsys, verb):
    """With a note of what was applied, and without one: then defaults are told from wishes."""
    space = town.space()
    bodies = [{**body, "metadata": {**body["metadata"], "namespace": space}} for body in BODIES]
    bodies = [body for body in bodies if body["kind"] != "RoleBinding"]
    town.tool("kubectl", verb, "-f", "-", given=yaml.safe_dump_all(bodies))
    refs = [ref_from_manifest(body) for body in bodies]
    before = {ref: town.cluster.get(ref) for ref in refs}

    sources = [f"{ref.kind.lower()}/{ref.name}" for ref in refs]
    said = town.import_(capsys, space, *sources)
    assert f"{len(refs)} objects to adopt, 0 restarts, 0 deletes" in said
    assert "drift" not in said
    assert town.merge("Adopt") == {"unchanged"}

    for ref, was in before.items():
        now = town.cluster.get(ref)
        assert now["metadata"]["uid"] == was["metadata"]["uid"]
        assert now.get("spec") == was.get("spec"), str(ref)
        assert now.get("data") == was.get("data"), str(ref)
        assert "stoker.dev/owner" in now["metadata"]["annotations"], str(ref)
