"""Generated docs are as generated, and leave out no option, setting, variable or reason."""

import ast
import dataclasses
import re

import pytest

from shape.docs_console import ROOT, command_tree, script
from shape.sources import nodes
from stoker import settings
from stoker.cli.reasons import all_reasons, reason_of
from stoker.decide.eligible import FIT_RULES, RULES
from stoker.decide.order import START_RULES
from stoker.decide.tally import LIMIT_RULES
from stoker.report.conditions import Reason, camel

PACKAGE = ROOT / "controller" / "stoker"


@pytest.fixture(scope="module")
def generated():
    """scripts/generated.py as a module."""
    return script("generated")


def test_generated_docs_are_what_would_be_generated(generated):
    """Docs that lag behind the code mislead; make check says the same."""
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generated.documents().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]

    assert stale == []


def test_every_command_and_option_is_in_the_command_line_page():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    missing = []

    def visit(name, command):
        if f"### {name}\n" not in text:
            missing.append(name)
            return
        section = text.split(f"### {name}\n")[1].split("\n### ")[0]
        for parameter in command.params:
            missing.extend(
                f"{name} {option}"
                for option in (*parameter.opts, *parameter.secondary_opts)
                if option.startswith("-") and f"`{option}`" not in section
            )
        for inner, found in getattr(command, "commands", {}).items():
            visit(f"{name} {inner}", found)

    for name, command in command_tree().commands.items():
        visit(f"stoker {name}", command)

    assert missing == []


def test_every_option_says_what_it_does():
    """An option without help is one nobody uses."""
    silent = [
        f"{name} {parameter.name}"
        for name, command in command_tree().commands.items()
        for parameter in command.params
        if not parameter.help
    ]

    assert silent == []


def test_every_setting_is_an_option_of_run_and_documented(generated):
    """settings.py promises it; what only a programmer can set is no setting."""
    fields = {
        f"{cls.__name__}.{field.name}"
        for name in settings.__all__
        for cls in [getattr(settings, name)]
        for field in dataclasses.fields(cls)
        if not dataclasses.is_dataclass(field.type)
        and field.name not in {"source", "cluster", "loop", "server"}
    }
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

    assert set(generated.SETTING_OPTIONS) == fields
    assert set(generated.SETTING_OPTIONS.values()) == set(generated.run_options())
    assert all(f"`{option}`" in page for option in generated.run_options())


def test_every_environment_variable_that_is_read_is_documented(generated):
    """Only cli reads the environment, and a stand-in that starts programs."""
    reads = re.compile(r"environ(?:ment)?(?:\.get\(|\[)\"([A-Z][A-Z0-9_]+)\"")
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "environ" in text:
            found |= {name for name in reads.findall(text) if not name.startswith("KUBERNETES_")}
    passed_on = {"PATH", "HOME", "LANG", "TERM"}
    named = {name for name in found if not name.startswith(("GIT_", "SSH_"))}

    assert named - passed_on - set(generated.ENVIRONMENT) == set()


def codes_in_code():
    """Every constant given as `code=` or as the code of an error class, with its file."""
    for path, found in nodes():
        for node in found:
            if isinstance(node, ast.keyword) and node.arg == "code":
                yield node.value, path
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "code":
                        yield part.value, path
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Hold":
                yield node.args[0], path


def test_every_code_used_is_in_the_closed_list():
    """A reason that nobody can look up is no reason."""
    known = all_reasons()
    unknown = sorted(
        f"{path.relative_to(ROOT)}: {value.value}"
        for value, path in codes_in_code()
        if isinstance(value, ast.Constant)
        and isinstance(value.value, str)
        and value.value
        and value.value not in known
    )

    assert unknown == []


def test_condition_reasons_and_rules_are_in_the_closed_list():
    words = {*(str(reason) for reason in Reason), *(name for name, _ in RULES)}
    words |= {*LIMIT_RULES, *FIT_RULES, *START_RULES, "unpinned"}

    assert words - set(all_reasons()) == set()


@pytest.mark.parametrize("code", sorted(c for c in all_reasons() if "-" in c))
def test_a_code_is_found_as_a_condition_spells_it(code):
    """`stoker explain` takes what `stoker status` prints."""
    assert reason_of(camel(code)) is not None


def test_fleet_files_page_names_every_field_of_the_schemas(generated):
    text = (ROOT / "docs" / "fleet-files.md").read_text(encoding="utf-8")
    from stoker.source import schemas

    missing = []
    for kind, schema in schemas().items():
        section = text.split(f"<!-- generated: {kind} -->")[1].split("<!-- end")[0]
        fields = [path for path, *_ in generated.schema_fields(schema)]
        missing += [f"{kind} {path}" for path in fields if f"`{path}`" not in section]

    assert missing == []
