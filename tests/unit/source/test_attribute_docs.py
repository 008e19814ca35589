"""Published schemas describe fields in the words that stand below them in the code."""

from pydantic import Field

from stoker.source.attribute_docs import _docstrings
from stoker.source.schema import Strict, UnitMetadata


class Base(Strict):
    """A block with two fields."""

    first_name: str
    """The first.

    In two paragraphs.
    """
    second: int = Field(default=1, description="Said elsewhere.")
    """Not what is published."""


def test_a_description_is_the_docstring_below_the_field():
    properties = Base.model_json_schema()["properties"]

    # Classes outside the package keep theirs: their source need not be at hand.
    assert "description" not in properties["firstName"]
    assert _docstrings(Base)["first_name"] == "The first.\n\nIn two paragraphs."


def test_an_explicit_description_outranks_the_docstring():
    assert Base.model_json_schema()["properties"]["second"]["description"] == "Said elsewhere."


def test_a_subclass_describes_the_fields_that_it_inherits():
    """Blocks of several kinds share a base; each kind's schema is published whole."""

    class Named(UnitMetadata):
        """As UnitMetadata, without fields of its own."""

    inherited = Named.model_json_schema()["properties"]

    assert inherited == UnitMetadata.model_json_schema()["properties"]
    assert all(block["description"] for block in inherited.values())
