"""`stoker coldstart` of a data ref: what the starts of a fleet took, without its cluster."""

from __future__ import annotations

from unit.report.test_starts_copy import recorded


def test_coldstart_reads_such_a_folder(shell, tmp_path):
    recorded(tmp_path)

    answer = shell("coldstart", str(tmp_path))

    assert answer.code == 0, answer.err
    assert "llm/qwen  g6.xlarge  image no, weights no" in answer.out
    assert "LearnedStarts" in shell("coldstart", str(tmp_path), "-o", "json").out
    assert shell("coldstart", str(tmp_path), "-o", "svg").code != 0
