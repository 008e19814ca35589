"""What `expose.inferencePool` asks for: an InferencePool beside the Service of a ModelService."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["InferencePool"]


@dataclass(frozen=True, slots=True)
class InferencePool:
    """`picker` is the Service of the endpoint picker, which the API requires."""

    name: str
    picker: str
    picker_port: int = 9002
    failure_mode: str = "FailClose"
