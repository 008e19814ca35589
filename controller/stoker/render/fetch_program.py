"""The program of a Job that fetches weights ahead of a start. Text only; it runs in a pod.

It fetches the files that vLLM would: safetensors, else older formats. A lock on a file beside
the weights lets one at a time fetch a model to a node; the kernel gives it back when its
holder dies, however it dies. The hub's own library resumes partial files and locks each.
"""

from __future__ import annotations

__all__ = ["FETCH_PROGRAM", "IMAGE_PROGRAM"]

IMAGE_PROGRAM = "pass"
"""Where only the image is wanted: it is on the node once this has run."""

FETCH_PROGRAM = """\
import fcntl, hashlib, os, sys
from huggingface_hub import HfApi, snapshot_download

name, revision = sys.argv[1:]
home = os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
locks = os.path.join(home, "stoker-locks")
os.makedirs(locks, exist_ok=True)
key = hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()[:16]
with open(os.path.join(locks, key), "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    files = HfApi().list_repo_files(name, revision=revision)
    endings = (".safetensors", ".bin", ".pt")
    weights = [e for e in endings if any(f.endswith(e) for f in files)][:1]
    small = ["*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "*.py"]
    snapshot_download(
        name,
        revision=revision,
        allow_patterns=[*small, *("*" + e for e in weights or endings)],
        ignore_patterns=["original/**"],
    )
"""
