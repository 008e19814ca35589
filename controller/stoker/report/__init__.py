"""The last stage: conditions, status documents, mirrors, decision records, and who writes them."""

from stoker.report.conditions import is_retryable
from stoker.report.definitions import definition_manifests, definition_texts
from stoker.report.documents import duration
from stoker.report.inputs import (
    Event,
    EventType,
    Identity,
    Pending,
    Report,
    ReportInputs,
    StatusWritten,
)
from stoker.report.install import InstallSettings, Login, install_manifests, instance_id
from stoker.report.install_key import DeployKey, new_deploy_key, wants_deploy_key
from stoker.report.install_reporter import ReporterInstall, reporter_manifests
from stoker.report.manifest_yaml import manifest_text
from stoker.report.mirror import Mirror
from stoker.report.mirrors_write import MirrorsWritten, MirrorWriter
from stoker.report.previous import PreviousStatus, previous_from_files
from stoker.report.publish import Publisher, Submission
from stoker.report.reasons import REASONS
from stoker.report.records import DecisionInputs
from stoker.report.render_status import Paint, StatusView, render_status, view_documents
from stoker.report.report import decision_digest, report
from stoker.report.status_files import StatusReader
from stoker.report.unit_report import UnitReport

__all__ = [
    "decision_digest",
    "DecisionInputs",
    "definition_manifests",
    "definition_texts",
    "duration",
    "DeployKey",
    "Event",
    "EventType",
    "Identity",
    "install_manifests",
    "InstallSettings",
    "instance_id",
    "is_retryable",
    "Login",
    "manifest_text",
    "Mirror",
    "MirrorsWritten",
    "MirrorWriter",
    "new_deploy_key",
    "Paint",
    "Pending",
    "previous_from_files",
    "PreviousStatus",
    "Publisher",
    "REASONS",
    "render_status",
    "Report",
    "report",
    "ReporterInstall",
    "reporter_manifests",
    "ReportInputs",
    "StatusReader",
    "StatusView",
    "StatusWritten",
    "Submission",
    "UnitReport",
    "view_documents",
    "wants_deploy_key",
]
