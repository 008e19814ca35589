"""Shipped folders are found in a wheel and in a checkout."""

from __future__ import annotations

import pytest

from stoker.errors import Stalled
from stoker.shipped import shipped_folder


def package(tmp_path):
    folder = tmp_path / "controller" / "stoker"
    folder.mkdir(parents=True)
    return folder


def test_a_wheel_holds_them_inside_the_package(tmp_path):
    inside = package(tmp_path)
    (inside / "_shipped" / "templates").mkdir(parents=True)
    (tmp_path / "templates").mkdir()
    (tmp_path / "pyproject.toml").touch()

    assert inside / "_shipped" / "templates" == shipped_folder("templates", inside)


def test_a_checkout_holds_them_at_its_top(tmp_path):
    inside = package(tmp_path)
    (tmp_path / "templates").mkdir()
    (tmp_path / "pyproject.toml").touch()

    assert tmp_path / "templates" == shipped_folder("templates", inside)


def test_a_folder_beside_site_packages_is_not_taken_for_ours(tmp_path):
    """Without pyproject.toml it belongs to somebody else."""
    inside = package(tmp_path)
    (tmp_path / "templates").mkdir()

    with pytest.raises(Stalled, match="no templates folder"):
        shipped_folder("templates", inside)


@pytest.mark.parametrize("kind", ["templates", "overlays", "policies"])
def test_this_installation_has_them(kind):
    assert any(shipped_folder(kind).iterdir())
