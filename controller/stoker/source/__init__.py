"""Stage 1, source: what one commit of the fleet repository wants."""

from __future__ import annotations

from stoker.source.check_file import check_file
from stoker.source.fleet_file import read_fleet
from stoker.source.health_files import shipped_checks
from stoker.source.json_schema import schema_of, schemas
from stoker.source.log_profiles import shipped_log_profiles
from stoker.source.memo import SourceMemo
from stoker.source.reasons import REASONS
from stoker.source.source import source
from stoker.source.unit_file import read_unit_file
from stoker.source.yaml_strict import read_yaml

__all__ = [
    "source",
    "SourceMemo",
    "check_file",
    "schema_of",
    "schemas",
    "shipped_checks",
    "shipped_log_profiles",
    "REASONS",
    "read_fleet",
    "read_unit_file",
    "read_yaml",
]
