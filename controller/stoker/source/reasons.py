"""Every reason code of source and git, each with one line for people.

The published, closed list: `stoker explain CODE` and docs/reasons.md print it. A test finds
each code that the two folders use in it, and nothing else.
"""

from __future__ import annotations

__all__ = ["REASONS"]

_FILES = {
    "ambiguous-scalar": "Readers of YAML disagree on this unquoted text; put it in quotes.",
    "conflict-marker": "The file holds an unresolved merge conflict.",
    "duplicate-health-check": "Two health files of the fleet describe one kind; the first is used.",
    "duplicate-key": "A map gives the same key twice; readers would keep different ones.",
    "file-changed": "A file changed while the folder was read; run the command again.",
    "file-missing": "A file that was listed has no content to read.",
    "file-unreadable": "A pattern names what is no file (a pipe, say) or cannot be looked at.",
    "file-too-large": "The file is over the limit: 1 MiB for fleet and unit files, 5 MiB for others.",
    "fleet-file-missing": "The Fleet file is not at that path of the commit.",
    "folder-unreadable": "A folder cannot be listed, so what it holds is unknown.",
    "include-no-match": "A pattern of spec.include matches no file; nothing is pruned meanwhile.",
    "invalid-encoding": "The file is not plain UTF-8 text.",
    "invalid-yaml": "The file is no YAML that can be read.",
    "link-not-followed": "A pattern names a symbolic link or a submodule, and neither is followed.",
    "lfs-pointer": "The file is a Git LFS pointer, not the content; LFS is not supported.",
    "merge-key": "YAML merge keys (<<) are not allowed in fleet files.",
    "multiple-documents": "The Fleet file must hold exactly one document.",
    "no-units": "The included files hold no unit at all; nothing is pruned meanwhile.",
    "path-outside-repository": "A path leads out of the repository.",
    "path-too-long": "A pattern names a file whose path is over 4,096 bytes; move it.",
    "templates-no-match": "A folder of spec.templates holds no file.",
    "yaml-tag": "YAML tags are not allowed in fleet files.",
    "yaml-too-deep": "The file is nested more than 100 levels deep.",
    "yaml-too-large": "The file holds more than 100,000 values after aliases are expanded.",
}

_FIELDS = {
    "expressions-missing": "The package that evaluates CEL is not installed here.",
    "field-missing": "A required field is absent.",
    "invalid-duration": "Not a duration as Gateway API spells them: 90s, 10m, 1h30m.",
    "invalid-expression": "The CEL expression cannot be used; line and column are in the file.",
    "invalid-name": "Names are DNS labels: a-z, 0-9 and -, at most 63 characters.",
    "invalid-quantity": "Not a Kubernetes quantity: 500m, 4, 16Gi.",
    "invalid-type": "The value has another type than the field takes.",
    "invalid-value": "The value is outside what the field takes.",
    "not-implemented-yet": "The design has this field, this version does not obey it yet.",
    "unknown-field": "No such field.",
}

