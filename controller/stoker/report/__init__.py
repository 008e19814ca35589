"""The last stage: conditions, status documents, mirrors, decision records, and who writes them."""

from stoker.report.definitions import definition_manifests, definition_texts
from stoker.report.inputs import (
    Event,
    EventType,
    Identity,
    Report,
    ReportInputs,
    StatusWritten,
)
from stoker.report.install import InstallSettings, Login, install_manifests, instance_id
from stoker.report.install_key import DeployKey, new_deploy_key, wants_deploy_key
from stoker.report.manifest_yaml import manifest_text
from stoker.report.mirror import Mirror
from stoker.report.mirrors import FLEET_ID
from stoker.report.mirrors_write import MirrorsWritten, MirrorWriter
from stoker.report.previous import PreviousStatus, previous_from_files
from stoker.report.publish import Publisher, Submission
from stoker.report.reasons import REASONS
from stoker.report.records import DecisionInputs
from stoker.report.render_status import Paint, StatusView, render_status, view_documents
from stoker.report.report import decision_digest, report
from stoker.report.unit_report import UnitReport

__all__ = [
    "decision_digest",
    "DecisionInputs",
    "definition_manifests",
    "definition_texts",
    "DeployKey",
    "Event",
    "EventType",
    "FLEET_ID",
    "Identity",
    "install_manifests",
    "InstallSettings",
    "instance_id",
    "Login",
    "manifest_text",
    "Mirror",
    "MirrorsWritten",
    "MirrorWriter",
    "new_deploy_key",
    "Paint",
    "previous_from_files",
    "PreviousStatus",
    "Publisher",
    "REASONS",
    "render_status",
    "Report",
    "report",
    "ReportInputs",
    "StatusView",
    "StatusWritten",
    "Submission",
    "UnitReport",
    "view_documents",
    "wants_deploy_key",
]
