"""The docstrings below the fields of a schema, for the published JSON schemas alone.

A model class and its JSON schema come in, the descriptions go into the schema. Called by
pydantic through the configuration of `schema.Strict`, when a JSON schema is made. Pydantic's
own `use_attribute_docstrings` parses the source of every class at import, which was a tenth
of the start of every command.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["describe_fields"]


def describe_fields(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Write the docstring of each field into its property, where the field has no other."""
    texts: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if part.__module__.startswith("stoker."):
            texts |= _docstrings(part)
    properties = schema.get("properties", {})
    for name, field in model.model_fields.items():
        if field.description is None and name in texts:
            properties[field.alias or name]["description"] = texts[name]


@cache
def _docstrings(part: type[Any]) -> dict[str, str]:
    """Field to docstring, of the fields that stand in the class itself."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, below in pairwise(tree.body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found
