"""What Stoker asks an inference engine over HTTP: its load, and whether it can serve a token."""

from stoker.engine.load import in_flight, in_flight_from_metrics
from stoker.engine.probe import Probe, serves_token

__all__ = ["Probe", "in_flight", "in_flight_from_metrics", "serves_token"]
