"""Every public report and promise that reaches our code is named by a test, so none is dropped.

`cases.md` lists faults that users reported against tools of this kind (`row N`); in
`reliability-security.md` part a holds promises (`a.3 A1`), part b attacks (`b.G row 92`). A test
names what it replays in its docstring or its id.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = r"\d+(?: ?\([^)]*\))?(?:(?:,| and| to) (?:and )?\d+(?: ?\([^)]*\))?)*"
NAMED = re.compile(rf"(cases\.md|b\.[A-Z]) rows? ({ROWS})")
PROMISED = re.compile(r"\ba\.([3-6]) ([A-Z]\d+(?:,? (?:and )?[A-Z]\d+)*)")


def rows(text: str) -> set[int]:
    """The numbers of `45, 47 (CVE-2020-1) and 49 to 51`."""
    plain = re.sub(r"\([^)]*\)", "", text)
    found = {int(number) for number in re.findall(r"\d+", plain)}
    for first, last in re.findall(r"(\d+) to (\d+)", plain):
        found |= set(range(int(first), int(last) + 1))
    return found


def named_by(text: str) -> set[str]:
    """Every identifier in a text: `cases 45`, `b.G 92`, `a.3 A1`."""
    flat = " ".join(text.split())
    found = {
        f"{part.removesuffix('.md')} {row}"
        for part, listed in NAMED.findall(flat)
        for row in rows(listed)
    }
    return found | {
        f"a.{part} {name}"
        for part, listed in PROMISED.findall(flat)
        for name in re.findall(r"[A-Z]\d+", listed)
    }


def numbered(part: str, first: int, last: int, step: int = 1) -> set[str]:
    return {f"{part} {row}" for row in range(first, last + 1, step)}


LISTED = (
    numbered("cases", 45, 99, 2)
    | numbered("cases", 123, 137, 2)
    | {"cases 143", "cases 149", "cases 151", "cases 161"}
    | numbered("b.A", 1, 38)
    | numbered("b.F", 39, 50)
    | numbered("b.G", 92, 122)
    | numbered("b.C", 123, 132)
    | {f"a.3 A{n}" for n in range(1, 12)}
    | {f"a.4 P{n}" for n in range(1, 10)}
    | {f"a.5 W{n}" for n in range(1, 9)}
    | {f"a.6 L{n}" for n in range(1, 6)}
)

ELSEWHERE = {
    "b.A 8": "archives of charts: Helm sources come later",
    "b.A 12": "receivers of webhooks come later",
    "b.A 13": "receivers of webhooks come later",
    "b.A 14": "receivers of webhooks come later",
    "b.A 15": "receivers of webhooks come later",
    "b.A 28": "nobody logs in: no token of a person is taken",
    "b.A 29": "nobody logs in: no token of a person is taken",
    "b.A 36": "there are no passwords to guess",
    "b.F 41": "Kustomize sources come later; paths of our own files are b.A 1 to 6",
    "b.F 42": "Kustomize sources come later; loops of templates are b.J 82",
    "b.F 46": "receivers of webhooks come later",
}
"""What reaches no code that exists, and why; an entry goes when its code comes."""


def test_every_identifier_is_named_by_a_test():
    found: set[str] = set()
    for file in TESTS.rglob("*.py"):
        if file != Path(__file__):
            found |= named_by(file.read_text("utf-8"))

    assert sorted(LISTED - set(ELSEWHERE) - found) == []


def test_what_is_listed_as_later_is_on_the_list_and_has_a_reason():
    assert set(ELSEWHERE) <= LISTED
    assert all(ELSEWHERE.values())


def test_identifiers_are_read_as_they_are_written():
    """Or the list would be satisfied by nothing."""
    text = """cases.md rows 45, 47
    and 49; b.A rows 1 to 3 and 6, b.F row 47 (CVE-2026-47680): x. b.G rows 93 (CVE-2018-17456),
    94, 98 (CVE-1), and a.3 A1 and A11, a.5 W2"""

    assert named_by(text) == {
        *("cases 45", "cases 47", "cases 49"),
        *("b.A 1", "b.A 2", "b.A 3", "b.A 6", "b.F 47", "b.G 93", "b.G 94", "b.G 98"),
        *("a.3 A1", "a.3 A11", "a.5 W2"),
    }
