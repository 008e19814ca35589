from __future__ import annotations

import json
import re
from typing import Any

from stoker.source import schemas


def walk(schema: Any):
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from walk(item)


def test_one_schema_a_kind_in_draft_07():
    made = schemas()

    assert list(made) == ["Bundle", "Fleet", "HealthPolicy", "ModelService", "ScalePolicy"]
    for kind, schema in made.items():
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert schema["properties"]["kind"]["const"] == kind
        assert json.loads(json.dumps(schema)) == schema


def test_every_field_has_a_description():
    for schema in schemas().values():
        for block in walk(schema):
            for name, field in block.get("properties", {}).items():
                assert field.get("description"), name


def test_references_lead_somewhere_and_nothing_is_null():
    for schema in schemas().values():
        text = json.dumps(schema)
        assert "$defs" not in text
        assert '"null"' not in text
        for name in re.findall(r"#/definitions/(\w+)", text):
            assert name in schema["definitions"]


def test_unknown_keys_are_refused_by_editors_too():
    for schema in schemas().values():
        for name, block in schema["definitions"].items():
            assert block["additionalProperties"] is False, name


def test_names_are_those_of_the_files():
    service = schemas()["ModelService"]["definitions"]

    assert "servedNames" in service["ModelBlock"]["properties"]
    assert "pattern" in service["ColdStartBlock"]["properties"]["deadline"]
    assert service["ModelServiceSpec"]["required"] == ["model", "engine", "gpu"]
    assert "pricePerGPUHour" in schemas()["Fleet"]["definitions"]["PoolBlock"]["properties"]


def test_editors_complete_the_defaults_of_services():
    block = schemas()["Fleet"]["definitions"]["DefaultsBlock"]["properties"]["modelService"]

    assert "placement" in block["properties"]
    assert "required" not in block


def test_defaults_are_written_as_people_write_them():
    """An editor that fills in a default must not fill in one that is refused."""
    fleet, service = schemas()["Fleet"]["definitions"], schemas()["ModelService"]["definitions"]

    assert service["DrainBlock"]["properties"]["max"]["default"] == "10m"
    assert fleet["StatusBlock"]["properties"]["heartbeat"]["default"] == "1h"
    assert fleet["PruneBlock"]["properties"]["maxUnits"]["default"] == "10%"
