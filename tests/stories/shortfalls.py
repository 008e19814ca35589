"""Shipped scenarios whose bars the product misses today; in memory and on a control plane alike."""

FALLS_SHORT = {
    "broken-node": (
        "startsWasted 4, at most 2: nothing remembers that the node is broken, so each service buys "
        "a start there; and while a crashed engine runs again between two crashes its replica "
        "counts as warming, so the substitute elsewhere is given up after 10 s and bought again"
    ),
    "short-notice": (
        "truncated: a replica elsewhere serves, and still traffic is taken off only at deadline - "
        "endpointSync - shutdown, 10 s after the notice, because the other is one of two wanted"
    ),
    "no-spare-gpu": (
        "truncated: with no place for a successor, traffic is taken off at deadline - endpointSync "
        "- shutdown, 45 s before the end, while answers take 90 s at P99 and a replica elsewhere serves"
    ),
}
"""Scenarios whose bars the product misses, with what it lacks. Bars are never softened for it."""
