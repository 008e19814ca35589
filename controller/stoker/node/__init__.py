"""The node reporter: what one node says about itself, written to its NodeState."""
