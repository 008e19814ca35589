"""What `import KIND/NAME` names, and the live objects that it stands for.

One argument and a client come in, a `Gathered` goes out: objects as they are live, each
with what its tool applied where that is known, and what cannot be carried. Read only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.cli.import_coldstart import COLD_START_KINDS
from stoker.cli.import_helm import Release, newest_release
from stoker.errors import Stalled
from stoker.kube.errors import KindNotFound, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.carried import last_applied
from stoker.objects.kinds import CRD_GROUP
from stoker.objects.owned import owners
from stoker.objects.takeover import gives_way

__all__ = [
    "LLM_SCALER",
    "Found",
    "Gathered",
    "Source",
    "cold_start_object",
    "custom_object",
    "gather",
    "named_object",
    "parse_source",
]

LLM_SCALER = "llmscaler"
"""How the LLMScaler of the llmscaleoperator is named on the command line."""

_KINDS: dict[str, tuple[str, str]] = {
    "configmap": ("", "ConfigMap"),
    "cronjob": ("batch", "CronJob"),
    "daemonset": ("apps", "DaemonSet"),
    "deployment": ("apps", "Deployment"),
    "horizontalpodautoscaler": ("autoscaling", "HorizontalPodAutoscaler"),
    "ingress": ("networking.k8s.io", "Ingress"),
    "job": ("batch", "Job"),
    "leaderworkerset": ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    "networkpolicy": ("networking.k8s.io", "NetworkPolicy"),
    "persistentvolumeclaim": ("", "PersistentVolumeClaim"),
    "poddisruptionbudget": ("policy", "PodDisruptionBudget"),
    "scaledobject": ("keda.sh", "ScaledObject"),
    "service": ("", "Service"),
    "serviceaccount": ("", "ServiceAccount"),
    "statefulset": ("apps", "StatefulSet"),
}
_SHORT = {
    "application": "argocd",
    "app": "argocd",
    "cm": "configmap",
    "cj": "cronjob",
    "deploy": "deployment",
    "ds": "daemonset",
    "hpa": "horizontalpodautoscaler",
    "ing": "ingress",
    "kustomization": "flux",
    "lws": "leaderworkerset",
    "netpol": "networkpolicy",
    "pdb": "poddisruptionbudget",
    "pvc": "persistentvolumeclaim",
    "sa": "serviceaccount",
    "so": "scaledobject",
    "sts": "statefulset",
    "svc": "service",
}
_HOMES = {"argocd": "argocd", "flux": "flux-system"}
"""Where those objects live unless --namespace says otherwise."""
_TOOLS = frozenset({"argocd", "flux", "helm"})
_FLUX = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_ARGO = ("argoproj.io", "Application")
_OF_TOOLS = re.compile(r"(.+\.)?(fluxcd\.io|argoproj\.io)")
"""Groups whose objects work for the tool that is left behind."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One argument: `helm/vllm-qwen`, `deployment/embed-e5`; `kind` is written out."""

    kind: str
    name: str
    namespace: str

    @property
    def is_of_tool(self) -> bool:
        """Whether it stands for many objects: a Helm release, or what Flux or Argo CD applies."""
        return self.kind in _TOOLS

    def is_namesake(self, other: Source) -> bool:
        """Whether both are single objects of one name in one namespace."""
        same = (self.name, self.namespace) == (other.name, other.namespace)
        return same and not self.is_of_tool and not other.is_of_tool

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Found:
    """One object. `applied` is what a Helm release says of it, None where nothing does."""

    ref: ObjectRef
    live: dict[str, Any] = field(hash=False)
    applied: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The objects of one source. `left` says what is not carried and why or what to do.

    `note` says where they come from, for the head of a file.
    """

    source: Source
    objects: tuple[Found, ...]
    left: tuple[str, ...] = ()
    note: str = ""


def parse_source(text: str, namespace: str) -> Source:
    """Read one argument; an empty namespace is the usual one of its kind.

    Raises Stalled `usage` for a kind that cannot be imported.
    """
    kind, slash, name = text.strip().partition("/")
    kind = kind.lower()
    kind = _SHORT.get(kind, kind)
    if kind not in _KINDS and kind.endswith("s"):
        kind = _SHORT.get(kind[:-1], kind[:-1])
    possible = {*_KINDS, *_TOOLS, *COLD_START_KINDS, LLM_SCALER}
    if not slash or not name or kind not in possible:
        known = ", ".join(sorted(possible))
        raise Stalled(
            f"{text!r} cannot be imported", code="usage", hint=f"KIND/NAME with one of {known}"
        )
    return Source(kind, name, namespace or _HOMES.get(kind, "default"))


def gather(source: Source, cluster: Cluster) -> Gathered:
    """Read the objects of a source, in the order in which it names them.

    Raises Stalled `source-not-found`, and what the Cluster port raises: half a source is
    never carried.
    """
    if source.kind == "helm":
        return _of_helm(source, cluster)
    if source.kind == "flux":
        return _of_flux(source, cluster)
    if source.kind == "argocd":
        return _of_argo(source, cluster)
    group, kind = _KINDS[source.kind]
    live = _named(source, (group, kind), cluster)
    found, left = _read([(ref_from_manifest(live), None)], cluster)
    if left:
        raise Stalled(f"{source} is not carried: {left[0]}", code="source-not-carried")
    return Gathered(source, found)


def cold_start_object(source: Source, cluster: Cluster) -> tuple[dict[str, Any], str]:
    """The live VllmService, FleetService or NodeState, and the image of the Deployment of its
    name (empty where there is none).
    """
    live = custom_object(source, COLD_START_KINDS[source.kind], cluster)
    try:
        ref = ObjectRef("apps", "Deployment", source.namespace, source.name, "")
        pod = cluster.get(ref)["spec"]["template"]["spec"]
        images = [str(each.get("image", "")) for each in pod.get("containers") or ()]
    except (KindNotFound, NotFound):
        images = []
    return live, images[0] if len(images) == 1 else ""


def named_object(source: Source, cluster: Cluster) -> dict[str, Any]:
    """The one live object that a source of a built-in kind names, as it is."""
    return _named(source, _KINDS[source.kind], cluster)


def custom_object(source: Source, kind: str, cluster: Cluster) -> dict[str, Any]:
    """A live object of a kind whose group is the one that serves it, not ours.

    Raises Stalled `source-not-found` where no or more than one group serves it.
    """
    groups = {
        str(spec.get("group")): str(spec.get("scope"))
        for spec in (
            each.get("spec") or {}
            for each in cluster.list(CRD_GROUP, "CustomResourceDefinition").items
        )
        if (spec.get("names") or {}).get("kind") == kind and spec.get("group") != names.GROUP
    }
    if len(groups) != 1:
        found = ", ".join(sorted(groups)) or "none"
        raise Stalled(f"one group must serve {kind}, found: {found}", code="source-not-found")
    ((group, scope),) = groups.items()
    place = source if scope == "Namespaced" else replace(source, namespace="")
    return _named(place, (group, kind), cluster)


def _named(source: Source, kind: tuple[str, str], cluster: Cluster) -> dict[str, Any]:
    """The object that the source names."""
    ref = ObjectRef(kind[0], kind[1], source.namespace, source.name, "")
    try:
        return cluster.get(ref)
    except (KindNotFound, NotFound) as absent:
        raise Stalled(
            f"{source} is not in namespace {source.namespace}",
            code="source-not-found",
            hint="-n NAMESPACE",
        ) from absent


def _of_helm(source: Source, cluster: Cluster) -> Gathered:
    release: Release = newest_release(source.name, source.namespace, cluster)
    wanted: list[tuple[ObjectRef, dict[str, Any] | None]] = []
    for manifest in release.manifests:
        ref = ref_from_manifest(manifest)
        if not ref.namespace and cluster.resource(ref.group, ref.kind, ref.version).namespaced:
            ref = ObjectRef(ref.group, ref.kind, source.namespace, ref.name, ref.version)
        wanted.append((ref, manifest))
    found, left = _read(wanted, cluster)
    if release.hooks:
        left = (*left, f"helm hooks ({release.hooks})")
    left = (*left, f"helm release secrets ({release.secrets})")
    note = f"revision {release.revision} of chart {release.chart}"
    return Gathered(source, found, left, note)


def _of_flux(source: Source, cluster: Cluster) -> Gathered:
    """A Flux Kustomization: the objects of its inventory (`namespace_name_group_kind`)."""
    live = _named(source, _FLUX, cluster)
    entries = ((live.get("status") or {}).get("inventory") or {}).get("entries") or ()
    refs = []
    for entry in entries:
        namespace, _, rest = str(entry.get("id", "")).partition("_")
        rest, _, kind = rest.rpartition("_")
        name, _, group = rest.rpartition("_")
        name = name.replace("__", ":")  # RBAC names may have colons
        refs.append(ObjectRef(group, kind, namespace, name, str(entry.get("v", ""))))
    return _of_refs(source, refs, cluster)


def _of_argo(source: Source, cluster: Cluster) -> Gathered:
    """An Argo CD Application: the objects of its status."""
    live = _named(source, _ARGO, cluster)
    entries = (live.get("status") or {}).get("resources") or ()
    refs = [
        ObjectRef(
            str(entry.get("group") or ""),
            str(entry.get("kind", "")),
            str(entry.get("namespace") or ""),
            str(entry.get("name", "")),
            str(entry.get("version") or ""),
        )
        for entry in entries
    ]
    return _of_refs(source, refs, cluster)


def _of_refs(source: Source, refs: list[ObjectRef], cluster: Cluster) -> Gathered:
    found, left = _read([(ref, None) for ref in refs], cluster)
    if not found and not left:
        raise Stalled(f"{source} names no object in its status", code="source-not-found")
    return Gathered(source, found, left)


def _read(
    wanted: Iterable[tuple[ObjectRef, dict[str, Any] | None]], cluster: Cluster
) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Live objects in the version that was applied, and what must be left out."""
    found: list[Found] = []
    left: list[str] = []
    for ref, applied in wanted:
        if (ref.group, ref.kind) == ("", "Secret"):
            left.append(f"{ref} (keep it out of Git: External Secrets, Sealed Secrets or SOPS)")
            continue
        if _OF_TOOLS.fullmatch(ref.group):
            left.append(f"{ref} (it works for the tool you leave)")
            continue
        try:
            live = _in_applied_version(cluster.get(ref), ref, applied, cluster)
        except (KindNotFound, NotFound):
            left.append(f"{ref} (not in the cluster)")
            continue
        why = _not_carried(live)
        if why:
            left.append(f"{ref} ({why})")
        else:
            found.append(Found(ref_from_manifest(live), live, applied))
    return tuple(found), tuple(left)


def _in_applied_version(
    live: dict[str, Any], ref: ObjectRef, applied: dict[str, Any] | None, cluster: Cluster
) -> dict[str, Any]:
    """Read again in the version that field paths and values speak, if it is another."""
    known = applied or last_applied(live)
    spoken = str(known.get("apiVersion", "")) if known else ""
    if not spoken:
        entries = [o for o in owners(live) if not o.subresource and gives_way(o.manager)]
        spoken = entries[0].api_version if entries else ""
    if not spoken or spoken == live.get("apiVersion"):
        return live
    group, _, version = spoken.rpartition("/")
    if group != ref.group:
        return live
    try:
        return cluster.get(ObjectRef(group, ref.kind, ref.namespace, ref.name, version))
    except KindNotFound:
        return live


def _not_carried(live: dict[str, Any]) -> str:
    """Why an object cannot be adopted; empty when it can."""
    metadata = live.get("metadata") or {}
    if names.OWNER in (metadata.get("annotations") or {}):
        return "a Stoker fleet has it already"
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')}/{owner.get('name')} makes it"
    return "it is being deleted" if metadata.get("deletionTimestamp") else ""
