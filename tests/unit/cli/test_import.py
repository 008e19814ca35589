"""What runs becomes files that, applied, change nothing."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from definitions import a_definition
from stoker.cli import connect as connecting
from stoker.kube.client import Client
from stoker.kube.errors import Forbidden, api_error
from stoker.kube.memory import MemoryServer
from stoker.model.refs import ObjectRef
from stoker.objects.takeover import LAST_APPLIED
from stoker.shipped import NEWEST_TEMPLATE
from stoker.sim.clock import VirtualClock

SPACE = "llm"
EMBED = ObjectRef("apps", "Deployment", SPACE, "embed-e5")


def a_deployment(name="embed-e5", image="registry.example/vllm:0.28", **container):
    labels = {"app": name}
    main = {"name": "engine", "image": image, "ports": [{"containerPort": 8000}], **container}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": SPACE, "labels": {"team": "search"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [main]}},
        },
    }


def an_autoscaler(name="embed-e5"):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"minReplicas": 2, "maxReplicas": 6, "scaleTargetRef": target},
    }


def a_map(name, **data):
    metadata = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Place:
    """A cluster in memory that the command line reaches, and a folder to write to."""

    def __init__(self, shell, folder: Path) -> None:
        self.shell = shell
        self.folder = folder
        self.cluster = Client(MemoryServer(VirtualClock()))
        for name in (SPACE, "flux-system", "argocd"):
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.cluster.create(space, manager="setup")

    def kubectl_apply(self, manifest):
        """Client-side apply, as kubectl 1.37 does it."""
        note = {LAST_APPLIED: json.dumps(manifest)}
        metadata = {**manifest["metadata"], "annotations": note}
        made = {**manifest, "metadata": metadata}
        return self.cluster.create(made, manager="kubectl-client-side-apply")

    def helm_release(self, name, manifests, revision=1, hooks=()):
        """What Helm keeps of a release, and its objects."""
        text = "".join(f"---\n{yaml.safe_dump(m)}" for m in manifests)
        chart = {"metadata": {"name": "vllm", "version": "1.2.0"}}
        content = {"name": name, "manifest": text, "chart": chart, "hooks": list(hooks)}
        packed = base64.b64encode(gzip.compress(json.dumps(content).encode()))
        labels = {"owner": "helm", "name": name, "status": "deployed", "version": str(revision)}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "helm.sh/release.v1",
            "metadata": {
                "name": f"sh.helm.release.v1.{name}.v{revision}",
                "namespace": SPACE,
                "labels": labels,
            },
            "data": {"release": base64.b64encode(packed).decode()},
        }
        self.cluster.create(secret, manager="helm")
        for manifest in manifests:
            placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": SPACE}}
            self.cluster.create(placed, manager="helm")

    def run(self, *arguments, namespace=SPACE):
        more = ("-n", namespace) if namespace else ()
        return self.shell("import", *arguments, "--to", self.folder, *more)

    def read(self, path):
        return yaml.safe_load((self.folder / path).read_text())


@pytest.fixture
def place(shell, tmp_path, monkeypatch):
    found = Place(shell, tmp_path / "fleet" / "models")
    monkeypatch.setattr(connecting, "connect", lambda *_a, **_k: found.cluster)
    monkeypatch.setattr(Client, "close", lambda _self: None)
    return found


def test_a_deployment_of_kubectl_becomes_what_was_applied(place):
    place.kubectl_apply(a_deployment())
    answer = place.run("deployment/embed-e5")

    assert answer.code == 0, answer.err
    manifest = place.read("embed-e5/deployment-embed-e5.yaml")
    assert manifest.pop("spec") == a_deployment()["spec"]
    assert manifest["metadata"] == {
        "name": "embed-e5",
        "namespace": SPACE,
        "labels": {"team": "search"},
        "annotations": {"stoker.dev/adopt": "enabled"},
    }
    assert place.read("embed-e5/bundle.yaml")["metadata"] == {
        "name": "embed-e5",
        "namespace": SPACE,
    }
    assert "1 service, 1 object to adopt, 0 restarts, 0 deletes\n" in answer.err


def test_an_object_that_was_only_created_carries_no_defaults(place):
    """`kubectl create` leaves no note of what was meant; its entry lists every default."""
    place.cluster.create(a_deployment(), manager="kubectl-create")
    place.run("deploy/embed-e5")

    wanted = a_deployment()["spec"]
    assert place.read("embed-e5/deployment-embed-e5.yaml")["spec"] == wanted


def test_live_values_are_carried_where_they_are_not_those_applied_last(place):
    """What was applied last would restart pods that somebody has changed since."""
    place.kubectl_apply(a_deployment())
    container = {"name": "engine", "image": "registry.example/vllm:0.29"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    place.cluster.patch(EMBED, "strategic", patch, manager="kubectl-set")
    answer = place.run("deployment/embed-e5")

    manifest = place.read("embed-e5/deployment-embed-e5.yaml")
    assert manifest["spec"]["template"]["spec"]["containers"][0]["image"].endswith("0.29")
    assert "live registry.example/vllm:0.29, applied last registry.example/vllm:0.28" in answer.err
    assert "0 restarts" in answer.err


def test_a_field_that_somebody_added_by_hand_is_carried(place):
    place.kubectl_apply(a_deployment())
    container = {"name": "engine", "env": [{"name": "LEVEL", "value": "debug"}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    place.cluster.patch(EMBED, "strategic", patch, manager="kubectl-edit")
    place.run("deployment/embed-e5")

    manifest = place.read("embed-e5/deployment-embed-e5.yaml")
    (main,) = manifest["spec"]["template"]["spec"]["containers"]
    assert main["env"] == [{"name": "LEVEL", "value": "debug"}]


def test_a_count_that_an_autoscaler_owns_stays_with_it(place):
    place.kubectl_apply(a_deployment())
    place.kubectl_apply(an_autoscaler())
    answer = place.run("deployment/embed-e5", "hpa/embed-e5")

    assert "replicas" not in place.read("embed-e5/deployment-embed-e5.yaml")["spec"]
    scaler = place.read("embed-e5/horizontalpodautoscaler-embed-e5.yaml")
    assert scaler["spec"] == an_autoscaler()["spec"]
    assert (
        "1 service, 2 objects to adopt, 0 restarts, 0 deletes; "
        "embed-e5 count stays with HorizontalPodAutoscaler/embed-e5\n"
    ) in answer.err


def test_a_count_stays_out_where_autoscalers_cannot_be_read(place, monkeypatch):
    """Unknown is not nobody."""
    place.kubectl_apply(a_deployment())
    read = place.cluster.list

    def refuse(group, kind, *arguments, **options):
        if group == "autoscaling":
            raise api_error(403, "no", what="list")
        return read(group, kind, *arguments, **options)

    monkeypatch.setattr(place.cluster, "list", refuse)
    answer = place.run("deployment/embed-e5")

    assert "replicas" not in place.read("embed-e5/deployment-embed-e5.yaml")["spec"]
    assert "HorizontalPodAutoscalers of llm could not be read" in answer.err
    assert isinstance(api_error(403, "no", what="list"), Forbidden)


def test_a_helm_release_is_carried_from_what_it_sent(place):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    place.helm_release("vllm-qwen", [a_deployment(), a_map("conf", a="1"), secret], revision=1)
    answer = place.run("helm/vllm-qwen")

    assert answer.code == 0, answer.err
    assert place.read("vllm-qwen/deployment-embed-e5.yaml")["spec"] == a_deployment()["spec"]
    assert place.read("vllm-qwen/configmap-conf.yaml")["data"] == {"a": "1"}
    assert not (place.folder / "vllm-qwen/secret-token.yaml").exists()
    head = (place.folder / "vllm-qwen/bundle.yaml").read_text().splitlines()[0]
    assert (
        head == "# Imported from helm/vllm-qwen (revision 1 of chart vllm-1.2.0) in namespace llm."
    )
    assert "helm release secrets (1)" in answer.err
    assert "Secret llm/token (keep it out of Git" in answer.err


def test_the_deployed_revision_counts_not_a_failed_later_one(place):
    place.helm_release("r", [a_map("conf", a="1")], revision=1)
    place.helm_release("r", [], revision=2)
    ref = ObjectRef("", "Secret", SPACE, "sh.helm.release.v1.r.v2")
    labels = {"metadata": {"labels": {"status": "failed"}}}
    place.cluster.patch(ref, "merge", labels, manager="helm")
    answer = place.run("helm/r")

    assert place.read("r/configmap-conf.yaml")["data"] == {"a": "1"}
    assert "helm release secrets (2)" in answer.err


def test_a_secret_that_holds_no_release_is_named(place):
    place.helm_release("r", [a_map("conf", a="1")])
    ref = ObjectRef("", "Secret", SPACE, "sh.helm.release.v1.r.v1")
    broken = {"data": {"release": base64.b64encode(b"bm8=").decode()}}
    place.cluster.patch(ref, "merge", broken, manager="helm")
    answer = place.run("helm/r")

    assert answer.code == 3
    assert "[release-unreadable]" in answer.err


CRD_OF = {
    "Kustomization": ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
    "Application": ("argoproj.io", "v1alpha1", "applications"),
}


def a_crd(kind):
    group, version, plural = CRD_OF[kind]
    return a_definition(group, version, kind, plural)


def test_a_flux_kustomization_is_its_inventory(place):
    place.cluster.create(a_crd("Kustomization"), manager="flux")
    marks = {
        "kustomize.toolkit.fluxcd.io/name": "apps",
        "kustomize.toolkit.fluxcd.io/namespace": "x",
    }
    applied = a_deployment()
    applied["metadata"]["labels"] |= marks
    place.cluster.apply(applied, manager="kustomize-controller")
    ids = ["llm_embed-e5_apps_Deployment", "llm_gone__x_rbac.authorization.k8s.io_Role"]
    entries = [{"id": id_, "v": "v1"} for id_ in ids]
    source = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "status": {"inventory": {"entries": entries}},
    }
    place.cluster.create(source, manager="flux")
    answer = place.run("flux/apps", namespace="")

    assert answer.code == 0, answer.err
    manifest = place.read("apps/deployment-embed-e5.yaml")
    assert manifest["metadata"]["labels"] == {"team": "search"}
    assert manifest["spec"] == a_deployment()["spec"]
    assert "not carried: Role llm/gone:x (not in the cluster)" in answer.err


def test_an_argo_cd_application_is_the_resources_of_its_status(place):
    place.cluster.create(a_crd("Application"), manager="argo")
    applied = a_deployment()
    note = {"argocd.argoproj.io/tracking-id": "apps:apps/Deployment:llm/embed-e5"}
    applied["metadata"]["annotations"] = note
    place.cluster.apply(applied, manager="argocd-controller")
    deployment = {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "namespace": SPACE,
        "name": "embed-e5",
    }
    source = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "apps", "namespace": "argocd"},
        "status": {"resources": [deployment]},
    }
    place.cluster.create(source, manager="argo")
    answer = place.run("argocd/apps", namespace="")

    assert answer.code == 0, answer.err
    metadata = place.read("apps/deployment-embed-e5.yaml")["metadata"]
    assert metadata["annotations"] == {"stoker.dev/adopt": "enabled"}


def test_secrets_in_clear_stay_out_of_git(place):
    """The field is not named at all, so it stays in the cluster as it is."""
    token = {"name": "HF_TOKEN", "value": "hf_abcdefghijklmnopqrstuvwxyz"}
    level = {"name": "LEVEL", "value": "info"}
    place.kubectl_apply(a_deployment(env=[token, level]))
    answer = place.run("deployment/embed-e5")

    text = (place.folder / "embed-e5/deployment-embed-e5.yaml").read_text()
    assert "hf_" not in text + answer.err + answer.out
    (main,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    assert main["env"] == [level]
    assert "holds a secret in clear" in answer.err
    assert "env[name=HF_TOKEN]" in answer.err


def test_no_file_is_overwritten(place):
    place.kubectl_apply(a_deployment())
    place.kubectl_apply(a_map("conf", a="1"))
    place.run("deployment/embed-e5")
    (place.folder / "embed-e5/deployment-embed-e5.yaml").write_text("mine")
    answer = place.run("configmap/conf", "deployment/embed-e5")

    assert answer.code == 2
    assert "nothing was written" in answer.err
    assert not (place.folder / "conf").exists()


def test_an_object_that_a_controller_makes_is_not_carried(place):
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1"}
    child = a_map("conf", a="1")
    child["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    place.cluster.create(child, manager="x")
    answer = place.run("cm/conf")

    assert answer.code == 2
    assert "StatefulSet/s makes it" in answer.err


@pytest.mark.parametrize("text", ["deployment", "pod/x", "/x", "deployment/"])
def test_what_cannot_be_imported_is_wrong_use(place, text):
    answer = place.run(text)

    assert answer.code == 2
    assert "KIND/NAME" in answer.err


def test_what_is_not_there_is_said(place):
    assert "[source-not-found]" in place.run("deployment/nope").err
    assert "[source-not-found]" in place.run("helm/nope").err
    assert "[source-not-found]" in place.run("flux/nope").err


def test_the_files_are_valid_and_the_fleet_is_told_to_include_them(place, shell):
    fleet = shell.fleet()
    place.folder = fleet / "models"
    place.kubectl_apply(a_deployment())
    answer = place.run("deployment/embed-e5")

    hint = "add /models/*/bundle.yaml to spec.include of clusters/local/fleet.yaml"
    assert hint in answer.err
    path = fleet / "clusters/local/fleet.yaml"
    path.write_text(path.read_text().replace("include:\n", "include:\n  - /models/*/bundle.yaml\n"))
    assert shell("validate", fleet).code == 0


def test_in_the_root_of_a_repository_bundles_go_where_the_fleet_looks(place, shell):
    place.folder = shell.fleet()
    place.kubectl_apply(a_deployment())
    answer = place.run("deployment/embed-e5")

    assert (place.folder / "bundles/embed-e5/bundle.yaml").exists()
    assert "spec.include" not in answer.err


def test_two_imports_of_one_cluster_give_the_same_files(place, tmp_path):
    place.kubectl_apply(a_deployment())
    place.kubectl_apply(an_autoscaler())
    texts = []
    for number in (1, 2):
        place.folder = tmp_path / f"again-{number}"
        place.run("hpa/embed-e5", "deployment/embed-e5")
        found = sorted(place.folder.rglob("*.yaml"))
        texts.append([(str(p.relative_to(place.folder)), p.read_text()) for p in found])

    assert texts[0] == texts[1]
    assert len(texts[0]) == 3


# --------------------------------------------------------------------- as a ModelService
COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"
GPUS = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "4", "memory": "32Gi"}}
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
SERVE = ["--model", "Qwen/Qwen2.5-7B-Instruct", f"--revision={COMMIT}", "-tp", "2"]


def a_vllm(*more, **container):
    plain = {"image": "vllm/vllm-openai:v0.9.1", "args": [*SERVE, *more], "resources": GPUS}
    return a_deployment("qwen", **{**plain, "env": [TOKEN], **container})


def test_a_deployment_that_runs_vllm_becomes_a_model_service(place, shell):
    """What it says is what runs; everything else is held back until the rev changes."""
    place.kubectl_apply(a_vllm("--max-model-len", "8192", "--served-model-name", "qwen", "chat"))
    place.folder = shell.fleet()
    answer = place.run("deployment/qwen", "--as-kind", "modelservice")

    assert answer.code == 0, answer.err
    document = place.read("models/qwen.yaml")
    assert document["metadata"] == {"name": "qwen", "namespace": SPACE}
    assert document["spec"] == {
        "adopt": {"kind": "Deployment", "name": "qwen"},
        "placement": {"mode": "Scheduler"},
        "model": {
            "uri": "hf://Qwen/Qwen2.5-7B-Instruct",
            "revision": COMMIT,
            "servedNames": ["qwen", "chat"],
            "tokenSecretRef": {"name": "hf", "key": "token"},
        },
        "engine": {
            "type": "vllm",
            "image": "vllm/vllm-openai:v0.9.1",
            "args": ["--max-model-len", "8192"],
            "cudaGraphs": "Capture",
        },
        "gpu": {"count": 2},
        "resources": {"requests": {"cpu": "4", "memory": "32Gi"}},
        "replicas": 2,
    }
    assert "1 service, 1 object to adopt, 0 restarts, 0 deletes" in answer.err
    assert "spec.include" not in answer.err
    assert shell("validate", place.folder).code == 0


def test_its_autoscaler_keeps_the_count_and_stays_a_bundle(place, shell):
    place.kubectl_apply(a_vllm())
    place.kubectl_apply(an_autoscaler("qwen"))
    place.folder = shell.fleet()
    answer = place.run("deployment/qwen", "hpa/qwen", "--as-kind", "modelservice")

    spec = place.read("models/qwen.yaml")["spec"]
    assert spec["scaling"] == {"mode": "External"}
    assert "replicas" not in spec
    assert (place.folder / "bundles/qwen/horizontalpodautoscaler-qwen.yaml").exists()
    assert "qwen count stays with HorizontalPodAutoscaler/qwen" in answer.err
    assert shell("validate", place.folder).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"],
        ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model=Qwen/Qwen2.5-7B-Instruct"],
    ],
    ids=["serve", "module"],
)
def test_every_way_to_start_it_is_recognised(place, command):
    rest = ["--revision", COMMIT, "--tensor-parallel-size=2", "--enforce-eager"]
    place.kubectl_apply(a_vllm(image="own/image:1", command=command, args=rest))
    answer = place.run("deployment/qwen", "--as-kind", "modelservice")

    assert answer.code == 0, answer.err
    spec = place.read("qwen.yaml")["spec"]
    assert spec["model"]["uri"] == "hf://Qwen/Qwen2.5-7B-Instruct"
    assert spec["engine"] == {"type": "vllm", "image": "own/image:1"}


UNCLEAR: dict[str, tuple[dict[str, Any], str]] = {
    "no vllm": ({"image": "nginx:1", "args": []}, "0 of its containers run vLLM"),
    "a branch": ({"args": ["--model", "a/b", "--revision", "main", "-tp=2"]}, "is no commit"),
    "a folder": ({"args": ["--model", "/models/x", *SERVE[2:]]}, "is no repository of a hub"),
    "a shell": ({"command": ["sh", "-c"], "args": ["vllm serve x"]}, "is no repository of a hub"),
    "no GPU": ({"resources": {}}, "has no limit of nvidia.com/gpu"),
    "sizes": ({"args": SERVE[:3]}, "is not its 2 GPUs"),
    "a port": ({"args": [*SERVE, "--port", "9000"]}, "listens on port 9000"),
    "a secret": ({"args": [*SERVE, "--api-key", "abcdefgh"]}, "holds a secret in clear"),
}


@pytest.mark.parametrize("case", UNCLEAR, ids=str)
def test_what_is_not_recognised_is_never_guessed(place, case):
    container, why = UNCLEAR[case]
    place.kubectl_apply(a_vllm(**container))
    answer = place.run("deployment/qwen", "--as-kind", "modelservice")

    assert answer.code == 2
    assert why in answer.err
    assert "abcdefgh" not in answer.err
    assert not place.folder.exists()


# ------------------------------------------------------------------ init --from-cluster
def a_node(place, name, gpus="8", **labels):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    place.cluster.create(node, manager="kubelet")
    status = {"status": {"allocatable": {"nvidia.com/gpu": gpus}}}
    ref = ObjectRef("", "Node", "", name)
    place.cluster.patch(ref, "merge", status, manager="kubelet", subresource="status")


GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def test_a_fleet_from_a_cluster_has_its_pools_and_says_what_to_import(place, shell):
    """ux.md: adopt a running cluster. What it writes works as it stands."""
    a_node(place, "a-1", **{"karpenter.sh/nodepool": "l4", "karpenter.sh/capacity-type": "spot"})
    a_node(place, "b-1", **{"karpenter.sh/nodepool": "h100"})
    a_node(place, "cpu-1", gpus="0", **{"karpenter.sh/nodepool": "cpu"})
    place.kubectl_apply(a_deployment(**GPU))
    place.kubectl_apply(a_deployment("web"))
    charted = a_deployment("qwen", **GPU)
    charted["metadata"]["annotations"] = {"meta.helm.sh/release-name": "vllm-qwen"}
    place.cluster.create(charted, manager="helm")
    folder = place.folder.parent
    answer = shell("init", folder, "--fleet", "prod-eu", "--from-cluster")

    assert answer.code == 0, answer.err
    fleet = yaml.safe_load((folder / "clusters/prod-eu/fleet.yaml").read_text())
    assert fleet["spec"] == {
        "cluster": {"uid": place.cluster.server().cluster_uid},
        "mode": "Observe",
        "include": ["/bundles/*/bundle.yaml"],
        "defaults": {
            "namespace": SPACE,
            "modelService": {"render": {"template": NEWEST_TEMPLATE}},
        },
        "pools": [
            {"name": "h100", "nodeSelector": {"matchLabels": {"karpenter.sh/nodepool": "h100"}}},
            {
                "name": "l4",
                "nodeSelector": {"matchLabels": {"karpenter.sh/nodepool": "l4"}},
                "capacityType": "Spot",
            },
        ],
    }
    imports = f"stoker import deployment/embed-e5 helm/vllm-qwen -n {SPACE} --to {folder}"
    assert imports in answer.err

    place.folder = folder
    assert place.run("deployment/embed-e5").code == 0
    valid = shell("validate", folder)
    assert (valid.code, valid.err) == (0, "ok: 1 fleet, 1 unit\n")


def test_nodes_without_a_common_label_make_no_pool(place, shell):
    """A pool that leaves nodes out would look like a cluster that is full."""
    a_node(place, "a-1", pool="l4")
    a_node(place, "b-1", zone="x")
    folder = place.folder.parent
    answer = shell("init", folder, "--from-cluster")

    assert answer.code == 0, answer.err
    assert "pools" not in yaml.safe_load((folder / "clusters/local/fleet.yaml").read_text())["spec"]
    assert "add spec.pools" in answer.err


def test_the_cluster_is_asked_or_told_not_both(place, shell):
    answer = shell("init", place.folder, "--from-cluster", "--cluster-uid", "x")

    assert answer.code == 2
    assert not place.folder.exists()
