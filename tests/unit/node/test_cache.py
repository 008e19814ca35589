"""Weights on the node: only a whole copy of that very revision is warm, and links lead nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stoker.node import cache
from stoker.node.cache import CachedWeights, Inventory, inventory

A, B = "a" * 40, "b" * 40
MODEL = "models--org--tiny"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


class Hub:
    """A hub's cache, written as huggingface_hub writes it."""

    def __init__(self, root: Path, below: str = "huggingface/hub") -> None:
        self.root = root
        self.place = root / below
        self.place.mkdir(parents=True, exist_ok=True)

    def model(self, name: str = MODEL) -> Path:
        place = self.place / name
        for folder in ("blobs", "snapshots", "refs"):
            (place / folder).mkdir(parents=True, exist_ok=True)
        return place

    def add(self, name: str, content: str = "12345", commit: str = A, model: str = MODEL) -> Path:
        place = self.model(model)
        blob = place / "blobs" / f"{len(list((place / 'blobs').iterdir())):064x}"
        blob.write_text(content)
        return self.link(name, f"blobs/{blob.name}", commit, model)

    def link(self, name: str, target: str, commit: str = A, model: str = MODEL) -> Path:
        link = self.model(model) / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("../" * (name.count("/") + 2) + target)
        return link

    def whole(self, commit: str = A, model: str = MODEL) -> None:
        self.add("config.json", "{}", commit, model)
        self.add("model.safetensors", "12345678", commit, model)

    def copies(self) -> tuple[CachedWeights, ...]:
        found = inventory(self.root)
        assert found.copies is not None, found.why
        return found.copies

    def is_complete(self) -> bool:
        (copy,) = self.copies()
        return copy.complete


@pytest.fixture
def hub(tmp_path):
    return Hub(tmp_path)


def test_a_whole_copy_is_told_with_model_revision_and_size(hub):
    hub.whole()

    assert hub.copies() == (CachedWeights("hf://org/tiny", A, 10, complete=True),)


@pytest.mark.parametrize("below", ["huggingface/hub", "hub", "."])
def test_the_hub_is_found_below_the_volume_below_hf_home_or_as_it_is(tmp_path, below):
    Hub(tmp_path, below).whole()

    assert [copy.uri for copy in inventory(tmp_path).copies or ()] == ["hf://org/tiny"]


def test_revisions_are_told_apart(hub):
    hub.whole(A)
    hub.add("config.json", "{}", B)

    assert [(c.revision, c.complete) for c in hub.copies()] == [(A, True), (B, False)]


def test_models_without_an_organisation_keep_their_name(hub):
    hub.whole(model="models--gpt2")

    assert [copy.uri for copy in hub.copies()] == ["hf://gpt2"]


def test_files_that_revisions_share_are_counted_in_each(hub):
    hub.whole(A)
    blob = (hub.model() / "snapshots" / A / "model.safetensors").readlink().name
    hub.link("model.safetensors", f"blobs/{blob}", B)
    hub.add("config.json", "{}", B)

    assert [copy.size_bytes for copy in hub.copies()] == [10, 10]


# ------------------------------------------------------------- what is not whole


def test_configuration_alone_is_no_copy_that_is_warm(hub):
    hub.add("config.json", "{}")

    assert not hub.is_complete()


def test_weights_without_configuration_are_not_warm(hub):
    hub.add("model.safetensors")

    assert not hub.is_complete()


def test_a_shard_that_its_name_promises_and_is_missing_makes_it_partial(hub):
    hub.add("config.json", "{}")
    hub.add(SHARDS[0])
    before = hub.is_complete()
    hub.add(SHARDS[1])

    assert (before, hub.is_complete()) == (False, True)


def test_a_shard_that_the_index_names_and_is_missing_makes_it_partial(hub):
    hub.add("config.json", "{}")
    hub.add(INDEX, json.dumps({"weight_map": {"x": "part-1.safetensors", "y": "p2.safetensors"}}))
    hub.add("part-1.safetensors")
    before = hub.is_complete()
    hub.add("p2.safetensors")

    assert (before, hub.is_complete()) == (False, True)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"weight_map": 5}', '{"weight_map": {}}', "[" * 99]
)
def test_an_index_that_cannot_be_read_proves_nothing(hub, text):
    hub.whole()
    hub.add(INDEX, text)

    assert not hub.is_complete()


def test_a_download_in_progress_keeps_a_lone_file_from_being_believed(hub):
    """It may be the second file, whose link comes last."""
    hub.whole()
    (hub.model() / "blobs" / f"{'c' * 64}.incomplete").write_text("12")

    assert not hub.is_complete()


