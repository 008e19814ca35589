from __future__ import annotations

import pytest

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
    assert expected == resolve_path(pattern, folder)
