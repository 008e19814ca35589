"""Fixtures that every test may ask for, and the rules that every test obeys.

Live tests run last and share one real control plane. Nothing but loopback can be reached.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.sim.controlplane import COMPONENTS, ControlPlane
from stoker.sim.controlplane_binary import Programs, find_or_build
from stoker.sim.git_http import GitServer

# Speed is measured in benchmarks/ only: a busy machine must not fail a property.
settings.register_profile(
    "full", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("quick", settings.get_profile("full"))
settings.load_profile("quick")
QUICK_SHARE = 0.3
"""Of the examples that a property asks for, in the profile `quick`; `full` plays them all."""
QUICK_LEAST = 10

pytest.register_assert_rewrite("stories.crash.oracle")

_CONNECT = socket.socket.connect
_CONNECT_EX = socket.socket.connect_ex
_GETADDRINFO = socket.getaddrinfo


# ------------------------------------------------------------------------ rules


def pytest_configure(config: pytest.Config) -> None:
    socket.socket.connect = _guarded_connect  # type: ignore[assignment, method-assign]
    socket.socket.connect_ex = _guarded_connect_ex  # type: ignore[assignment, method-assign]
    socket.getaddrinfo = _guarded_getaddrinfo


def pytest_unconfigure(config: pytest.Config) -> None:
    socket.socket.connect = _CONNECT  # type: ignore[method-assign]
    socket.socket.connect_ex = _CONNECT_EX  # type: ignore[method-assign]
    socket.getaddrinfo = _GETADDRINFO


def pytest_itemcollected(item: pytest.Item) -> None:
    """Play fewer examples of a property, unless with `--hypothesis-profile full`.

    Here for all of them, so that a test says how many it needs and nothing of how it is run.
    """
    test: Any = getattr(item, "obj", None)
    if not is_hypothesis_test(test) or settings.get_current_profile_name() != "quick":
        return
    asked = test._hypothesis_internal_use_settings
    if asked.max_examples > QUICK_LEAST and not hasattr(test, "_played_quickly"):
        fewer = max(QUICK_LEAST, round(asked.max_examples * QUICK_SHARE))
        test._hypothesis_internal_use_settings = settings(asked, max_examples=fewer)
        test._played_quickly = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unit tests first, whatever the random order: they fail in seconds.

    Of these the ones that are given much time come first, so that no worker is left alone
    with one of them at the end.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[bool, float]:
    if item.get_closest_marker("live") is not None:
        return True, 0
    patience = item.get_closest_marker("timeout")
    return False, -patience.args[0] if patience is not None and patience.args else 0


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane before the first test's time limit runs."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker("live") for item in session.items):
        _programs(session.config)


def _is_local(host: Any) -> bool:
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refused(address: Any) -> bool:
    return isinstance(address, tuple) and not _is_local(address[0])


def _guarded_connect(self: socket.socket, address: Any) -> None:
    if _refused(address):
        raise OSError(errno.ENETUNREACH, f"tests reach loopback only, not {address}")
    _CONNECT(self, address)


def _guarded_connect_ex(self: socket.socket, address: Any) -> int:
    return errno.ENETUNREACH if _refused(address) else _CONNECT_EX(self, address)


def _guarded_getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    if not _is_local(name):
        raise socket.gaierror(socket.EAI_NONAME, f"tests resolve loopback only, not {name}")
    return _GETADDRINFO(host, *arguments, **options)


# --------------------------------------------------------------------- fixtures


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Commands configure the log of the process; the next test finds it as it was."""
    log = logging.getLogger("stoker")
    level, propagate, handlers = log.level, log.propagate, list(log.handlers)
    yield
    log.setLevel(level)
    log.propagate = propagate
    log.handlers[:] = handlers


_FOUND = pytest.StashKey[Programs | str]()


def _programs(config: pytest.Config) -> Programs | str:
    """The control plane's programs, looked for (and built) once a session."""
    if _FOUND not in config.stash:
        config.stash[_FOUND] = find_or_build(lambda text: print(f"\n{text}", flush=True))  # noqa: T201
    return config.stash[_FOUND]


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One real control plane for all live tests; each test makes namespaces of its own."""
    with _control_plane(request, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="module")
def own_control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane for the tests of one module, which use it as if nobody else did."""
    with _control_plane(request, tmp_path_factory.mktemp("own-control-plane")) as running:
        yield running


@pytest.fixture
def fresh_control_plane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane for one test."""
    with _control_plane(request, tmp_path / "control-plane") as running:
        yield running


@pytest.fixture(scope="module")
def bare_control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """As `own_control_plane`, but API server and etcd alone: no controller fills a status."""
    folder = tmp_path_factory.mktemp("bare-control-plane")
    with _control_plane(request, folder, ("etcd", "kube-apiserver")) as running:
        yield running


def _control_plane(
    request: pytest.FixtureRequest, folder: Path, components: tuple[str, ...] = COMPONENTS
) -> ControlPlane:
    programs = _had(request.config)
    return ControlPlane(folder, components=components, programs=programs, audit=True)


def _had(config: pytest.Config) -> Programs:
    """The programs; without them the test is skipped, and in CI it fails."""
    programs = _programs(config)
    if not isinstance(programs, str):
        return programs
    reason = f"no control plane: {programs}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def live_transport(control_plane: ControlPlane) -> Iterator[HttpsTransport]:
    """The administrator's connection to it."""
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
    yield transport
    transport.close()


@pytest.fixture(scope="session")
def live_cluster(live_transport: HttpsTransport) -> Client:
    """The Cluster port on the real API server."""
    return Client(live_transport)


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    """An empty Git host over smart HTTP that lets everybody in."""
    with GitServer(tmp_path / "git-host") as server:
        yield server
