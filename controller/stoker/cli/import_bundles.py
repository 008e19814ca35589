"""From gathered objects to the files of Bundles, and what a person must know about them.

Gathered sources and the autoscalers of the cluster come in; `Imported` goes out: files by
path, counts and lines to print. Nothing is read or written here but autoscalers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.cli.import_coldstart import Converted
from stoker.cli.import_scaling import MetricSources, Scaled, sources_comment
from stoker.cli.import_sources import Found, Gathered, Source
from stoker.cli.import_vllm import service_text
from stoker.errors import StokerError
from stoker.kube.errors import KindNotFound
from stoker.kube.memory_defaults import with_defaults
from stoker.model.change import FieldChange, Impact
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.objects.carried import Carried, carry
from stoker.objects.compare import compare, keys_of
from stoker.objects.impact import impact_of
from stoker.objects.kinds import pod_template_paths
from stoker.objects.owned import schema_of
from stoker.observe.external import ScaleTarget, scale_target, scalers_by_target
from stoker.report import manifest_text

__all__ = ["Imported", "Scalers", "bundles_of", "read_scalers", "with_converted"]

_SCALERS = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))


@dataclass(frozen=True, slots=True)
class Scalers:
    """Who scales what. `unknown` says why it could not be read; empty when it could.

    `translated` are scalers whose rules become files of ours: they are asked first.
    """

    by_target: Mapping[ObjectRef, str] = field(default_factory=dict, hash=False)
    unknown: str = ""
    translated: Mapping[ObjectRef, Scaled] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Imported:
    """What one import writes and says.

    `files` are texts by path below the target folder. `kept` are counts that stay with
    others, `drift` where live values are not those applied last, `left` what is not
    carried, `secrets` fields left out because they hold a secret in clear, `to_do` what a
    person must do beside committing.
    """

    files: Mapping[str, str] = field(hash=False)
    services: int = 0
    objects: int = 0
    restarts: int = 0
    kept: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()


def read_scalers(namespaces: Iterable[str], cluster: Cluster) -> Scalers:
    """Every autoscaler in these namespaces; unknown is not nobody."""
    found: list[ScaleTarget] = []
    for namespace in sorted(set(namespaces)):
        for group, kind in _SCALERS:
            try:
                items = cluster.list(group, kind, namespace).items
            except KindNotFound:
                continue
            except StokerError as error:
                return Scalers(unknown=f"{kind}s of {namespace} could not be read: {error.message}")
            found += [target for raw in items if (target := scale_target(raw)) is not None]
    return Scalers(scalers_by_target(found))


def bundles_of(
    gathered: Iterable[Gathered],
    scalers: Scalers,
    *,
    services: bool = False,
    asked: MetricSources | None = None,
) -> Imported:
    """A Bundle for each source; single objects of one name share theirs.

    With `services` a Deployment becomes a ModelService that adopts it, and what is beside
    it stays a Bundle. Raises Stalled where one does not run vLLM. `asked` are the metric
    sources of translated scalers.
    """
    sources = _once(gathered)
    homes = _homes(sources)
    made = _Made(scalers, asked or MetricSources(), services=services)
    for source, name in homes.items():
        parts = [part for part in sources if homes[_home(part, sources)] == name]
        if _home_of_source(source, sources) == source:
            made.bundle(source, name, parts)
    return made.result(sources)


def with_converted(made: Imported, converted: Iterable[Converted]) -> Imported:
    """The same with files that stand for an object and adopt nothing."""
    converted = tuple(converted)
    files = dict(made.files)
    for each in converted:
        for path, text in each.files.items():
            shared = path in files and path.endswith("/bundle.yaml")
            files[path if path not in files or shared else f"imported-{path}"] = text
    left = tuple(line for each in converted for line in each.left)
    return replace(made, files=files, left=(*made.left, *left))


def _once(gathered: Iterable[Gathered]) -> tuple[Gathered, ...]:
    """Every object in the first source that has it; sources that are left empty stay out."""
    seen: set[ObjectRef] = set()
    result: list[Gathered] = []
    for part in gathered:
        objects = tuple(found for found in part.objects if found.ref not in seen)
        seen |= {found.ref for found in objects}
        if objects or part.left:
            result.append(Gathered(part.source, objects, part.left, part.note))
    return tuple(result)


def _home(part: Gathered, sources: tuple[Gathered, ...]) -> Source:
    """The source into whose Bundle the objects go.

    Single objects of one name share a Bundle; a lone autoscaler goes where its target is.
    """
    if part.source.is_of_tool:
        return part.source
    wanted = part.source
    target = scale_target(part.objects[0].live) if part.objects else None
    if target is not None:
        ref = ObjectRef(target.group, target.kind, target.namespace, target.name)
        holders = (o.source for o in sources if any(found.ref == ref for found in o.objects))
        wanted = next(holders, wanted)
    if wanted.is_of_tool:
        return wanted
    namesakes = (o.source for o in sources if o.source.is_namesake(wanted))
    return next(namesakes, wanted)


def _home_of_source(source: Source, sources: tuple[Gathered, ...]) -> Source:
    return next(_home(part, sources) for part in sources if part.source == source)


def _homes(sources: tuple[Gathered, ...]) -> dict[Source, str]:
    """A Bundle's name for each source that is a home: its own, with its kind where it is taken."""
    result: dict[Source, str] = {}
    for part in sources:
        source = _home(part, sources)
        if source in result:
            continue
        plain = source.name[:63].rstrip("-.").replace(".", "-")
        taken = set(result.values())
        name = plain if plain not in taken else f"{source.kind}-{plain}"[:63].rstrip("-")
        number = 2
        while name in taken:
            name, number = f"{plain[:58]}-{number}", number + 1
        result[source] = name
    return result


