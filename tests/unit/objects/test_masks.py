"""Secrets never enter a diff (reliability-security.md 0.5, b.A rows 20 to 25)."""

import json

import pytest

from stoker.objects.masks import (
    HIDDEN,
    hides_by_neighbour,
    masked,
    masked_refusal,
    masked_text,
    names_secret,
)

CANARY = "canary-5f1d"


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Secret", ("data", "x"), CANARY),
        ("Secret", ("data",), {"x": CANARY}),
        ("Secret", ("stringData", "x"), CANARY),
        ("Secret", ("metadata", "annotations", "note"), CANARY),
        (
            "Deployment",
            ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
            CANARY,
        ),
        ("ConfigMap", ("sops", "age"), CANARY),
        ("ConfigMap", ("data", "DB_PASSWORD"), CANARY),
        ("ConfigMap", ("data", "apiKey"), CANARY),
        ("ConfigMap", ("data", "key.pem"), f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}"),
        ("ConfigMap", ("data", "x"), f"ENC[AES256_GCM,data:{CANARY}]"),
        ("ConfigMap", ("data", "url"), f"https://user:{CANARY}@example.org/x"),
        ("ConfigMap", ("data", "x"), f"hf_{'a' * 30}{CANARY}"),
        ("Deployment", ("spec", "env", "[name=HF_TOKEN]", "value"), CANARY),
        ("Deployment", ("spec", "env", "[name=HF_TOKEN]"), {"name": "HF_TOKEN", "value": CANARY}),
        ("Deployment", ("spec", "args"), ["--api-key", CANARY]),
        ("Deployment", ("spec", "args"), [f"--api-key={CANARY}"]),
        ("Deployment", ("spec", "command"), ["sh", "-c", f"serve --api-key {CANARY} --port 1"]),
        ("Deployment", ("spec", "args", "[1]"), f"--password={CANARY}"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)
def test_no_secret_survives(kind, path, value):
    """b.A rows 21 (CVE-2023-40029, last-applied) and 23 (CVE-2026-45737, annotations)."""
    assert CANARY not in json.dumps(masked(kind, path, value))


def test_a_mask_tells_neither_length_nor_equality():
    """b.A row 22: hashes and lengths are an oracle (CVE-2026-42880)."""
    assert HIDDEN == masked("Secret", ("data", "a"), "x")
    assert HIDDEN == masked("Secret", ("data", "b"), "y" * 500)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("ConfigMap", ("data", "config"), "max_tokens: 5"),
        ("Deployment", ("spec", "replicas"), 3),
        ("Deployment", ("spec", "automountServiceAccountToken"), False),
        ("Deployment", ("spec", "volumes", "[name=x]", "secret", "secretName"), "hf"),
        ("Deployment", ("spec", "env", "[name=HF_TOKEN_PATH]", "value"), "/run/token"),
        ("Deployment", ("spec", "env", "[name=MAX_TOKENS]", "value"), "32"),
        ("Deployment", ("spec", "args"), ["--max-model-len", "32768", "--tokenizer", "x"]),
        ("Secret", ("metadata", "annotations", "stoker.dev/owner"), "f/u"),
        ("Secret", ("metadata", "labels", "app"), "x"),
        ("Secret", ("type",), "Opaque"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)
def test_what_is_no_secret_stays_readable(kind, path, value):
    """A mask on everything is as useless as none (b.A row 25, helm-controller 935)."""
    assert value == masked(kind, path, value)


def test_the_kind_is_the_objects_own_not_a_label():
    """cases.md row 149, b.A row 24: a Secret in a ConfigMap's clothes is masked by its own kind."""
    assert masked("Secret", ("data", "x"), CANARY) == HIDDEN
    assert masked("ConfigMap", ("data", "x"), CANARY) == CANARY


def test_names_stay_where_only_the_value_is_secret():
    env = {"name": "API_KEY", "value": CANARY}

    assert masked("Deployment", ("env", "[name=API_KEY]"), env) == {
        "name": "API_KEY",
        "value": HIDDEN,
    }
    assert masked("Deployment", ("args",), ["--api-key", CANARY, "--port"]) == [
        "--api-key",
        HIDDEN,
        "--port",
    ]
    assert masked("Deployment", ("args", "[0]"), f"--token={CANARY}") == f"--token={HIDDEN}"


def test_references_to_secrets_are_shown():
    source = {"secretKeyRef": {"name": "hf", "key": "token"}}

    assert masked("Deployment", ("env", "[name=HF_TOKEN]", "valueFrom"), source) == source


def test_absent_stays_absent():
    assert masked("Secret", ("data", "x"), None) is None
    assert masked("ConfigMap", (), "plain") == "plain"


def test_neighbours_are_looked_at():
    assert hides_by_neighbour(["--api-key", "x"])
    assert not hides_by_neighbour(["--api-key=x", 5])


def test_refusals_of_secrets_tell_only_reason_and_fields():
    """b.A row 20: the API server quotes the value it refuses (GHSA-274v-mgcv-cm8j)."""
    message = f'Secret "s" is invalid: data[x]: Invalid value: "{CANARY}"'

    assert masked_refusal("Secret", "Invalid", message, [("data[x]", CANARY)]) == "Invalid: data[x]"
    assert masked_refusal("Secret", "", message, []) == "refused"
    assert masked_refusal("Deployment", "Invalid", "spec.x: wrong", []) == "spec.x: wrong"
    assert CANARY not in masked_refusal("Deployment", "", f"got --api-key={CANARY}", [])


def test_long_refusals_keep_their_point():
    """An immutable template is quoted whole before the words that matter."""
    quote = "Invalid value: " + "{" * 2_000 + ": field is immutable"

    told = masked_refusal("Job", "Invalid", f"Job is invalid: {quote}", [("spec.template", quote)])
    assert told.startswith("spec.template: Invalid value")
    assert told.endswith("field is immutable")
    assert len(told) < 300
    assert masked_refusal("Job", "", quote, []).endswith("field is immutable")
    short = masked_refusal("Job", "", "x" * 301, [("a", "wrong"), ("b", "bad")])
    assert short == "a: wrong; b: bad"


LONG = 2**20


@pytest.mark.parametrize("piece", ["a", "a-", "-eyJ", ".eyJ", "--a", "ab://", "?tokentoken", "-a "])
def test_no_text_takes_for_ever(piece):
    """b.A row 10: people who can push choose a MiB of text, which the controller masks itself."""
    text = piece * (LONG // len(piece))

    assert masked_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"https://acct.example/models?sv=2024&sig={CANARY}",
        f"https://h/x?X-Amz-Signature={CANARY}&x=1",
        f"--model s3://b/m?access_token={CANARY}",
        f"eyJhbGciOiJI.eyJzdWIiOiIx{CANARY}.sig",
        f"postgres://me:{CANARY}@h/db",
    ],
)
def test_addresses_that_carry_a_token_are_secrets(text):
    """b.F row 45 (CVE-2024-31216): a signed address in a log."""
    assert CANARY not in masked_text(text)


def test_words_that_only_look_alike_are_no_secrets():
    assert names_secret("HF_TOKEN")
    assert names_secret("dsn")
    assert not names_secret("tokenizer")
    assert not names_secret("author")
    assert not names_secret("bypass_cache")
    assert masked_text("see https://example.org/a:b") == "see https://example.org/a:b"
