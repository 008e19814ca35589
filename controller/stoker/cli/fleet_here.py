"""Which fleet a command is about and the cluster it is in, without rendering anything.

`uninstall` uses it: it must work when the files of the units are broken, and, with a fleet
id, when there is no repository at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stoker.cli import session
from stoker.cli.session import Target, local_repo, only_fleet
from stoker.errors import Stalled
from stoker.model.ports import Cluster
from stoker.objects.names import fleet_id_of
from stoker.source import read_fleet

__all__ = ["FleetHere", "fleet_here"]


@dataclass(frozen=True, slots=True)
class FleetHere:
    """A fleet and its cluster. `name` is empty where only the id was given."""

    cluster: Cluster
    fleet_id: str
    name: str = ""


@contextmanager
def fleet_here(path: Path, target: Target) -> Iterator[FleetHere]:
    """The fleet of the folder, or of `target.fleet_id` alone; closed after use.

    Raises Stalled with code wrong-cluster when the Fleet file names another cluster.
    """
    client = session.connect(
        target.kubeconfig,
        target.context,
        timeout_seconds=target.timeout_seconds,
        as_user=target.as_user,
    )
    try:
        uid = client.server().cluster_uid
        if target.fleet_id:
            yield FleetHere(client, target.fleet_id)
            return
        name, wanted = _fleet_file(path, target.fleet_path)
        if wanted != uid:
            raise Stalled(
                f"this cluster is {uid}, fleet {name} belongs to {wanted}",
                code="wrong-cluster",
                hint="choose another context",
            )
        yield FleetHere(client, fleet_id_of(uid, name), name)
    finally:
        client.close()


def _fleet_file(path: Path, wanted: str) -> tuple[str, str]:
    """Name of the fleet and UID of its cluster, from its file alone."""
    repo = local_repo(path)
    try:
        at = repo.fetch()
        place = only_fleet(repo, at, wanted)
        blobs = tuple(blob for blob in repo.tree(at.commit) if blob.path == place)
        if not blobs:
            raise Stalled(f"{place} does not exist", code="fleet-file-missing")
        fleet = read_fleet(place, repo.read(blobs)[0]).fleet
    finally:
        repo.close()
    return fleet.name, fleet.cluster_uid
