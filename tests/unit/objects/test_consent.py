"""What the annotations of one object allow, and what nobody obeys."""

import pytest

from fakes_live import applied_by, updated_by
from stoker.model.refs import ref_from_manifest
from stoker.objects import names
from stoker.objects.consent import Consents, consents_in_git, consents_on_live, problems_of
from unit.diff.diff_builders import US, config, deployment


def saying(**words):
    return config(annotations={f"stoker.dev/{key}": value for key, value in words.items()})


@pytest.mark.parametrize(
    ("words", "consents"),
    [
        ({}, Consents()),
        ({"adopt": "enabled"}, Consents(adopt=True)),
        ({"prune": "enabled"}, Consents(prune=True)),
        ({"prune": "disabled"}, Consents(keep=True)),
        ({"recreate": "enabled"}, Consents(recreate=True)),
        ({"reconcile": "disabled"}, Consents(left_alone=True)),
        ({"reconcile": "create-only"}, Consents(create_only=True)),
        ({"adopt": "disabled", "prune": "yes", "reconcile": "enabled"}, Consents()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_git_says(words, consents):
    assert consents == consents_in_git(saying(**words))


def test_helm_keeps_in_its_own_words():
    assert consents_in_git(config(annotations={"helm.sh/resource-policy": "keep"})).keep


def test_a_manifest_without_annotations_says_nothing():
    assert Consents() == consents_in_git(config()) == consents_in_git(config(annotations=None))


def test_a_typed_consent_exposes_nothing_to_a_delete():
    """Design 6: consent is read from Git; whoever can annotate can't have objects deleted."""
    live = applied_by(US, config())
    typed = updated_by("kubectl-annotate", live, saying(prune="enabled"))

    assert not consents_on_live(typed, US).prune
    assert consents_on_live(applied_by(US, saying(prune="enabled")), US).prune
    assert not consents_on_live(applied_by("stoker-other", saying(prune="enabled")), US).prune


@pytest.mark.parametrize("words", [{"prune": "disabled"}, {"reconcile": "disabled"}], ids=str)
def test_whoever_protects_a_live_object_is_obeyed(words):
    found = consents_on_live(updated_by("anybody", applied_by(US, config()), saying(**words)), US)

    assert found.keep or found.left_alone


def test_an_adopted_object_is_known_by_its_annotation():
    assert consents_on_live(config(annotations={names.ADOPTED: "true"}), US).adopted


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"stoker.dev/prune": "keep"}, "enabled or disabled"),
        ({"stoker.dev/adopt": "disabled"}, "enabled, or leave"),
        ({"stoker.dev/reconcile": True}, "disabled or create-only, or leave"),
        ({"stoker.dev/recreate": "enabled"}, "only a Deployment or a Job"),
        ({"stoker.dev/adpot": "enabled"}, "did you mean stoker.dev/adopt?"),
    ],
    ids=["value", "no-such-value", "not-a-text", "kind", "key"],
)
def test_a_word_that_nobody_obeys_is_told(annotations, told):
    body = config(annotations=annotations)
    ((key, _, hint),) = problems_of(ref_from_manifest(body), body)

    assert key in annotations
    assert told in hint


@pytest.mark.parametrize("other", ["adopt", "recreate"])
def test_create_only_beside_a_consent_to_touch_the_object_contradicts_itself(other):
    body = deployment()
    words = {"stoker.dev/reconcile": "create-only", f"stoker.dev/{other}": "enabled"}
    body["metadata"]["annotations"] = words
    ((key, message, _),) = problems_of(ref_from_manifest(body), body)

    assert f"stoker.dev/{other}" == key
    assert "never touches" in message


def test_create_only_on_a_live_object_protects_nothing():
    """Whoever made it once prunes it by the usual rules."""
    live = applied_by(US, saying(reconcile="create-only"))

    assert Consents() == consents_on_live(live, US)


def test_our_own_marks_and_other_tools_words_are_no_problem():
    body = deployment()
    body["metadata"]["annotations"] = {
        names.OWNER: "x",
        names.ADOPTED: "true",
        names.REV: "r",
        names.NODE: "n",
        names.RECREATE: "enabled",
        "example.org/adopt": "maybe",
    }

    assert [] == list(problems_of(ref_from_manifest(body), body))
