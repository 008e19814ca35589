"""The Bundle file: its schema. bundle.py finds the files it names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stoker.source.schema import ApiVersion, Line, Strict, UnitMetadata
from stoker.source.schema_flow import FlowSpec

__all__ = ["BundleFile", "BundleSpec"]

Patterns = Annotated[list[Line], Field(min_length=1)]


class JinjaBlock(Strict):
    """Jinja templates that give manifests."""

    paths: Patterns
    """Template files: patterns relative to this file; a leading / is the repository root."""
    values: dict[str, Any] = Field(default_factory=dict)
    """What the templates see as `values`."""


class BundleRenderBlock(Strict):
    """Where the manifests come from: exactly one of these."""

    manifests: Patterns | None = None
    """Plain YAML files: patterns relative to this file, which is itself left out."""
    jinja: JinjaBlock | None = None
    """Jinja templates that give manifests."""


class BundleSpec(FlowSpec):
    """What the bundle is."""

    render: BundleRenderBlock
    """Where the manifests come from."""


class BundleFile(Strict):
    """Any other manifests, applied as one unit."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["Bundle"]
    """Always Bundle."""
    metadata: UnitMetadata
    """Name and namespace."""
    spec: BundleSpec
    """What the bundle is."""