_UNITS = {
    "adopt-keeps-service": "An adopted workload keeps the Service it has; none is rendered for it.",
    "adopt-needs-scheduler": "spec.adopt keeps one Deployment, so placement.mode must be Scheduler.",
    "bundle-render": "A Bundle renders exactly one of manifests and jinja.",
    "budget-below-min": "maxGPUs is less than the GPUs of the least replicas.",
    "duplicate-metric": "Two metrics, wake sources or scheduled bounds of a unit have one name.",
    "duplicate-metric-source": "Two metric sources of the Fleet have one name.",
    "duplicate-pool": "Two pools have one name, or a service names a pool twice.",
    "dependency-circle": "Units wait for each other by dependsOn; none of them is applied.",
    "duplicate-unit": "Two files define one unit; neither is applied until one is gone.",
    "duplicate-window": "Two change windows have one name.",
    "invalid-model-revision": "An hf:// model needs the commit of its weights: 40 hex digits.",
    "invalid-model-uri": "model.uri needs a scheme, as in hf://organisation/name.",
    "invalid-schedule": "Not a cron schedule of five fields: 0 9 * * 1-5.",
    "invalid-target": "A target is a number above zero, in quotes and without %.",
    "manifest-no-match": "A pattern of a Bundle matches no file.",
    "metric-query": "An entry asks exactly one thing: a scrape, a Prometheus, a decision or a schedule.",
    "metric-source-type": "A metric source is a Prometheus or a decision server, and asked as such.",
    "metric-without-target": "A metric needs the value that one replica should have.",
    "min-above-max": "minReplicas is above maxReplicas, so that no count is left.",
    "namespace-missing": "The unit names no namespace, and the Fleet has no default.",
    "groups-unfit": "The field is not for replicas over several nodes (parallelism.nodes above 1).",
    "parallelism-mismatch": "tensor times pipeline must be gpu.count times parallelism.nodes.",
    "nothing-holds": "No request waits while the service is at zero: the first clients get errors.",
    "picker-needs-pool": "expose.endpointPicker is for an InferencePool; expose.inferencePool names it.",
    "policy-without-zero": "scaleToZero has a policy, and minReplicas never lets the last replica go.",
    "pools-missing": "Mode Nodes needs a pool, and the Fleet has none.",
    "replicas-and-scaling": "replicas and scaling exclude each other.",
    "scaling-external": "With scaling.mode External somebody else owns the count: nothing stands beside it.",
    "second-owner": "Two units would decide the count of one workload; neither is applied.",
    "status-branch-is-source": "Status must not be committed to the branch that is read.",
    "target-of-decision": "A decision server answers a count of replicas, which takes no target.",
    "unit-patch-no-match": "A patch of spec.unitPatches matches no unit.",
    "unknown-dependency": "dependsOn names a unit that the fleet does not have.",
    "unknown-metric-source": "The Fleet has no metric source of that name.",
    "unknown-pool": "The Fleet has no pool of that name.",
    "unknown-time-zone": "Not the name of a time zone: Europe/Berlin.",
    "wrong-api-version": "The only apiVersion is stoker.dev/v1alpha1.",
    "wrong-kind": "The kind does not belong in this file.",
    "zero-without-policy": "minReplicas is 0, and scaleToZero.policy Never keeps one replica.",
    "zero-without-wake": "Nothing would wake a service that has no replica.",
}

_GIT = {
    "branch-exists": "The clone has a branch of that name; it is never moved.",
    "bug": "Stoker itself is at fault; please report it.",
    "disk-full": "The disk that holds the local mirror is full.",
    "git-missing": "The git program is not installed.",
    "git-not-started": "The operating system could not start git just now.",
    "mirror-busy": "Another process writes to the local mirror.",
    "mirror-corrupt": "The local mirror is damaged; the next fetch rebuilds it.",
    "push-race-lost": "Others pushed to the branch each time we tried; tried again later.",
    "read-only": "This repository is only read.",
    "ref-ambiguous": "A branch and a tag have that name and differ; write the full ref.",
    "ref-invalid": "Git does not allow that as the name of a ref.",
    "ref-not-found": "The repository has no such branch, tag or commit.",
    "repository-denied": "The server refuses our credentials.",
    "repository-empty": "The repository has no commit yet.",
    "repository-host-key-unknown": "The ssh server's host key is not among the known ones.",
    "repository-not-found": "The server has no such repository, or hides it from us.",
    "repository-redirected": "The server redirects; write the final address.",
    "repository-unreachable": "The server did not answer, or not in time.",
    "repository-too-large": "The server answers with more than any repository that can be meant.",
    "repository-unsafe": "The server sent objects that fail git's own checks.",
    "repository-url-refused": "The address has a scheme or characters that are not allowed.",
    "state-folder-unusable": "The folder of the local mirror cannot be written, or no file can be opened.",
}

REASONS: dict[str, str] = dict(sorted((_FILES | _FIELDS | _UNITS | _GIT).items()))
"""Code to explanation, sorted by code."""
