"""Fields that name files of the repository, given the names of other files."""

from __future__ import annotations

import pytest

from stoker.errors import BadInput
from stoker.model.fleet import Bundle
from stoker.model.left_out import LeftOut, WhyLeftOut
from stoker.source import source
from stoker.source.include import left_out_finding
from unit.source.source_builders import (
    BUNDLE,
    FLEET,
    SERVICE,
    MemoryRepo,
    codes,
    desired_of,
    fleet_with,
    with_spec,
)

CLIMBING = "../../../../etc/passwd"
ABSOLUTE = "/etc/passwd"
REMOTE = "https://evil.example/values.yaml"
FIELDS = {
    "include": lambda path: {"fleet.yaml": FLEET.replace("/models/*.yaml", path)},
    "manifests": lambda path: {"models/b.yaml": BUNDLE.replace('"*.yaml"', f'"{path}"')},
    "jinja paths": lambda path: {
        "models/b.yaml": BUNDLE.replace('manifests: ["*.yaml"]', f'jinja: {{paths: ["{path}"]}}')
    },
    "templates": lambda path: {"fleet.yaml": fleet_with(f'templates: ["{path}"]')},
}
CODES = {
    CLIMBING: {"path-outside-repository"},
    ABSOLUTE: {"include-no-match", "manifest-no-match", "templates-no-match"},
    REMOTE: {"include-no-match", "manifest-no-match", "templates-no-match"},
}
"""An absolute path starts at the root of the repository, where there is no such file."""


def findings_of(files):
    """What is wrong with the units, or with the Fleet file itself."""
    try:
        return desired_of(files).findings
    except BadInput as error:
        return error.findings


@pytest.mark.parametrize("path", CODES)
@pytest.mark.parametrize("files", FIELDS.values(), ids=FIELDS.keys())
def test_a_path_names_a_file_of_this_commit_or_nothing(files, path):
    """b.A rows 1 (CVE-2022-24348), 2, 3 and 6: one place resolves paths, for every command."""
    findings = findings_of({"models/q.yaml": SERVICE, **files(path)})

    found = [f for f in findings if f.code in CODES[path]]
    assert found, findings
    assert found[0].location.line > 0


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../b", "a//b", "..", "a\\x00b", "a b"]
)
def test_a_template_is_named_by_a_plain_path(name):
    """b.A row 2, b.C row 131 (CVE of kin: a name becomes a path)."""
    desired = desired_of({"models/q.yaml": with_spec(f'render: {{template: "{name}"}}')})

    assert ["spec.render.template"] == [f.field for f in desired.findings] or ["invalid-yaml"] == [
        f.code for f in desired.findings
    ]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("{name: qwen}", '{name: "../../x"}', "metadata.name"),
        ("{name: qwen}", "{name: /etc}", "metadata.name"),
        ("{name: qwen}", '{name: qwen, namespace: "../kube-system"}', "metadata.namespace"),
        ("hf://Qwen/Qwen2.5-7B", "hf://../../etc", "spec.model.uri"),
        ("hf://Qwen/Qwen2.5-7B", "hf://Qwen/..", "spec.model.uri"),
        ("gpu: {count: 1}", "gpu: {count: 1}\n  cache: {type: PVC, claim: ../x}", "spec.cache.claim"),
        (
            "gpu: {count: 1}",
            "gpu: {count: 1}\n  cache: {type: HostPath, path: /mnt/../etc}",
            "spec.cache.path",
        ),
    ],
)  # fmt: skip
def test_a_name_that_becomes_a_path_a_label_or_an_address_is_plain(old, new, field):
    """b.C rows 128 (CVE-2025-68476), 129 and 131."""
    desired = desired_of({"models/q.yaml": SERVICE.replace(old, new)})

    assert field in [f.field for f in desired.findings]


LEFT_OUT = [
    (WhyLeftOut.LINK, "link-not-followed"),
    (WhyLeftOut.LONG_PATH, "path-too-long"),
    (WhyLeftOut.UNREADABLE, "file-unreadable"),
]


@pytest.mark.parametrize(("why", "code"), LEFT_OUT)
def test_what_a_pattern_names_and_no_file_is_is_told_and_holds_deletes(why, code):
    """b.A rows 4 and 5: left out in silence, the unit that was moved there would be pruned."""
    repo = MemoryRepo({"fleet.yaml": FLEET, "models/q.yaml": SERVICE, "models/b.yaml": BUNDLE})
    repo.missed = (LeftOut("elsewhere/x.yaml", why), LeftOut("models/l.yaml", why))

    desired = source(repo, "fleet.yaml")

    assert {(code, "models/l.yaml")} == {(f.code, f.location.path) for f in desired.findings}
    assert not desired.unit_set_known


@pytest.mark.parametrize(("why", "code"), LEFT_OUT)
def test_a_health_file_that_cannot_be_read_is_told(why, code):
    """Otherwise its rules would cease without a word."""
    repo = MemoryRepo({"fleet.yaml": FLEET, "models/q.yaml": SERVICE})
    repo.missed = (LeftOut("policies/health/l.yaml", why),)

    assert [code] == codes(source(repo, "fleet.yaml"))


def test_a_fleet_file_that_cannot_be_read_is_missing_and_says_why():
    repo = MemoryRepo({"models/q.yaml": SERVICE})
    repo.missed = (LeftOut("fleet.yaml", WhyLeftOut.LINK),)

    with pytest.raises(BadInput, match="symbolic link") as caught:
        source(repo, "fleet.yaml")

    assert caught.value.code == "fleet-file-missing"


def test_a_path_that_is_too_long_is_shown_by_its_ends():
    """Whoever looks for the file needs both, and no log wants all of it."""
    path = f"models/{'a' * 5000}/b.yaml"

    finding = left_out_finding(LeftOut(path, WhyLeftOut.LONG_PATH))

    shown = finding.location.path
    assert shown.startswith("models/aaa")
    assert shown.endswith("aaa/b.yaml")
    assert len(shown) < 250
    assert f"{len(path)} characters" in finding.message


def test_files_are_found_by_the_letters_they_are_spelled_with():
    """b.F row 49: what is found is what is checked and applied, whatever the case of its end."""
    bundle = BUNDLE.replace('"*.yaml"', '"*.YAML"')
    files = {"models/b.yaml": bundle, "models/x.YAML": "a: 1", "models/y.yaml": SERVICE}

    (base, _) = desired_of(files).units

    assert isinstance(base.spec, Bundle)
    assert [blob.path for blob in base.spec.manifests] == ["models/x.YAML"]
