import base64
import sys

import pytest
import yaml

from stoker.errors import Stalled
from stoker.kube.kubeconfig import access_from_kubeconfig, access_in_cluster

CANARY = "canary-token-77aa"


def config(context="main", server="https://10.0.0.1:6443", user=None, cluster=None, **more):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "t"}}],
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u", **more}}],
    }


@pytest.fixture
def write(tmp_path):
    def save(document, name="config"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        return file

    return save


def code_of(*args, **more):
    with pytest.raises(Stalled) as caught:
        access_from_kubeconfig(*args, **more)
    assert CANARY not in str(caught.value)
    return caught.value.code


def test_the_current_context_gives_server_token_and_namespace(write):
    access = access_from_kubeconfig(write(config(namespace="llm")))

    assert access.server == "https://10.0.0.1:6443"
    assert access.token == "t"
    assert access.namespace == "llm"
    assert not access.insecure


def test_a_named_context_wins_over_the_current_one(write):
    document = config()
    document["contexts"].append({"name": "other", "context": {"cluster": "d", "user": "u"}})
    document["clusters"].append({"name": "d", "cluster": {"server": "https://d"}})

    assert access_from_kubeconfig(write(document), "other").server == "https://d"


def test_inline_data_wins_over_files_and_relative_files_stand_beside_the_config(write, tmp_path):
    write("from file", "keys/ca.crt")
    write("key from file", "keys/client.key")
    inline = base64.b64encode(b"inline certificate").decode()
    file = write(
        config(
            cluster={"certificate-authority": "ca.crt"},
            user={
                "client-certificate-data": inline,
                "client-certificate": "nowhere.crt",
                "client-key": "client.key",
            },
        ),
        "keys/config",
    )

    access = access_from_kubeconfig(file)

    assert access.ca_pem == b"from file"
    assert access.client_certificate == b"inline certificate"
    assert access.client_key == b"key from file"
    folder = file.parent
    assert access.ca_file == str(folder / "ca.crt")
    assert access.key_file == str(folder / "client.key")
    assert not access.certificate_file, "what stands inline has no file to read again"


def test_a_token_file_wins_over_an_inline_token(write, tmp_path):
    access = access_from_kubeconfig(write(config(user={"token": CANARY, "tokenFile": "t.txt"})))

    assert access.token_file == str(tmp_path / "t.txt")
    assert access.token == ""


def test_a_kubeconfig_list_is_merged_and_the_first_file_wins(write, tmp_path):
    first, second = config("one", "https://first"), config("two", "https://second")
    first["users"] = []
    listed = [write(first, "a"), tmp_path / "missing", write(second, "b")]
    environment = {"KUBECONFIG": ":".join(str(file) for file in listed)}

    current = access_from_kubeconfig(environment=environment)
    other = access_from_kubeconfig(context="two", environment=environment)

    assert (current.context, current.server, current.token) == ("one", "https://first", "t")
    assert (other.context, other.server) == ("two", "https://first")


def test_without_any_name_the_home_file_is_read(write, tmp_path):
    write(config(), ".kube/config")

    assert access_from_kubeconfig(environment={"HOME": str(tmp_path)}).context == "main"


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"command": "cloud-login", "apiVersion": "client.authentication.k8s.io/v1"}},
        {"auth-provider": {"name": "oidc", "config": {"id-token": CANARY}}},
        {"token": CANARY, "exec": {"command": "cloud-login"}},
    ],
    ids=["exec", "auth-provider", "exec beside a token"],
)
def test_programs_are_refused_unless_allowed(write, user):
    """b.C row 123, b.F row 40 (CVE-2022-24817): reading a kubeconfig must not run code."""
    file = write(config(user=user))

    assert code_of(file) == "kubeconfig-exec-refused"
    assert access_from_kubeconfig(file, allow_exec=True).login


def test_programs_of_other_users_do_not_matter(write):
    document = config()
    document["users"].append({"name": "v", "user": {"exec": {"command": "x"}}})

    assert access_from_kubeconfig(write(document)).token == "t"


