import json
import sys

import pytest
import yaml

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.kube.identity import Identity
from stoker.kube.kubeconfig import access_from_kubeconfig

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def access(tmp_path):
    """A kubeconfig whose program prints a token with the number of its run."""

    def make(program):
        script = tmp_path / "login.py"
        script.write_text(program)
        command = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "m",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {"exec": command}}],
            "contexts": [{"name": "m", "context": {"cluster": "c", "user": "u"}}],
        }
        file = tmp_path / "config"
        file.write_text(yaml.safe_dump(document))
        return access_from_kubeconfig(file, allow_exec=True)

    return make


PROGRAM = """
import json, pathlib
runs = pathlib.Path(__file__).with_suffix(".runs")
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
print(json.dumps({credential}))
"""


def credential(token):
    return json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": token},
        }
    )


def test_an_allowed_program_gives_the_token_and_is_asked_again_after_a_401(access):
    program = PROGRAM.replace(
        "{credential}", credential("RUN").replace('"RUN"', '"token-%d" % count')
    )
    identity = Identity(access(program), SystemClock())

    first = identity.token()
    renewed = identity.renew()

    assert first.startswith("token-")
    assert renewed
    assert identity.token() != first


def test_a_program_that_fails_is_named_without_its_output(access):
    with pytest.raises(Stalled) as caught:
        Identity(access("print('canary-secret'); raise SystemExit(3)"), SystemClock()).token()

    assert caught.value.code == "login-failed"
    assert "canary-secret" not in str(caught.value)
