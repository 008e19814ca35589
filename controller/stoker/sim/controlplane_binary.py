"""Where the control plane's programs come from.

In: the environment and the three Go source files. Out: `Programs`, or a reason why there
are none. Called by `sim.controlplane`, the test fixtures, `stoker dev cluster` and the
Makefile. Order: a folder named by KUBEBUILDER_ASSETS, the user's cache, a Go build.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMPONENTS", "Programs", "cached_program", "find_or_build", "source_hash"]

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SOURCE_FILES = ("main.go", "go.mod", "go.sum")
LEAST_GO = (1, 26)
BUILD_TIMEOUT_SECONDS = 1800
"""A cold build took 4.5 minutes on two cores (measured 2026-11-29)."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Programs:
    """How to start each component.

    `folder` holds one program a component; or `program` is the one that holds all four
    and takes the component's name as first argument. `origin` says where it was found.
    """

    origin: str
    folder: Path | None = None
    program: Path | None = None

    def command(self, component: str) -> tuple[str, ...]:
        """The first words of the command line that starts that component."""
        if self.program is not None:
            return (str(self.program), component)
        return (str((self.folder or Path()) / component),)


def find_or_build(
    progress: Progress | None = None,
    *,
    components: tuple[str, ...] = COMPONENTS,
    build: bool = True,
    environ: Mapping[str, str] | None = None,
) -> Programs | str:
    """Programs for those components, or the reason why there are none.

    `build=False` looks but doesn't compile. `progress` is told of the one slow step.
    """
    environment = dict(os.environ if environ is None else environ)
    tell = progress or (lambda _text: None)
    reasons = []
    assets = environment.get("KUBEBUILDER_ASSETS", "")
    if assets:
        missing = [name for name in components if not _is_program(Path(assets) / name)]
        if not missing:
            return Programs(origin="KUBEBUILDER_ASSETS", folder=Path(assets))
        reasons.append(f"KUBEBUILDER_ASSETS lacks {', '.join(missing)}")
    source = source_folder()
    if source is None:
        return _join([*reasons, "the control plane's Go files are neither shipped nor here"])
    cached = cached_program(source, environment)
    if _is_program(cached):
        return Programs(origin="cache", program=cached)
    reasons.append("no cached build")
    if not build:
        return _join([*reasons, "building was not asked for"])
    failure = _build(source, cached, environment, tell)
    if failure:
        return _join([*reasons, failure])
    return Programs(origin="build", program=cached)


def source_folder() -> Path | None:
    """The Go files: of a checkout first, else the ones shipped in the wheel."""
    package = Path(__file__).parents[1]
    for folder in (
        package.parents[1] / "tests" / "controlplane",
        package / "_shipped" / "controlplane",
    ):
        if all((folder / name).is_file() for name in SOURCE_FILES):
            return folder
    return None


def source_hash(source: Path) -> str:
    """16 hex digits over the three files: another release is another program."""
    digest = hashlib.sha256()
    for name in SOURCE_FILES:
        digest.update(f"{name}\0".encode())
        digest.update((source / name).read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def cached_program(source: Path, environ: Mapping[str, str]) -> Path:
    """Where the build of these sources is kept; it may not exist yet."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")) / ".cache")
    return Path(cache).expanduser() / "stoker" / f"controlplane-{source_hash(source)}"


def _build(source: Path, target: Path, environ: Mapping[str, str], tell: Progress) -> str:
    """Compile into the cache; gives the reason of a failure, or nothing."""
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        return "no Go toolchain on PATH"
    version = _go_version(go, environ)
    if version < LEAST_GO:
        found = f"go{version[0]}.{version[1]}" if any(version) else "no version"
        return f"Go {LEAST_GO[0]}.{LEAST_GO[1]} or newer is needed, found {found}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock")):
            if _is_program(target):
                return ""
            tell("building the Kubernetes control plane from Go modules (about 5 minutes, once)")
            return _compile(go, source, target, environ)
    except OSError as error:
        return f"the cache folder can't be written: {error}"


def _compile(go: str, source: Path, target: Path, environ: Mapping[str, str]) -> str:
    with tempfile.TemporaryDirectory(prefix="stoker-controlplane-") as scratch:
        # A copy: -mod=mod may touch go.mod, and shipped files may be read-only.
        for name in SOURCE_FILES:
            shutil.copyfile(source / name, Path(scratch) / name)
        made = Path(scratch) / "controlplane"
        command = [go, "build", "-ldflags", _linker_flags(source), "-o", str(made), "."]
        environment = {**environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
        child = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate(timeout=BUILD_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"go build took longer than {BUILD_TIMEOUT_SECONDS} s"
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if child.returncode != 0:
            last = output.decode(errors="replace").strip().splitlines()[-3:]
            return f"go build failed: {' / '.join(last)}"
        # Copied beside the target and then renamed: a reader never sees half a program.
        partial = target.with_suffix(".partial")
        shutil.copyfile(made, partial)
        partial.chmod(0o755)
        partial.replace(target)
    return ""


def _linker_flags(source: Path) -> str:
    found = re.search(
        r"^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\S+)$", _go_mod(source), re.MULTILINE
    )
    major, minor, patch = found.groups() if found else ("0", "0", "0")
    package = "k8s.io/component-base/version"
    return (
        f"-s -w -X {package}.gitVersion=v{major}.{minor}.{patch}"
        f" -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )


def _go_mod(source: Path) -> str:
    return (source / "go.mod").read_text(encoding="utf-8")


def _go_version(go: str, environ: Mapping[str, str]) -> tuple[int, int]:
    """(0, 0) when it doesn't say."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout.strip())
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process builds; the others wait and then find the result."""
    with path.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _join(reasons: list[str]) -> str:
    return "; ".join(reasons)
