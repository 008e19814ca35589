"""validate tells everything at once; render needs no cluster."""

import re

import pytest
import yaml

BROKEN = {
    "models/typo.yaml": (
        (
            "apiVersion: stoker.dev/v1alpha1\nkind: ModelService\nmetadata: {name: typo}\nspec:\n"
            "  modle: {uri: hf://a/b}\n  engine: {image: x}\n  gpu: {count: 1}\n"
        ),
        "models/typo.yaml:5:3: spec.modle: ",
        "unknown-field",
    ),
    "models/later.yaml": (
        (
            "apiVersion: stoker.dev/v1alpha1\nkind: ModelService\nmetadata: {name: later}\nspec:\n"
            f"  model: {{uri: hf://a/b, revision: {'0a' * 20}}}\n  engine: {{image: x}}\n"
            "  gpu: {count: 1}\n  scaling: {maxReplicas: 4, maxGPUs: 8}\n"
        ),
        "models/later.yaml:8:29: spec.scaling.maxGPUs: ",
        "not-implemented-yet",
    ),
    "models/yaml.yaml": ("kind: [\n", "models/yaml.yaml:2:1: ", "invalid-yaml"),
    "models/twice.yaml": (
        "apiVersion: stoker.dev/v1alpha1\nkind: ModelService\nkind: Bundle\n",
        "models/twice.yaml:3:1: ",
        "duplicate-key",
    ),
    "bundles/none/bundle.yaml": (
        (
            "apiVersion: stoker.dev/v1alpha1\nkind: Bundle\nmetadata: {name: none}\n"
            "spec: {render: {manifests: [nothing-*.yaml]}}\n"
        ),
        "bundles/none/bundle.yaml:4:",
        "manifest-no-match",
    ),
}


def test_all_findings_of_a_broken_folder_are_told_at_once(shell):
    """One error a run makes five runs of five errors."""
    folder = shell.fleet()
    for path, (text, _, _) in BROKEN.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    answer = shell("validate", folder)

    assert answer.code == 2
    assert answer.out == ""
    lines = answer.err.splitlines()
    for _, place, code in BROKEN.values():
        assert [line for line in lines if line.startswith(place) and f"[{code}]" in line], place
    assert re.match(r"\d+ errors in 1 fleet; nothing of a unit with an error is applied", lines[-1])


def test_an_error_has_place_field_reason_and_suggestion(shell):
    folder = shell.fleet()
    model = folder / "models" / "qwen-0.5b.yaml"
    model.write_text(model.read_text().replace("replicas: 2", "replica: 2"), encoding="utf-8")
    answer = shell("validate", folder)

    assert answer.code == 2
    assert re.match(
        r"models/qwen-0\.5b\.yaml:\d+:3: spec\.replica: .* \[unknown-field\]"
        r" \(did you mean replicas\?\)",
        answer.err,
    )


def test_a_health_file_is_checked_to_the_column(shell):
    folder = shell.fleet()
    file = folder / "policies" / "health" / "widget.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "apiVersion: stoker.dev/v1alpha1\nkind: HealthPolicy\nmetadata: {name: w}\nspec:\n"
        "  checks:\n  - {apiVersion: x.io/v1, kind: Widget, current: status.up == yes}\n",
        encoding="utf-8",
    )
    answer = shell("validate", folder)

    assert answer.code == 2
    assert answer.err.startswith(
        "policies/health/widget.yaml:6:63: spec.checks[0].current: undeclared reference to 'yes'"
    )


def test_a_good_folder_is_ok(shell):
    answer = shell("validate", shell.fleet())

    assert (answer.code, answer.out, answer.err) == (0, "", "ok: 1 fleet, 2 units\n")


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("missing", "does not exist"),
        ("file", "is no folder"),
        ("empty", "no file called fleet.yaml"),
    ],
)
def test_what_is_no_fleet_repository_is_wrong_use(shell, folder, text):
    (shell.folder / "file").write_text("")
    (shell.folder / "empty").mkdir()
    answer = shell("validate", shell.folder / folder)

    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert text in answer.err


def test_render_needs_no_kubeconfig(shell):
    """cases.md row 141: what a template gives is no secret of the cluster."""
    answer = shell("render", "qwen-0-5b", "-f", shell.fleet(), "--node", "l4-1")
    kinds = [body["kind"] for body in yaml.safe_load_all(answer.out)]

    assert answer.code == 0
    assert ["Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"] == sorted(kinds)
    assert "stoker.dev/node: l4-1" in answer.out
    assert answer.err == ""


def test_render_shows_the_budget_that_the_floor_asks_for(shell):
    """2 replicas: at least 1 stays, so 1 may go."""
    answer = shell("render", "qwen-0-5b", "-f", shell.fleet())
    budgets = [b for b in yaml.safe_load_all(answer.out) if b["kind"] == "PodDisruptionBudget"]

    assert [1] == [budget["spec"]["maxUnavailable"] for budget in budgets]


def test_render_of_an_unknown_unit_names_those_there_are(shell):
    answer = shell("render", "qwen", "-f", shell.fleet())

    assert answer.code == 2
    assert answer.err == "error: no unit 'qwen' [no-such-unit]\n  have: base, qwen-0-5b\n"


def test_render_prints_one_json_list(shell):
    answer = shell("render", "base", "-f", shell.fleet(), "-o", "json")

    assert answer.code == 0
    assert yaml.safe_load(answer.out)["kind"] == "List"
