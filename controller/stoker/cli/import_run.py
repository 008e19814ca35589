"""One `stoker import`: sources in, files and what to say about them out.

Objects that are carried as they are, objects of the cold-start operator and autoscalers are
told apart here, and their files put together. Called by import_objects; read only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from stoker.cli.import_bundles import Imported, bundles_of, read_scalers, with_converted
from stoker.cli.import_coldstart import COLD_START_KINDS, convert
from stoker.cli.import_scalers import (
    TRANSLATED_KINDS,
    count_line,
    file_objects,
    policy_files,
    source_lines,
    translate,
)
from stoker.cli.import_scaling import MetricSources, Scaled
from stoker.cli.import_sources import (
    LLM_SCALER,
    Gathered,
    Source,
    cold_start_object,
    custom_object,
    gather,
    named_object,
)
from stoker.errors import Stalled
from stoker.model.ports import Cluster
from stoker.source import check_file

__all__ = ["Wanted", "import_all"]

_OPERATOR = "LLMScaler"
_NOT_YET = "not-implemented-yet"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is imported: objects of the cluster, and files with autoscalers.

    `services`: Deployments become ModelServices. `translate`: HPAs and ScaledObjects become
    scaling rules of ours.
    """

    sources: tuple[Source, ...]
    files: tuple[str, ...]
    namespace: str
    services: bool = False
    translate: bool = False

    @property
    def needs_cluster(self) -> bool:
        """Whether anything live must be read."""
        return bool(self.sources) or self.services

    def is_scaler(self, source: Source) -> bool:
        """Whether its rules are translated rather than its object carried."""
        return source.kind == LLM_SCALER or (self.translate and source.kind in TRANSLATED_KINDS)


def import_all(wanted: Wanted, cluster: Cluster | None) -> Imported:
    """Everything that is wanted, as files by path.

    Raises Stalled where a source is not there or cannot be carried, and what the Cluster port
    raises: half an import is never written.
    """
    asked = MetricSources()
    scaled = [translate(live, asked) for live in _scalers(wanted, cluster)]
    _once_each(scaled)
    if cluster is None:
        made = Imported({})
    else:
        made = _of_cluster(wanted, scaled, asked, cluster)
    adopted = wanted.services
    own = [each for each in scaled if not (adopted and _is_deployment(each))]
    files = dict(made.files)
    for path, text in policy_files(own, asked).items():
        files[path if path not in files else f"scalepolicy-{path}"] = text
    return replace(
        made,
        files=files,
        kept=(*made.kept, *(count_line(each, cluster) for each in scaled)),
        left=(*made.left, *(line for each in scaled for line in (*each.left, *_pinned(each, own)))),
        to_do=(*source_lines(scaled, asked), *_hand_overs(scaled), *_judged(files, scaled)),
    )


def _scalers(wanted: Wanted, cluster: Cluster | None) -> Iterator[dict[str, Any]]:
    """Autoscalers whose rules are translated, those of files first."""
    for path in wanted.files:
        yield from file_objects(path, wanted.namespace)
    for source in wanted.sources:
        if not wanted.is_scaler(source):
            continue
        assert cluster is not None
        if source.kind == LLM_SCALER:
            yield custom_object(source, _OPERATOR, cluster)
        else:
            yield named_object(source, cluster)


def _once_each(scaled: list[Scaled]) -> None:
    """One owner a workload: which of two rules is right is not ours to say."""
    owners: dict[Any, str] = {}
    for each in scaled:
        first = owners.setdefault(each.target, each.scaler)
        if first != each.scaler:
            raise Stalled(
                f"{first} and {each.scaler} both scale {each.target}: name one of them",
                code="source-not-carried",
            )


def _of_cluster(
    wanted: Wanted, scaled: list[Scaled], asked: MetricSources, cluster: Cluster
) -> Imported:
    """What is carried as it is, and what the cold-start operator's objects become."""
    converted = [
        convert(*cold_start_object(source, cluster))
        for source in wanted.sources
        if source.kind in COLD_START_KINDS
    ]
    gathered = [
        gather(source, cluster)
        for source in wanted.sources
        if source.kind not in COLD_START_KINDS and not wanted.is_scaler(source)
    ]
    if wanted.services:
        gathered += _targets(scaled, gathered, cluster)
    spaces = {found.ref.namespace for part in gathered for found in part.objects} - {""}
    scalers = replace(
        read_scalers(spaces, cluster), translated={each.target: each for each in scaled}
    )
    made = bundles_of(gathered, scalers, services=wanted.services, asked=asked)
    return with_converted(made, converted)


def _targets(
    scaled: list[Scaled], gathered: list[Gathered], cluster: Cluster
) -> Iterator[Gathered]:
    """The Deployments that translated autoscalers scale, where nobody named them."""
    known = {found.ref for part in gathered for found in part.objects}
    for each in scaled:
        if _is_deployment(each) and each.target not in known:
            yield gather(Source("deployment", each.target.name, each.target.namespace), cluster)


def _is_deployment(scaled: Scaled) -> bool:
    return (scaled.target.group, scaled.target.kind) == ("apps", "Deployment")


def _pinned(scaled: Scaled, own: list[Scaled]) -> tuple[str, ...]:
    """What is said of a scaler that keeps its target at zero and becomes no file."""
    if scaled.scaling is not None or scaled not in own:
        return ()
    return (f"{scaled.scaler} spec.maxReplicas (0 pins it at zero: scale it there, and no more)",)


def _hand_overs(scaled: list[Scaled]) -> tuple[str, ...]:
    """What stops the old owner, so that no two write one count."""
    lines = []
    if any(each.scaler.startswith(f"{_OPERATOR}/") for each in scaled):
        lines.append("scale llmscaleoperator to 0, or delete the LLMScalers, before the merge")
    lines += [
        f"delete {each.scaler} after the merge; the count stays its own until then"
        for each in scaled
        if not each.scaler.startswith(f"{_OPERATOR}/")
    ]
    return tuple(lines)


def _judged(files: dict[str, str], scaled: list[Scaled]) -> tuple[str, ...]:
    """What validate says of the files that scale, so that nobody commits it unseen."""
    if not scaled:
        return ()
    lines = []
    for path, text in sorted(files.items()):
        found = check_file(path, text.encode())
        lines += [str(finding) for finding in found if finding.code != _NOT_YET]
        if any(finding.code == _NOT_YET for finding in found):
            lines.append(f"{path} waits for a version that obeys it: validate says {_NOT_YET}")
    return tuple(lines)