class _Made:
    """Collects files and lines while Bundles are made."""

    def __init__(self, scalers: Scalers, asked: MetricSources, *, services: bool) -> None:
        self._scalers = scalers
        self._asked = asked
        self._services = services
        self.files: dict[str, str] = {}
        self.services = self.objects = self.restarts = 0
        self.kept: list[str] = []
        self.drift: list[str] = []
        self.secrets: list[str] = []

    def bundle(self, source: Source, name: str, parts: list[Gathered]) -> None:
        """Write a Bundle and its objects."""
        origin = ", ".join(
            f"{part.source}" + (f" ({part.note})" if part.note else "") for part in parts
        )
        bundle = {
            "apiVersion": names.API_VERSION,
            "kind": "Bundle",
            "metadata": {"name": name, "namespace": source.namespace},
            "spec": {"render": {"manifests": ["*.yaml"]}},
        }
        found = [found for part in parts for found in part.objects]
        adopted = [item for item in found if self._services and item.ref.kind == "Deployment"]
        for item in adopted:
            self._adopt(item)
        rest = [item for item in found if item not in adopted]
        for item in rest:
            self.files[self._path(name, item.ref)] = manifest_text(self._carried(item))
        if rest:
            head = f"# Imported from {origin} in namespace {source.namespace}.\n"
            self.files[f"{name}/bundle.yaml"] = head + manifest_text(bundle)

    def _adopt(self, found: Found) -> None:
        """Write the ModelService of one Deployment."""
        scaler = self._scalers.by_target.get(found.ref, "")
        ours = self._scalers.translated.get(found.ref)
        elsewhere = ours is None and bool(scaler or self._scalers.unknown)
        text = service_text(
            found.live,
            counted_elsewhere=elsewhere,
            scaling=ours.scaling if ours else None,
            replicas=0 if ours and ours.scaling is None else None,
        )
        if ours is not None and ours.scaling is not None:
            text = sources_comment(ours.sources, self._asked) + text
        path = f"{found.ref.name}.yaml"
        self.files[path if path not in self.files else f"{found.ref.namespace}-{path}"] = text
        self.services += 1
        self.objects += 1
        if elsewhere:
            self.kept.append(f"{found.ref.name} count stays with {scaler or 'whoever scales it'}")

    def _path(self, name: str, ref: ObjectRef) -> str:
        plain = ref.name.replace(":", "-")
        stem = f"{name}/{ref.kind.lower()}-{plain}"
        for path in (stem, f"{stem}-{ref.namespace or 'cluster'}", f"{stem}-{ref.group}"):
            if f"{path}.yaml" not in self.files:
                return f"{path}.yaml"
        number = 2
        while f"{stem}-{number}.yaml" in self.files:
            number += 1
        return f"{stem}-{number}.yaml"

    def _carried(self, found: Found) -> dict[str, Any]:
        """The manifest of one object, with Git's word that it is to be adopted."""
        ref = found.ref
        scaler = self._scalers.by_target.get(ref, "")
        works = bool(pod_template_paths(ref.group, ref.kind))
        ours = ref in self._scalers.translated
        elsewhere = ours or bool(scaler) or bool(self._scalers.unknown and works)
        carried = carry(
            found.live,
            applied=found.applied,
            fill=lambda manifest: with_defaults(ref.kind, manifest),
            counted_elsewhere=elsewhere,
        )
        self.objects += 1
        self.services += works and (ref.group, ref.kind) != ("batch", "Job")
        if elsewhere and not ours:
            self.kept.append(f"{ref.name} count stays with {scaler or 'whoever scales it'}")
        self._note(ref, carried)
        self.restarts += _restarts(carried.manifest, found.live)
        metadata = carried.manifest["metadata"]
        notes = {**(metadata.get("annotations") or {}), names.ADOPT: "enabled"}
        return {**carried.manifest, "metadata": {**metadata, "annotations": notes}}

    def _note(self, ref: ObjectRef, carried: Carried) -> None:
        self.secrets += [f"{ref} {place}" for place in carried.secrets]
        self.drift += [f"{ref} {_told(change)}" for change in carried.drift]

    def result(self, sources: tuple[Gathered, ...]) -> Imported:
        """Everything that was collected."""
        if self._scalers.unknown:
            self.kept.append(self._scalers.unknown)
        return Imported(
            files=self.files,
            services=self.services,
            objects=self.objects,
            restarts=self.restarts,
            kept=tuple(self.kept),
            drift=tuple(self.drift),
            secrets=tuple(self.secrets),
            left=tuple(line for part in sources for line in part.left),
        )


def _told(change: FieldChange) -> str:
    before = "nothing" if change.before is None else change.before
    return f"{change.path}: live {before}, applied last {change.after}"


def _restarts(manifest: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether applying the manifest would restart pods: measured, not promised."""
    found = compare(manifest, live, schema_of(live))
    group = str(live.get("apiVersion", "")).rpartition("/")[0]
    paths = [keys_of(difference.elements) for difference in found.differences]
    worst = impact_of(group, str(live.get("kind", "")), paths)
    return worst in {Impact.PLACEMENT, Impact.RESTART, Impact.RECREATE}
