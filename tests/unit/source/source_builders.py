"""A repository in memory and the smallest files that make a fleet."""

from __future__ import annotations

import hashlib
from textwrap import dedent

from stoker.errors import Stalled
from stoker.model.fleet import Blob, Desired, Unit
from stoker.model.left_out import LeftOut
from stoker.model.refs import SourceRevision
from stoker.source import SourceMemo, source

REVISION = "7ae557604adf67be50417f59c2c2f167def9a775"

FLEET = """\
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata: {name: prod}
spec:
  cluster: {uid: 6a0c1f0e}
  include: [/models/*.yaml]
  defaults: {namespace: llm}
  pools: [{name: l4}, {name: h100}]
"""

SERVICE = f"""\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {{name: qwen}}
spec:
  model: {{uri: hf://Qwen/Qwen2.5-7B, revision: {REVISION}}}
  engine: {{image: registry.example/vllm:1}}
  gpu: {{count: 1}}
"""

BUNDLE = """\
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {name: base}
spec:
  render: {manifests: ["*.yaml"]}
"""


class MemoryRepo:
    """The Repo port on a dict of files."""

    def __init__(self, files: dict[str, str | bytes], message: str = "Change") -> None:
        self.files = {p: c if isinstance(c, bytes) else c.encode() for p, c in files.items()}
        self.text = message
        self.reads = 0
        self.ref = "main"
        self.missed: tuple[LeftOut, ...] = ()

    @property
    def commit(self) -> str:
        listing = repr(sorted(self.files.items())) + self.text
        return hashlib.sha1(listing.encode()).hexdigest()

    def fetch(self):
        return SourceRevision(self.ref, self.commit)

    def resolve(self, revision):
        return SourceRevision(revision, self.commit)

    def tree(self, commit):
        assert commit == self.commit
        return tuple(
            Blob(path, hashlib.sha1(content).hexdigest())
            for path, content in sorted(self.files.items())
        )

    def left_out(self, commit):
        assert commit == self.commit
        return self.missed

    def read(self, blobs):
        self.reads += len(blobs)
        for blob in blobs:
            if len(self.files[blob.path]) > 5 * 2**20:
                raise Stalled(f"{blob.path} has too many bytes", code="file-too-large")
        return tuple(self.files[blob.path] for blob in blobs)

    def message(self, commit):
        assert commit == self.commit
        return self.text

    def commit_files(self, branch, files, message, *, attempts=5):
        raise NotImplementedError

    def read_branch(self, branch, prefix=""):
        return {}


def desired_of(files, memo: SourceMemo | None = None, **options) -> Desired:
    """The outcome of a fleet of these files beside the usual Fleet file."""
    return source(MemoryRepo({"fleet.yaml": FLEET, **files}, **options), "fleet.yaml", memo)


def with_spec(lines: str, base: str = SERVICE) -> str:
    """A unit file with more lines in its spec."""
    return base + "".join(f"  {line}\n" for line in dedent(lines).splitlines())


def service_of(lines: str = "", fleet: str = FLEET) -> Unit:
    """The one unit of a fleet whose service has these further lines."""
    desired = desired_of({"fleet.yaml": fleet, "models/qwen.yaml": with_spec(lines)})
    assert desired.findings == ()
    return desired.units[0]


def codes(desired: Desired) -> list[str]:
    return [finding.code for finding in desired.findings]


def named(name: str, text: str = SERVICE) -> str:
    return text.replace("name: qwen", f"name: {name}").replace("name: base", f"name: {name}")


def fleet_with(lines: str, base: str = FLEET) -> str:
    return base + "".join(f"  {line}\n" for line in lines.splitlines())