@pytest.mark.parametrize("key", ["username", "password", "as", "as-uid"])
def test_what_is_not_obeyed_is_refused_and_never_ignored(write, key):
    """Dropping an impersonation silently would act with more rights than asked for."""
    assert code_of(write(config(user={"token": CANARY, key: "x"}))) == "kubeconfig-unsupported"


@pytest.mark.parametrize(
    "document",
    [
        "a: [",
        f"token: {CANARY}\n  bad: indent",
        "- list",
        config(context=""),
        {**config(), "current-context": "missing"},
        {**config(), "clusters": []},
        {**config(), "users": [{"user": {}}]},
        {**config(), "users": "text"},
        {**config(), "clusters": [{"name": "c", "cluster": "text"}]},
        config(server="10.0.0.1"),
        config(server="ftp://x"),
        config(server="https://user:pass@x"),
        config(server="https://x:0"),
        config(server="https://[::1"),
        config(cluster={"certificate-authority-data": "%%%"}),
        config(user={"token": 12}),
    ],
    ids=lambda item: str(item)[:40] if isinstance(item, str) else None,
)
def test_wrong_files_are_refused_with_one_code(write, document):
    assert code_of(write(document), environment={}) == "kubeconfig-invalid"


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [touch trap]", "!!binary aGk="])
def test_tags_in_a_kubeconfig_make_nothing(write, tmp_path, tag, monkeypatch):
    """b.C row 127 (CVE-2021-25738): another client's loader made objects of them."""
    monkeypatch.chdir(tmp_path)

    assert code_of(write(f"users: {tag}\n"), environment={}) == "kubeconfig-invalid"
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("key", ["client-certificate", "client-key", "certificate-authority"])
def test_a_link_out_of_the_folder_is_no_credential(write, tmp_path, key):
    """cases.md row 151, b.C row 132."""
    (tmp_path / "shadow").write_text(CANARY)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "file").symlink_to("../shadow")
    block = {key: "file"}
    place = {"cluster": block} if key == "certificate-authority" else {"user": block}

    assert code_of(write(config(**place), "keys/config")) == "kubeconfig-not-found"


def test_a_missing_file_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(Stalled, match="nowhere") as caught:
        access_from_kubeconfig(tmp_path / "nowhere")

    assert caught.value.code == "kubeconfig-not-found"


def test_a_missing_certificate_file_is_named(write):
    assert (
        code_of(write(config(cluster={"certificate-authority": "gone.crt"})))
        == "kubeconfig-not-found"
    )


def test_an_oversized_file_is_refused(write):
    assert code_of(write("#" * (4 * 1024 * 1024 + 1))) == "kubeconfig-invalid"


def test_reading_kubeconfigs_never_imports_the_kubernetes_package(write, monkeypatch):
    """It takes 0.4 s (deps-ux 1.2), and its loader would run programs."""
    monkeypatch.delitem(sys.modules, "kubernetes", raising=False)

    access_from_kubeconfig(write(config()))

    assert "kubernetes" not in sys.modules


def mounted(tmp_path, *names):
    for name in names:
        (tmp_path / name).write_text(f"{name} content\n")
    return tmp_path


def test_a_pod_uses_its_mounted_account(tmp_path):
    folder = mounted(tmp_path, "token", "ca.crt", "namespace")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = access_in_cluster(environment=environment, folder=folder)

    assert access.server == "https://[fd00::1]:443"
    assert access.token_file == str(folder / "token")
    assert access.ca_pem == b"ca.crt content\n"
    assert access.ca_file == str(folder / "ca.crt")
    assert access.namespace == "namespace content"


@pytest.mark.parametrize("missing", ["token", "ca.crt", "environment"])
def test_outside_a_pod_nothing_is_guessed(tmp_path, missing):
    """Version 36.0.0 of the kubernetes package went on without a token as anonymous (b.C row 126)."""
    folder = mounted(tmp_path, *({"token", "ca.crt"} - {missing}))
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}

    with pytest.raises(Stalled) as caught:
        access_in_cluster(
            environment={} if missing == "environment" else environment, folder=folder
        )

    assert caught.value.code == "not-in-cluster"
