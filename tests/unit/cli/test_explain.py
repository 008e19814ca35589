"""`stoker explain` knows every word that the other commands print, without a cluster."""

import pytest


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("unknown-field", "No such field."),
        ("HeldNoCapacity", "No node can take the replica now"),
        ("AdoptionRequired", "The name is in use"),
        ("gpus", "Too few GPUs are free on the node."),
        ("PruneHeld", "not deleted"),
    ],
)
def test_a_reason_is_told_without_a_cluster(shell, word, text):
    answer = shell("explain", word)

    assert answer.code == 0
    assert answer.out.startswith(f"{word}: ")
    assert text in answer.out


def test_a_service_needs_the_cluster(shell):
    answer = shell("explain", "qwen-0-5b", "-f", shell.fleet())

    assert answer.code == 2
    assert "[kubeconfig-not-found]" in answer.err
