"""Signals through the real Prometheus, which scrapes two engine stand-ins: its restart, its
absence and a scrape that misses one engine are never taken for a measurement.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from stoker.clock import SystemClock
from stoker.model.readings import PodTarget, Reading, Sample, SignalAsk, Unmeasurable
from stoker.model.refs import UnitRef
from stoker.model.scaling import (
    Metric,
    MetricSource,
    MetricSourceType,
    PrometheusQuery,
    ScaleDown,
    Scaling,
)
from stoker.signals import SignalReader
from stoker.sim.engine import Engine, EngineProfile

PROGRAM = shutil.which("prometheus")
SETTLE_SECONDS = 3.0
"""Three of its scrape intervals here."""
WAITING = "vllm:num_requests_waiting{$pods}"

pytestmark = pytest.mark.skipif(
    PROGRAM is None and os.environ.get("CI") != "true",
    reason="no Prometheus here: install prometheus",
)


class Prometheus:
    """The real program on one port and one folder, as often as it is started."""

    def __init__(self, folder: Path, targets: dict[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        jobs = [
            f'      - targets: ["{address}"]\n        labels: {{namespace: llm, pod: {pod}}}'
            for pod, address in targets.items()
        ]
        config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
        config += "  - job_name: engines\n    static_configs:\n" + "\n".join(jobs) + "\n"
        (folder / "prometheus.yml").write_text(config, encoding="utf-8")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        assert PROGRAM is not None, "CI has no Prometheus: .ci/run installs it"
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    PROGRAM,
                    f"--config.file={self._folder}/prometheus.yml",
                    f"--storage.tsdb.path={self._folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None


def wait_for(look: Callable[[], Reading], wanted: Callable[[Reading], bool]) -> Reading:
    """Look until it is what is wanted; the limit is for tests that fail."""
    pause = threading.Event()
    found = look()
    for _ in range(100):
        if wanted(found):
            return found
        pause.wait(0.2)
        found = look()
    raise AssertionError(f"at last: {found}")


def is_sample(reading: Reading) -> bool:
    return isinstance(reading, Sample)


def why(reading: Reading) -> tuple[str, str]:
    assert isinstance(reading, Unmeasurable), reading
    return reading.code, reading.why


class Rig:
    """Two engines that say how many requests wait, a Prometheus, and a reader that asks it."""

    def __init__(self, folder: Path) -> None:
        self.engines = [Engine(EngineProfile(models=("qwen",))).start() for _ in range(2)]
        for engine, waiting in zip(self.engines, (3, 5), strict=True):
            engine.metrics.waiting.set(waiting)
        self.names = ("qwen-0", "qwen-1")
        addresses = [engine.address for engine in self.engines]
        self.prometheus = Prometheus(folder, dict(zip(self.names, addresses, strict=True)))
        self.reader = SignalReader(SystemClock(), lambda _source: {}, settle_seconds=SETTLE_SECONDS)

    def ask(self, query: str, costs: str = "") -> SignalAsk:
        url = f"http://127.0.0.1:{self.prometheus.port}"
        cost = PrometheusQuery("main", costs) if costs else None
        scaling = Scaling(
            min_replicas=1,
            max_replicas=4,
            interval_ms=5_000,
            metrics=(Metric("m", PrometheusQuery("main", query), 1.0),),
            scale_down=ScaleDown(deletion_cost=cost),
        )
        return SignalAsk(
            ref=UnitRef("ModelService", "llm", "qwen"),
            scaling=scaling,
            pods=tuple(PodTarget(name, f"uid-{name}", "", ready=True) for name in self.names),
            selector=f'namespace="llm",pod=~"{"|".join(self.names)}"',
            sources=(MetricSource("main", MetricSourceType.PROMETHEUS, url),),
        )

    def read(self, query: str) -> Reading:
        (found,) = self.reader.read((self.ask(query),), 5.0)
        return found.metrics[0][1]

    def costs(self, query: str) -> tuple[tuple[str, float], ...]:
        (found,) = self.reader.read((self.ask("1", query),), 5.0)
        return found.deletion_costs


@contextmanager
def running(folder: Path) -> Iterator[Rig]:
    made = Rig(folder)
    with made.prometheus:
        yield made
    made.reader.close()
    for engine in made.engines:
        engine.crash()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """For tests that break it."""
    with running(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """For tests that only look: it measures already."""
    with running(tmp_path_factory.mktemp("prometheus")) as made:
        wait_for(lambda: made.read(f"avg({WAITING})"), is_sample)
        yield made


def test_values_come_through_the_real_program(shared):
    measured = shared.read(f"avg({WAITING})  # what waits")
    by_other_name = 'sum({__name__=~"vllm[:_]num_requests_waiting",$pods})'

    assert isinstance(measured, Sample)
    assert measured.value == 4.0
    assert is_sample(shared.read(by_other_name))
    assert shared.costs(f"{WAITING} * 100") == (("qwen-0", 300.0), ("qwen-1", 500.0))
    assert is_sample(shared.read("scalar(vector(7))"))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (WAITING, "many-values"),
        ("vllm:nothing{$pods}", "missing"),
        ("vector(0) / 0", "not-a-number"),
        ("vector(1) / 0", "not-a-number"),
        ("vector(-1)", "negative"),
        (f"{WAITING}[1m]", "refused"),
        ('"text"', "refused"),
        ("sum(", "refused"),
    ],
)
def test_what_is_no_value_is_unmeasurable(shared, query, code):
    """Issue D, bad input."""
    assert why(shared.read(query))[0] == code


def test_a_scrape_that_misses_one_engine_lowers_no_sum(rig):
    """PromQL sums what is left: 3 in place of 8."""
    whole = wait_for(lambda: rig.read(f"sum({WAITING})"), is_sample)
    rig.engines[1].crash()
    seen = []

    def look() -> Reading:
        seen.append(rig.read(f"sum({WAITING})"))
        return seen[-1]

    missed = wait_for(look, lambda reading: not is_sample(reading))

    assert isinstance(whole, Sample)
    assert {8.0} == {whole.value, *(each.value for each in seen if isinstance(each, Sample))}
    assert why(missed) == (
        "missing",
        "Prometheus does not scrape pod qwen-1, so that it would be left out",
    )


def test_a_restart_and_an_absence_are_unmeasurable_until_all_is_scraped_again(rig):
    """Issue D, figure 3: replicas never fall because of a restart of Prometheus."""
    wait_for(lambda: rig.read(f"sum({WAITING})"), is_sample)
    rig.prometheus.stop()
    gone = rig.read(f"sum({WAITING})")
    rig.prometheus.start()
    back = wait_for(
        lambda: rig.read(f"sum({WAITING})"),
        lambda reading: is_sample(reading) or why(reading)[0] not in {"unreachable", "refused"},
    )
    later = wait_for(lambda: rig.read(f"sum({WAITING})"), is_sample)

    assert why(gone) == ("unreachable", "source main: nobody listens there")
    assert why(back)[0] in {"stale", "missing"}
    assert isinstance(later, Sample)
    assert later.value == 8.0
