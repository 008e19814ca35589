"""Shipped scenarios whose bars the product can miss on a control plane; in memory all hold.

In virtual time a notice is heard when it is given and endpoints follow at once. A process takes
some tens of milliseconds for that, times the time scale: a client whose list was made in that
window, and is used 10 s later, may send an answer that outlasts the node.
"""

FALLS_SHORT = {
    "short-notice": (
        "of 30 s a client that is 10 s behind leaves 20 s: one that looked between the notice and "
        "the end of admission sends answers there, and one in five is longer. Seeds 1 to 3 held on a "
        "busy machine (2026-11-30), with admission seen to end 0.3 to 0.7 s after the notice, "
        "at four times the speed"
    ),
}
"""Scenarios whose bars may be missed, with what it lacks. Bars are never softened for it."""
