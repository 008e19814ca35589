"""Quick commands load no library: a slow prompt is felt a hundred times a day."""

import json

import pytest

from children import run_python

HEAVY = (
    "kubernetes",
    "jinja2",
    "httpx",
    "pydantic",
    "yaml",
    "urllib3",
    "prometheus_client",
    "cel_expr_python",
)
_SCRIPT = """
import json, sys
sys.argv = ["stoker", *json.loads(sys.argv[1])]
from stoker.__main__ import main
try:
    main()
except SystemExit as end:
    code = end.code
names = sorted({name.partition(".")[0] for name in sys.modules})
sys.stderr.write("\\n@@@" + json.dumps([code, names]))
"""


def run(*arguments, **environment):
    """Exit code, stdout, and the top-level modules that were loaded."""
    done = run_python(_SCRIPT, json.dumps(arguments), **environment)
    code, names = json.loads(done.stderr.rpartition("@@@")[2])
    return code, done.stdout, names


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        [],
        ["version"],
        ["--version"],
        ["completion", "bash"],
        ["completion", "zsh"],
    ],
    ids=" ".join,
)
def test_quick_commands_load_no_library(arguments):
    code, out, names = run(*arguments)

    assert code == (0 if arguments else 2)
    assert out
    assert sorted(set(HEAVY) & set(names)) == []


def test_help_of_a_command_loads_the_parser_and_nothing_else():
    """The parser brings pydantic for its options; the stages stay out."""
    _, out, names = run("diff", "--help")

    assert "--base" in out
    assert set(HEAVY) & set(names) <= {"pydantic"}


def test_one_pass_loads_no_metrics_and_no_templates():
    """Nobody can ask a process for metrics that ends with its pass; children render."""
    code, _, names = run("run", "--once", "--repo", "ftp://host.invalid/x")

    assert code == 2
    assert "pydantic" in names
    assert {"prometheus_client", "jinja2"} & set(names) == set()


def test_completing_a_word_loads_the_parser_and_nothing_else():
    """The shell asks at each press of the key."""
    _, out, names = run(_STOKER_COMPLETE="complete_bash", COMP_WORDS="stoker dif", COMP_CWORD="1")

    assert "diff" in out.split()
    assert set(HEAVY) & set(names) <= {"pydantic"}
