"""No file grows past what one reader can hold."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAP = 350
EXCEPTIONS: dict[str, str] = {}
"""Path from the repository root -> why it may be longer."""


def test_no_module_is_longer_than_the_cap():
    """A longer file holds two ideas; split it or list it here with its reason."""
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted((ROOT / "controller").rglob("*.py"))
    }

    too_long = {name: n for name, n in sizes.items() if n > CAP and name not in EXCEPTIONS}
    assert too_long == {}


def test_exceptions_are_still_needed():
    """An exception that no longer applies is removed."""
    stale = [
        name
        for name in EXCEPTIONS
        if not (ROOT / name).exists()
        or len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= CAP
    ]

    assert stale == []
