"""Published schemas are draft-07, take what is right and refuse what is wrong."""

import json

import jsonschema
import pytest
import yaml

from shape.docs_console import ROOT
from stoker.cli.init import _BUNDLE, _MODEL
from stoker.cli.schema import all_schemas, schema_text

EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").rglob("*.yaml")
    if "stoker.dev/v1alpha1" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("kind", sorted(all_schemas()))
def test_a_schema_is_valid_draft_07(kind):
    """Editors' YAML plug-ins read no newer draft."""
    schema = all_schemas()[kind]

    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: str(p.relative_to(ROOT / "examples")))
def test_examples_are_accepted(path):
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        jsonschema.Draft7Validator(all_schemas()[document["kind"]]).validate(document)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (_MODEL, {"replica": 2}),
        (_MODEL, {"replicas": "two"}),
        (_MODEL, {"drain": {"max": "soon"}}),
        (_MODEL, {"render": {"overlays": []}}),
        (_BUNDLE, {"render": {"manifests": []}}),
    ],
    ids=["unknown key", "wrong type", "no duration", "not implemented", "empty list"],
)
def test_what_validate_refuses_the_editor_marks(text, change):
    document = yaml.safe_load(text)
    validator = jsonschema.Draft7Validator(all_schemas()[document["kind"]])
    validator.validate(document)
    document["spec"].update(change)

    assert not validator.is_valid(document)


def test_one_schema_is_printed(shell):
    answer = shell("schema", "Plan")

    assert answer.code == 0
    assert json.loads(answer.out) == all_schemas()["Plan"]


def test_all_schemas_are_written_a_file_each(shell):
    answer = shell("schema", "--all", "--to", shell.folder / "schemas")
    written = {p.name: p.read_text() for p in (shell.folder / "schemas").iterdir()}

    assert answer.code == 0
    assert written == {f"{k.lower()}.json": schema_text(s) for k, s in all_schemas().items()}


def test_every_field_of_every_schema_has_a_description():
    """An editor shows it; the docs are made from it."""
    silent = []

    def visit(node, path):
        for name, field in node.get("properties", {}).items():
            if not field.get("description"):
                silent.append(f"{path}.{name}")
            visit(field, f"{path}.{name}")
            visit(field.get("items", {}), f"{path}.{name}[]")

    for kind, schema in all_schemas().items():
        visit(schema, kind)
        for name, block in schema.get("definitions", {}).items():
            visit(block, f"{kind}/{name}")

    assert silent == []
