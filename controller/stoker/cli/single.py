"""One writer a fleet: puts lease, keeper and gate together for `run`, `run --once` and `apply`.

A connected session and the fleet's id come in, a keeper of its lease goes out, and the
session's gate asks it from then on (design sections 2 and 6, note 14).
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stoker.cli.session import Session
from stoker.cli.state_namespace import ensure_namespace
from stoker.errors import Stalled
from stoker.kube.caller import check_caller
from stoker.loop.keeper import LeaseKeeper
from stoker.loop.lease import Lease, LeaseTiming

__all__ = ["END_SECONDS", "lease_name", "ourselves", "single_writer", "writing_alone"]

END_SECONDS = 1.0
"""How long the end of a process waits for a renewal in flight."""


def lease_name(fleet_id: str) -> str:
    """The Lease of a fleet, beside its inventory."""
    return f"stoker-{fleet_id}"


def single_writer(session: Session, fleet_id: str, timing: LeaseTiming) -> LeaseKeeper:
    """A keeper of the fleet's lease, not yet started; the session's writes hang on it.

    Makes sure that the API server knows us, and that the lease's namespace exists. Raises the
    error tree.
    """
    aside = session.aside(timing.renew_deadline / 2)
    check_caller(aside, session.expected_caller())
    ensure_namespace(aside, session.target.namespace, fleet_id)
    lease = Lease(
        aside,
        session.clock,
        namespace=session.target.namespace,
        name=lease_name(fleet_id),
        holder=ourselves(),
        timing=timing,
    )
    session.gate.guard(lease.admit, timing.write_seconds)
    return LeaseKeeper(lease)


@contextmanager
def writing_alone(
    session: Session,
    fleet_id: str,
    timing: LeaseTiming,
    tell: Callable[[str], None],
) -> Iterator[None]:
    """Hold the lease for one command; raises Stalled (lease-held) while another renews it.

    A lease that nobody gave back is watched for its duration, as any candidate does.
    """
    keeper = single_writer(session, fleet_id, timing)
    lease = keeper.lease
    told = False
    while not lease.renew():
        if lease.renewals_seen:
            raise Stalled(
                f"{lease.other} holds the lease of this fleet and renews it",
                code="lease-held",
                hint="it applies what is committed; or stop it first",
            )
        if not told:
            told = True
            tell(f"{lease.other or 'somebody'} held the lease: seeing whether it still does")
        session.clock.wait(lease.look_in)
    lease.begin(lease.term)
    keeper.start()
    try:
        yield
    finally:
        if keeper.stop(END_SECONDS):
            lease.release()


def ourselves() -> str:
    """A name unlike any other process's: pods of one host share its name, all have a process 1."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
