"""Pure Kubernetes knowledge that stages share: names, canonical form, ownership, health."""