def test_a_download_of_another_revision_does_not_cool_a_copy_that_is_proved(hub):
    hub.add("config.json", "{}")
    for shard in SHARDS:
        hub.add(shard)
    (hub.model() / "blobs" / f"{'c' * 64}.incomplete").write_text("12")

    assert hub.is_complete()


def test_a_link_whose_blob_is_gone_makes_it_partial(hub):
    hub.whole()
    hub.link("tokenizer.json", f"blobs/{'d' * 64}")

    assert not hub.is_complete()


def test_an_empty_blob_makes_it_partial(hub):
    hub.whole()
    hub.add("tokenizer.json", "")

    assert not hub.is_complete()


def test_files_in_folders_of_a_snapshot_count(hub):
    hub.whole()
    hub.add("original/params.json", "{}")

    assert hub.is_complete()
    assert hub.copies()[0].size_bytes == 12


def test_a_cache_without_links_is_read_too(hub):
    """The hub writes files where the disk has no links."""
    place = hub.model() / "snapshots" / A
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    (place / "model.safetensors").write_text("123")

    assert hub.copies() == (CachedWeights("hf://org/tiny", A, 5, complete=True),)


# ------------------------------------------------------------------ links, bounds


@pytest.mark.parametrize("target", ["../../secret", "blobs/../../../secret", "blobs/..", "blobs/"])
def test_a_link_that_leads_elsewhere_is_not_followed(hub, target):
    """A pod that may write here could have us read the node's files."""
    (hub.root / "secret").write_text(json.dumps({"weight_map": {"a": "config.json"}}))
    hub.whole()
    hub.link(INDEX, target)

    assert not hub.is_complete()
    assert hub.copies()[0].size_bytes == 10


def test_an_absolute_link_is_not_followed(hub):
    hub.whole()
    (hub.model() / "snapshots" / A / "tokenizer.json").symlink_to("/etc/hostname")

    assert not hub.is_complete()


def test_a_blob_that_is_itself_a_link_or_a_pipe_is_none(hub):
    hub.whole()
    (hub.model() / "blobs" / "linked").symlink_to("/etc/hostname")
    os.mkfifo(hub.model() / "blobs" / "pipe")
    hub.link("a.json", "blobs/linked")
    hub.link("b.json", "blobs/pipe")

    assert not hub.is_complete()


@pytest.mark.parametrize("part", ["hub", "model", "snapshot"])
def test_folders_that_are_links_are_left_alone(tmp_path, part):
    real = Hub(tmp_path / "elsewhere")
    real.whole()
    own = Hub(tmp_path / "own")
    match part:
        case "hub":
            own.place.rmdir()
            own.place.symlink_to(real.place)
        case "model":
            (own.place / MODEL).symlink_to(real.place / MODEL)
        case _:
            own.model()
            (own.model() / "snapshots" / A).symlink_to(real.model() / "snapshots" / A)

    assert inventory(own.root).copies == ()


@pytest.mark.parametrize("name", ["main", "A" * 40, "a" * 39, "..."])
def test_only_commits_are_revisions(hub, name):
    hub.whole(commit=name)

    assert hub.copies() == ()


@pytest.mark.parametrize("name", ["datasets--org--x", "models--a--b--c", "models--", ".locks", "x"])
def test_only_models_are_told(hub, name):
    hub.whole(model=name)

    assert hub.copies() == ()


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert inventory(tmp_path / "absent") == Inventory(copies=())


def test_a_folder_that_cannot_be_read_is_unknown_and_not_empty(hub, monkeypatch):
    hub.whole()

    def refuse(place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(os, "scandir", refuse)
    found = inventory(hub.root)

    assert found.copies is None
    assert "Permission denied" in found.why


def test_more_files_than_are_looked_at_make_it_unknown(hub, monkeypatch):
    monkeypatch.setattr(cache, "MAX_FILES", 3)
    for number in range(4):
        hub.add(f"{number}.json")

    assert inventory(hub.root).copies is None


def test_more_revisions_than_are_told_make_it_unknown(hub, monkeypatch):
    monkeypatch.setattr(cache, "MAX_COPIES", 1)
    hub.whole(A)
    one = inventory(hub.root)
    hub.whole(B)

    assert len(one.copies or ()) == 1
    assert inventory(hub.root).copies is None


def test_folders_without_end_make_it_unknown(hub):
    hub.add("/".join("abcdefgh") + "/x.json")

    assert inventory(hub.root).copies is None
