"""The program of a Job that fetches weights ahead of a start. Text only; it runs in a pod.

It fetches the files that vLLM would: safetensors, else older formats. A lock lets one at a time
fetch a model to a node; the kernel gives it back when its holder dies, however it dies. The
hub's own library resumes partial files and locks each. The mark beside it is what the node
reporter evicts by (node/evict.py). The shipped templates have the same
program.

Arguments: name on the hub (empty: look at the disk only), revision, Refuse or Allow for the
root disk, the bound of the folder in bytes or nothing.
"""

from __future__ import annotations

__all__ = ["FETCH_PROGRAM", "IMAGE_PROGRAM"]

IMAGE_PROGRAM = "pass"
"""Where only the image is wanted: it is on the node once this has run."""

FETCH_PROGRAM = """\
import fcntl, hashlib, json, os, sys

name, revision, root_disk, most_bytes = sys.argv[1:]
home = os.getenv("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
os.makedirs(home, exist_ok=True)
# The kubelet keeps these on its own disk, whatever the image is.
kubelet = [p for p in ("/etc/hosts", "/dev/termination-log") if os.path.exists(p)]
if root_disk == "Refuse" and os.stat(home).st_dev in {os.stat(p).st_dev for p in kubelet}:
    sys.exit(f"{home} is on the root disk: mount one there, or set cache.rootDisk to Allow")
if name:
    from huggingface_hub import HfApi, snapshot_download

    marks = os.path.join(home, "stoker-marks")
    os.makedirs(marks, exist_ok=True)
    key = hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()[:16]
    with open(os.path.join(marks, key + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(os.path.join(marks, key + ".json"), "w") as mark:
            json.dump({"name": name, "revision": revision, "mostBytes": most_bytes}, mark)
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
