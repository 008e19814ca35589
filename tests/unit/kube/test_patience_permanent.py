"""Which failures of the server are worth another try."""

import pytest

from stoker.kube.patience import may_pass
from stoker.kube.transport import Response

REFUSED = b'{"message":"failed to create typed patch object (default/un; apps/v1): .spec.imge"}'


@pytest.mark.parametrize(
    ("status", "body", "again"),
    [
        (500, b'{"message":"etcdserver: request timed out"}', True),
        (503, b"", True),
        (500, REFUSED, False),
        (422, b"", False),
        (200, b"", False),
    ],
    ids=["etcd", "unavailable", "bad-input-as-500", "invalid", "fine"],
)
def test_a_500_that_means_bad_input_is_not_sent_again(status, body, again):
    """[tried] unknown fields come back as 500 and will do so for ever."""
    assert again == may_pass(Response(status, body))
