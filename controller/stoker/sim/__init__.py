"""Stand-ins for what Stoker talks to: a control plane, GPU nodes, engines, a Git host, time."""
