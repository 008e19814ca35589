from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.fleet import Blob
from stoker.source.include import FileIndex, resolve_path

PATHS = [
    "a.yaml", "models/a.yaml", "models/b.yml", "models/deep/c.yaml", "models/.hidden.yaml",
    "models/.dot/x.yaml", "models-old/a.yaml", "bundles/x/bundle.yaml", "bundles/y/bundle.yaml",
    "bundles/y/z/bundle.yaml", "we[i]rd/a.yaml", "m*del/a.yaml",
]  # fmt: skip
INDEX = FileIndex([Blob(path, "0" * 40) for path in PATHS])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.yaml", ["a.yaml"]),
        ("models/*.yaml", ["models/a.yaml"]),
        ("models/?.y*ml", ["models/a.yaml", "models/b.yml"]),
        ("models/[ab].*", ["models/a.yaml", "models/b.yml"]),
        ("models/[!a].*", ["models/b.yml"]),
        ("models/.*", ["models/.hidden.yaml"]),
        ("models/**", ["models/a.yaml", "models/b.yml", "models/deep/c.yaml"]),
        ("models/**/c.yaml", ["models/deep/c.yaml"]),
        ("**/bundle.yaml", ["bundles/x/bundle.yaml", "bundles/y/bundle.yaml", "bundles/y/z/bundle.yaml"]),
        ("bundles/*/bundle.yaml", ["bundles/x/bundle.yaml", "bundles/y/bundle.yaml"]),
        ("models*/a.yaml", ["models-old/a.yaml", "models/a.yaml"]),
        ("models/a.yaml", ["models/a.yaml"]),
        ("models", []),
        ("models/[", []),
        ("nothing/*.yaml", []),
        ("we[[]i]rd/a.yaml", ["we[i]rd/a.yaml"]),
        ("[a^]*.yaml", ["a.yaml"]),
        ("models/[a-b]*", ["models/a.yaml", "models/b.yml"]),
        ("models/[^a]*.y*ml", ["models/b.yml"]),
        ("models[/]a.yaml", []),
    ],
)  # fmt: skip
def test_patterns(pattern, expected):
    assert expected == [blob.path for blob in INDEX.matching(pattern)]


def test_under_a_folder_is_everything_below_it():
    assert [blob.path for blob in INDEX.under("bundles/y")] == [
        "bundles/y/bundle.yaml",
        "bundles/y/z/bundle.yaml",
    ]
    assert len(INDEX.under("")) == len(PATHS)
    assert INDEX.under("model") == ()


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("/models/*.yaml", "clusters/eu", "models/*.yaml"),
        ("models/*.yaml", "clusters/eu", "clusters/eu/models/*.yaml"),
        ("../../models/*.yaml", "clusters/eu", "models/*.yaml"),
        ("./a.yaml", "", "a.yaml"),
        ("//a.yaml", "x", "a.yaml"),
        (".", "x", "x"),
        ("/", "x", ""),
        ("../../../a", "clusters/eu", None),
        ("/../a", "x", None),
        ("..", "", None),
    ],
)
def test_paths_are_relative_to_their_file_or_the_root(pattern, folder, expected):
    """b.A rows 1 to 3 and 6, b.F row 47: one join for every path, and none leads out."""
    assert expected == resolve_path(pattern, folder)


@given(st.text(alphabet="./ab*\\", max_size=20), st.sampled_from(["", "x", "clusters/eu"]))
def test_no_text_leads_out_of_the_repository(pattern, folder):
    """b.F row 47 (CVE-2026-47680)."""
    found = resolve_path(pattern, folder)

    assert found is None or (not found.startswith("/") and ".." not in found.split("/"))


# ---------------------------------------------------------------------- hostile patterns
@pytest.mark.parametrize(
    "pattern",
    ["*a" * 100 + "b.yaml", "**/" * 100 + "b.yaml", "**/a/" * 100 + "b.yaml", "?*" * 100 + "b"],
)
def test_no_pattern_takes_for_ever(pattern):
    """b.A row 10 (CVE-2024-32476): a rule in Git must not stop the controller."""
    index = FileIndex([Blob("a" * 200, "0" * 40), Blob("a/" * 1000 + "c.yaml", "1" * 40)])

    assert [] == [blob.path for blob in index.matching(pattern)]


SEGMENTS = st.sampled_from(["**", "*", "a", "a*", "*a", "*a*b", ".*", ".a", "?", "?a*", "a.*b*"])
NAMES = st.sampled_from(["a", "b", "ab", "aab", "abab", "a.b", ".a", ".ab", "ba"])


def fits(pattern: list[str], path: list[str]) -> bool:
    """The definition, without any thought for time."""
    if not pattern:
        return not path
    head, rest = pattern[0], pattern[1:]
    if head == "**":
        last = not rest and len(path) == 1 and not path[0].startswith(".")
        deeper = bool(path[1:]) and not path[0].startswith(".") and fits(pattern, path[1:])
        return last or deeper or (bool(rest) and fits(rest, path))
    if not path or (head[0] in "*?" and path[0].startswith(".")):
        return False
    letters = re.escape(head).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(letters, path[0]) is not None and fits(rest, path[1:])


@given(st.lists(SEGMENTS, min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=5))
def test_a_pattern_matches_what_its_definition_says(pattern, path):
    index = FileIndex([Blob("/".join(path), "0" * 40)])

    assert fits(pattern, path) is bool(index.matching("/".join(pattern)))
