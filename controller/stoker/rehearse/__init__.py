"""Rehearsals: a scenario is played on a cluster under load, and judged against its bars."""
