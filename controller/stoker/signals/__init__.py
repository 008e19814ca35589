"""What services that scale are measured by: pods scraped, Prometheus and decision servers asked."""

from stoker.signals.headers import SecretHeaders
from stoker.signals.once import ReadOnce
from stoker.signals.poller import SignalPoller
from stoker.signals.reader import SignalReader

__all__ = ["ReadOnce", "SecretHeaders", "SignalPoller", "SignalReader"]
