"""Shipped scenarios whose bars the product misses today; in memory and on a control plane alike."""

FALLS_SHORT = {
    "short-notice": (
        "truncated 1 with seed 2: 30 s are less than what a client that learns of it 10 s later "
        "and an answer of 20 s together need"
    ),
}
"""Scenarios whose bars the product misses, with what it lacks. Bars are never softened for it."""
