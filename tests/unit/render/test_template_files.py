"""Which files a template name stands for."""

from __future__ import annotations

import pytest

from stoker.errors import SourceLocation
from stoker.model.fleet import Blob, Fleet, FleetMode
from stoker.render.template_files import is_main, template_index
from stoker.shipped import NEWEST_TEMPLATE
from stoker.source.schema_service import ModelServiceSpec


def index(*paths, folders=("templates",)):
    fleet = Fleet("f", "uid", FleetMode.OBSERVE, SourceLocation(), template_paths=folders)
    return template_index(fleet, tuple(Blob(path, f"oid of {path}") for path in paths))


SHIPPED = (
    "deployment",
    "inferencepool",
    "leaderworkerset",
    "poddisruptionbudget",
    "service",
    "serviceaccount",
)


@pytest.mark.parametrize("template", ["vllm/v1", "vllm/v2"])
def test_the_shipped_templates_are_found(template):
    assert tuple(f"{template}/{name}.yaml.j2" for name in SHIPPED) == index().mains(template)


def test_a_new_fleet_is_rendered_with_the_newest_one():
    """And a file that names none with the first: a new default would restart every pod."""
    versions = sorted({name.rpartition("/")[0] for name in index().shipped})

    assert versions[-1] == NEWEST_TEMPLATE
    assert (
        versions[0]
        == ModelServiceSpec.model_fields["render"].get_default(call_default_factory=True).template
    )


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
