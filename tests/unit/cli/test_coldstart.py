"""`stoker coldstart` on recorded folders: the lab, the guide's stack, and folders that are wrong."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from shape.docs_console import ROOT
from stoker.cli.output_schemas import output_schemas

EXAMPLES = ROOT / "examples" / "coldstart"
GUIDES = ("slim-image", "local-weights", "streamer", "graph-reuse", "snapshot")


def rows(text):
    """What each phase took, as printed."""
    table = text.split("PHASE")[1].split("\n\n")[0].splitlines()[1:]
    found = (re.match(r"(\S+(?: \S+)*?)  +(\S+) +(\S+)", line) for line in table)
    return {each[1]: each[3] for each in found if each}


def test_the_lab_is_told_phase_by_phase_without_a_cluster(shell):
    answer = shell("coldstart", EXAMPLES / "lab")

    assert answer.code == 0
    assert "8m34s known, Ready not seen" in answer.out.splitlines()[0]
    assert rows(answer.out) == {
        "queue": "?",
        "node": "2m47s",
        "setup": "2s",
        "image pull": "3m44s",
        "container start": "1s",
        "process + weights": "1m00s",
        "engine init": "1m00s",
        "probe": "?",
    }


def test_the_guides_stack_goes_from_92_to_21_seconds_with_its_levers(shell):
    chosen = [word for name in GUIDES for word in ("--with", name)]
    answer = shell("coldstart", EXAMPLES / "guide", *chosen)

    assert "Ready after 1m32s" in answer.out.splitlines()[0]
    assert answer.out.splitlines()[-1] == (
        f"With {', '.join(GUIDES)}: 1m32s -> 21s, the largest left is weights"
    )


@pytest.mark.parametrize("name", ["lab", "guide"])
def test_json_is_as_published(shell, name):
    document = json.loads(shell("coldstart", EXAMPLES / name, "-o", "json").out)

    jsonschema.validate(document, output_schemas()["ColdStart"])
    known = [span["tookMs"] for span in document["spans"] if span["tookMs"] is not None]
    assert document["tookMs"] == sum(known)


def test_json_says_what_levers_leave(shell):
    chosen = [word for name in GUIDES for word in ("--with", name)]
    document = json.loads(shell("coldstart", EXAMPLES / "guide", "-o", "json", *chosen).out)

    assert document["left"] == {"leastMs": 21_000, "mostMs": 21_000, "largest": "Weights"}
    assert document["with"] == list(GUIDES)


def test_the_picture_loads_nothing_and_names_every_phase(shell):
    text = shell("coldstart", EXAMPLES / "guide", "-o", "svg").out

    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(script|image|foreignObject|use)\b|@import|url\(", text)
    for words in ("image pull", "weights", "graphs", "engine init", "1m32s"):
        assert words in text


def test_text_of_a_recording_never_steers_the_terminal_or_the_picture(shell, tmp_path):
    about = {"kind": "Pod", "namespace": "x", "name": "a\x1b[31m<b>&"}
    event = {"involvedObject": about, "reason": "Scheduled", "eventTime": "2026-09-17T10:00:00Z"}
    (tmp_path / "events.json").write_text(json.dumps({"items": [event]}), encoding="utf-8")

    assert "\x1b" not in shell("coldstart", tmp_path).out
    assert "<b>" not in shell("coldstart", tmp_path, "-o", "svg").out


def wrong(shell, folder):
    answer = shell("coldstart", folder)
    assert answer.code == 2
    assert answer.out == ""
    return answer.err


def test_an_empty_folder_is_told_with_what_to_record(shell, tmp_path):
    err = wrong(shell, tmp_path)

    assert f"{tmp_path}: neither pod.json nor events.json is in it" in err
    assert "kubectl get pod NAME -o json > pod.json" in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n "kind": "Pod",\n oops', "pod.json:3:2: no JSON"),
        ("[]", "it holds no JSON object"),
        ('{"kind": "List"}', "it holds a List, not one Pod"),
        ("\udcff", "no JSON: UnicodeDecodeError"),
    ],
    ids=["broken", "list", "other kind", "bytes"],
)
def test_a_wrong_file_is_told_by_its_place(shell, tmp_path, text, told):
    (tmp_path / "pod.json").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert told in wrong(shell, tmp_path)
    assert "[invalid-recording]" in wrong(shell, tmp_path)


def test_all_wrong_files_are_told_at_once(shell, tmp_path):
    (tmp_path / "pod.json").write_text("{", encoding="utf-8")
    (tmp_path / "events.json").write_text("[", encoding="utf-8")

    err = wrong(shell, tmp_path)
    assert "pod.json" in err
    assert "events.json" in err


def test_events_of_several_pods_need_the_pod_that_is_meant(shell, tmp_path):
    items = [{"involvedObject": {"kind": "Pod", "name": name}} for name in ("a", "b")]
    (tmp_path / "events.json").write_text(json.dumps({"items": items}), encoding="utf-8")

    assert "events of 2 pods: a, b" in wrong(shell, tmp_path)


def test_an_unknown_lever_or_output_is_wrong_use(shell):
    lever = shell("coldstart", EXAMPLES / "lab", "--with", "magic")
    output = shell("coldstart", EXAMPLES / "lab", "-o", "gif")

    assert (lever.code, output.code) == (2, 2)
    assert "no lever 'magic'" in lever.err
    assert "pre-pull" in lever.err
    assert "text, json or svg" in output.err


def test_a_name_that_is_no_folder_needs_the_cluster(shell):
    answer = shell("coldstart", "qwen-7b")

    assert answer.code == 2
    assert "[kubeconfig-not-found]" in answer.err


def test_a_pod_about_which_nothing_is_known_says_so(shell, tmp_path):
    (tmp_path / "pod.json").write_text('{"kind": "Pod", "metadata": {"name": "x"}}')

    answer = shell("coldstart", tmp_path)
    assert answer.code == 0
    assert answer.out.startswith("x: no two instants are known")


def test_a_wait_behind_other_pulls_and_restarts_are_told(shell, tmp_path):
    lab = json.loads((EXAMPLES / "lab" / "events.json").read_text(encoding="utf-8"))
    pulled = next(each for each in lab["items"] if each["reason"] == "Pulled")
    pulled["message"] = 'Successfully pulled image "x" in 1m0s (3m44s including waiting)'
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "vllm", "name": "vllm-7b9d6c4f8-zr8hk"},
        "spec": {"containers": [{"name": "vllm"}]},
        "status": {"containerStatuses": [{"name": "vllm", "restartCount": 2}]},
    }
    (tmp_path / "events.json").write_text(json.dumps(lab), encoding="utf-8")
    (tmp_path / "pod.json").write_text(json.dumps(pod), encoding="utf-8")
    out = shell("coldstart", tmp_path).out

    assert "2m44s of the pull went by behind other pulls of the node" in out
    assert "restarted 2 times" in out


def test_a_file_without_end_is_refused(shell, tmp_path):
    with (tmp_path / "pod.json").open("wb") as file:
        file.truncate(65 * 2**20)

    assert "it is larger than 64 MiB" in wrong(shell, tmp_path)
