"""Which files a template name stands for."""

from __future__ import annotations

import pytest

from stoker.errors import SourceLocation
from stoker.model.fleet import Blob, Fleet, FleetMode
from stoker.render.template_files import is_main, template_index


def index(*paths, folders=("templates",)):
    fleet = Fleet("f", "uid", FleetMode.OBSERVE, SourceLocation(), template_paths=folders)
    return template_index(fleet, tuple(Blob(path, f"oid of {path}") for path in paths))


SHIPPED = (
    "vllm/v1/deployment.yaml.j2",
    "vllm/v1/inferencepool.yaml.j2",
    "vllm/v1/leaderworkerset.yaml.j2",
    "vllm/v1/poddisruptionbudget.yaml.j2",
    "vllm/v1/service.yaml.j2",
    "vllm/v1/serviceaccount.yaml.j2",
)


def test_the_shipped_template_is_found():
    assert SHIPPED == index().mains("vllm/v1")


def test_the_fleets_own_folder_replaces_the_shipped_one_whole():
    """Half of one template and half of another would be neither."""
    assert ("vllm/v1/pod.yaml.j2",) == index("templates/vllm/v1/pod.yaml.j2").mains("vllm/v1")


def test_a_template_may_be_one_file():
    assert ("vllm.yaml.j2",) == index("templates/vllm.yaml.j2").mains("vllm")


def test_earlier_folders_win():
    found = index("b/x.yaml.j2", "a/x.yaml.j2", folders=("/a/", "b"))

    assert "a/x.yaml.j2" == found.own["x.yaml.j2"].path


def test_files_of_other_folders_and_odd_names_are_left_out():
    found = index("elsewhere/x.yaml.j2", "templates/a b.yaml.j2", "templates/{x}.yaml.j2")

    assert not found.own


@pytest.mark.parametrize("name", ["nope", "../secrets", "/etc", "", "vllm", "vllm/v1/service"])
def test_no_other_name_stands_for_a_shipped_template(name):
    expected = ("vllm/v1/service.yaml.j2",) if name == "vllm/v1/service" else ()

    assert expected == index().mains(name)


@pytest.mark.parametrize(
    ("name", "main"),
    [
        ("a.yaml.j2", True),
        ("a.yml.j2", True),
        ("_a.yaml.j2", False),
        ("a.j2", False),
        ("d/_a.yaml.j2", False),
    ],
)
def test_files_with_an_underscore_are_parts(name, main):
    assert main is is_main(name)


def test_the_key_changes_with_any_file():
    keys = {index().key, index("templates/a.j2").key, index("templates/b.j2").key}

    assert 3 == len(keys)
