"""One document of a policy file against its schema: a model, or what is wrong and where.

Called by health_files and log_profiles.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from stoker.errors import Finding, SourceLocation
from stoker.source.findings import findings_of
from stoker.source.places import Field, closest
from stoker.source.yaml_strict import Document

__all__ = ["parsed"]

ModelT = TypeVar("ModelT", bound=BaseModel)


def parsed(
    document: Document, model: type[ModelT], kind: str
) -> tuple[ModelT | None, list[Finding]]:
    """The document as `model`, or None with a finding for each fault; `kind` is for people."""

    def locate(at: Field) -> SourceLocation:
        return closest(document.places, at, document.location)

    try:
        return model.model_validate(document.value), []
    except ValidationError as error:
        return None, findings_of(error, model, locate, kind=kind)
