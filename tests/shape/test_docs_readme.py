"""What README and docs tell people to type works, and what they point at is there."""

import re
import shlex
import shutil

import pytest

from shape.docs_console import PAGES, ROOT, command_tree, fences, run_steps, steps, told
from stoker.source.refused import REFUSED_FIELDS

README = ROOT / "README.md"
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
INLINE = re.compile(r"`(stoker [^`]+)`")


def commands_in(page):
    """Every line that starts with stoker, from fences and inline code."""
    for language, text in fences(page):
        joined = text.replace("\\\n", " ")
        for line in joined.splitlines():
            command = line.removeprefix("$ ") if language == "console" else line
            for part in re.split(r"&&|;|\||\$\(", command):
                if part.strip().startswith("stoker "):
                    yield part.split("  #")[0].split(">")[0].strip().rstrip(")")
    for command in INLINE.findall(page.read_text(encoding="utf-8").replace("\n", " ")):
        yield command.split("|")[0].split(">")[0]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_command_and_option_named_exists(page):
    """A renamed option would leave its old name in ten places."""
    root = command_tree()
    wrong = []
    for text in commands_in(page):
        words = [w for w in shlex.split(text.replace("…", "x").replace("'", "")) if w != "x"]
        command, rest = root, words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        if command is root and not (rest and rest[0].startswith("-")) and "COMMAND" not in rest:
            wrong.append(text)
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        known |= {"--help", "-h", "--debug", "--version"}
        options = {word.split("=")[0] for word in rest if word.startswith("-") and word != "-"}
        wrong += [f"{text}: {option}" for option in sorted(options - known)]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_make_target_named_is_real(page):
    """`make test` takes minutes, so that the block runs is shown by the target's existence."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    named |= set(re.findall(r"`make ([a-z-]+)", text))

    assert named - targets == set()


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_link_leads_to_a_file_and_its_heading(page):
    text = page.read_text(encoding="utf-8")
    broken = []
    for target, anchor in LINK.findall(text):
        place = (page.parent / target).resolve()
        if not place.exists():
            broken.append(target)
        elif anchor and anchor[1:] not in headings(place):
            broken.append(target + anchor)

    assert broken == []


def headings(place):
    """Anchors as forges make them."""
    found = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in found}


LONG = {"rehearsals.md"}
"""Half a minute of rehearsals, which stories play as well: only `make live-full` types them."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.full] if page.name in LONG else [], id=page.name)
        for page in PAGES
        if steps(page, "sh")
    ],
)
def test_blocks_that_need_no_cluster_run(page, tmp_path):
    """A stranger pastes them into an empty folder with nothing but the command installed."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    ran = run_steps(steps(page, "sh"), tmp_path)

    assert all(one.as_promised for one in ran), told(ran)


def test_what_the_readme_says_is_refused_is_refused():
    """The limits are honest in both directions: nothing on the list works already."""
    text = README.read_text(encoding="utf-8").split("## Limits")[1].split("## Support")[0]
    named = set(re.findall(r"`(spec\.[A-Za-z.\[\]]+(?:: \w+)?)`", text))
    refused = {field for fields in REFUSED_FIELDS.values() for field in fields}

    assert named
    assert set() == named - refused
