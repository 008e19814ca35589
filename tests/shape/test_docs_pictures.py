"""The pictures show what the program does today and load nothing from elsewhere."""

import re

import pytest

from shape.docs_console import ROOT, script

PICTURES = ROOT / "docs" / "pictures"


@pytest.fixture(scope="module")
def picture():
    """scripts/picture.py as a module."""
    return script("picture")


def without_hashes(line):
    """Commit ids differ from run to run."""
    return re.sub(r"\b[0-9a-f]{7}\b", "0000000", line)


def test_the_picture_of_the_demo_is_its_output_of_today(picture):
    """Otherwise run scripts/picture.py and look at what changed."""
    drawn = picture.lines_of((PICTURES / "demo.svg").read_text(encoding="utf-8"))[1:]
    printed = [line for line in picture.demo_lines() if line]

    assert [without_hashes(line) for line in printed] == [without_hashes(line) for line in drawn]
    assert len(printed) <= 60


def test_the_picture_of_a_pass_is_drawn_from_its_stages(picture):
    assert picture.one_pass() == (PICTURES / "pass.svg").read_text(encoding="utf-8")


def test_the_picture_of_a_cold_start_is_what_the_command_draws(picture):
    assert picture.cold_start() == (PICTURES / "coldstart.svg").read_text(encoding="utf-8")


def test_the_picture_of_a_simulation_is_what_the_command_draws(picture):
    assert picture.simulation() == (PICTURES / "simulation.svg").read_text(encoding="utf-8")


def test_pictures_of_runs_are_what_the_product_does_today(picture):
    """Ready-in, the choice of nodes and a notice, each played again on the in-memory cluster."""
    drawn = picture.runs()

    assert set(drawn) == {"readiness.svg", "placement.svg", "notice.svg"}
    for name, text in drawn.items():
        assert text == (PICTURES / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", sorted(file.name for file in PICTURES.glob("*.svg")))
def test_a_picture_loads_nothing_and_its_text_can_be_selected(name):
    text = (PICTURES / name).read_text(encoding="utf-8")

    assert "<text" in text
    assert "<title>" in text
    addresses = re.findall(r"https?://[^\"' ]+", text)
    assert addresses == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(script|image|foreignObject|use)\b|@import|url\(", text)
