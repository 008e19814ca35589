"""What `stoker install` prints can be applied, and two fleets share no name."""

import yaml

from shape.docs_console import command_tree

IMAGE = "registry.example/stoker@sha256:" + "0" * 64
URL = "https://forge.example/acme/fleet.git"


def printed(shell, fleet, *more):
    answer = shell(
        "install", "--image", IMAGE, "--repo", URL,
        "--fleet", f"clusters/{fleet}/fleet.yaml", "-f", shell.fleet(fleet), *more,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    return [body for body in yaml.safe_load_all(answer.out) if body], answer.err


def name_of(body):
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def test_everything_parses_and_has_a_name(shell):
    bodies, told = printed(shell, "eu", "--write-namespace", "llm")
    kinds = {body["kind"] for body in bodies}

    assert {"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role",
            "Deployment", "Service"} <= kinds  # fmt: skip
    assert all(name_of(body)[2] for body in bodies)
    assert "fleet id" in told


def test_two_fleets_share_only_namespace_and_definitions(shell):
    """cases.md row 155: deleting one install leaves the other whole."""
    one, _ = printed(shell, "eu", "--write-namespace", "llm")
    other, _ = printed(shell, "us", "--write-namespace", "llm")
    shared = {name_of(b) for b in one} & {name_of(b) for b in other}

    assert {kind for kind, _, _ in shared} == {"Namespace", "CustomResourceDefinition"}


def test_the_controller_runs_with_options_that_exist(shell):
    """The Deployment's arguments are those of `stoker run`."""
    bodies, _ = printed(shell, "eu")
    deployment = next(body for body in bodies if body["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    options = {o for p in command_tree().commands["run"].params for o in p.opts}

    assert arguments[0] == "run"
    assert {argument.split("=")[0] for argument in arguments[1:]} <= options


def test_without_a_namespace_to_write_it_says_that_it_can_only_look(shell):
    bodies, told = printed(shell, "eu")

    assert "can only look" in told
    assert [
        b for b in bodies if b["kind"] == "Role" and b["metadata"]["name"].endswith("-apply")
    ] == []


def test_definitions_alone_need_nothing_else(shell):
    answer = shell("install", "--crds-only")
    kinds = {body["kind"] for body in yaml.safe_load_all(answer.out)}

    assert answer.code == 0
    assert kinds == {"CustomResourceDefinition"}
