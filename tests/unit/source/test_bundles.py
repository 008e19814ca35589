from __future__ import annotations

import pytest

from stoker.model.fleet import Blob, Bundle
from stoker.source import source
from unit.source.source_builders import (
    BUNDLE,
    FLEET,
    SERVICE,
    MemoryRepo,
    codes,
    desired_of,
    fleet_with,
)


def test_a_bundle_can_be_patched():
    fleet = fleet_with(
        "unitPatches: [{target: {kind: Bundle, name: base}, patch: {spec: {render: {manifests: [/b.yaml]}}}}]"
    )

    desired = desired_of({"fleet.yaml": fleet, "models/x.yaml": BUNDLE, "b.yaml": ""})

    assert desired.units[0].spec == Bundle(manifests=(desired_blob("b.yaml", ""),))


def desired_blob(path: str, content: str) -> Blob:
    repo = MemoryRepo({path: content})
    blob: Blob = repo.tree(repo.commit)[0]
    return blob


def test_a_bundle_finds_its_files_in_order_and_leaves_unit_files_out():
    fleet = FLEET.replace("/models/*.yaml", "/b/*/bundle.yaml")
    bundle = BUNDLE.replace('["*.yaml"]', '[z.yaml, "*.yaml", ../shared/**]')
    files = {path: path for path in ["b/x/a.yaml", "b/x/z.yaml", "b/x/n.txt", "b/shared/d/s.yaml"]}

    desired = desired_of({"fleet.yaml": fleet, "b/x/bundle.yaml": bundle, **files})

    spec = desired.units[0].spec
    assert isinstance(spec, Bundle)
    assert [blob.path for blob in spec.manifests] == [
        "b/x/z.yaml",
        "b/x/a.yaml",
        "b/shared/d/s.yaml",
    ]
    assert spec.jinja == ()


def test_a_jinja_bundle_has_its_values():
    bundle = BUNDLE.replace(
        '{manifests: ["*.yaml"]}', "{jinja: {paths: [a.j2], values: {size: 0.5, x: null}}}"
    )

    desired = desired_of({"models/b.yaml": bundle, "models/a.j2": ""})

    spec = desired.units[0].spec
    assert isinstance(spec, Bundle)
    assert [blob.path for blob in spec.jinja] == ["models/a.j2"]
    assert spec.values == {"size": 0.5, "x": None}
    assert spec.manifests == ()


@pytest.mark.parametrize(
    ("render", "code", "field"),
    [
        ("{}", "bundle-render", "spec.render"),
        ("{manifests: [a.yaml], jinja: {paths: [a.yaml]}}", "bundle-render", "spec.render"),
        ("{manifests: []}", "invalid-value", "spec.render.manifests"),
        ("{manifests: [nope.yaml]}", "manifest-no-match", "spec.render.manifests[0]"),
        ("{manifests: [b.yaml]}", "manifest-no-match", "spec.render.manifests[0]"),
        ("{manifests: [../../x]}", "path-outside-repository", "spec.render.manifests[0]"),
        ("{jinja: {paths: [nope.j2]}}", "manifest-no-match", "spec.render.jinja.paths[0]"),
        ("{helm: {chart: x}}", "not-implemented-yet", "spec.render.helm"),
        ("{manifest: [a.yaml]}", "unknown-field", "spec.render.manifest"),
    ],
)
def test_a_wrong_bundle_is_one_finding(render, code, field):
    bundle = BUNDLE.replace('{manifests: ["*.yaml"]}', render)

    desired = desired_of({"models/b.yaml": bundle, "a.yaml": ""})

    assert [(code, field)] == [(f.code, f.field) for f in desired.findings]
    assert [ref.name for ref in desired.broken] == ["base"]
    assert desired.unit_set_known


def test_templates_are_all_files_of_their_folders():
    repo = MemoryRepo(
        {
            "c/fleet.yaml": fleet_with("templates: [own, /shared]"),
            "models/q.yaml": SERVICE,
            "c/own/vllm/v1.yaml.j2": "",
            "shared/x": "",
        }
    )

    desired = source(repo, "c/fleet.yaml")

    assert [blob.path for blob in desired.templates] == ["c/own/vllm/v1.yaml.j2", "shared/x"]
    assert desired.fleet.template_paths == ("c/own", "shared")


def test_a_changed_template_is_a_new_revision_of_what_may_use_it():
    """What depends on it asks whether a unit has applied this revision; the templates are part of it."""

    def digests(template: str, fleet: str = fleet_with("templates: [own]")) -> dict[str, str]:
        files = {
            "fleet.yaml": fleet,
            "own/x.yaml.j2": template,
            "models/qwen.yaml": SERVICE,
            "models/plain.yaml": BUNDLE.replace('"*.yaml"', '"m/*.yaml"').replace("base", "plain"),
            "models/m/map.yaml": "kind: ConfigMap\n",
        }
        return {unit.ref.kind: unit.digest for unit in desired_of(files).units}

    one, two = digests("a"), digests("b")
    unused = digests("a", FLEET), digests("b", FLEET)

    assert one["ModelService"] != two["ModelService"]
    assert one["Bundle"] == two["Bundle"] == unused[0]["Bundle"]
    assert unused[0] == unused[1]


def test_a_template_folder_without_files_is_an_error():
    desired = desired_of({"fleet.yaml": fleet_with("templates: [own]"), "models/q.yaml": SERVICE})

    assert codes(desired) == ["templates-no-match"]
    assert desired.unit_set_known


def test_a_digest_changes_with_what_the_files_say_about_the_unit_and_only_then():
    bundle = BUNDLE.replace("*.yaml", "/m/*.yaml")
    files = {"models/b.yaml": bundle, "models/q.yaml": SERVICE, "m/a.yaml": "1"}
    first = digests(files)

    assert digests({**files, "models/q.yaml": f"# comment\n{SERVICE}"}) == first
    assert digests({**files, "m/b.yaml": "2"})["qwen"] == first["qwen"]
    assert digests({**files, "m/b.yaml": "2"})["base"] != first["base"]
    assert digests({**files, "m/a.yaml": "2"})["base"] != first["base"]
    patched = fleet_with(
        "unitPatches: [{target: {kind: ModelService, name: qwen}, patch: {spec: {replicas: 4}}}]"
    )
    assert digests({**files, "fleet.yaml": patched})["qwen"] != first["qwen"]
    assert digests({**files, "fleet.yaml": patched})["base"] == first["base"]


def digests(files):
    return {unit.ref.name: unit.digest for unit in desired_of(files).units}
