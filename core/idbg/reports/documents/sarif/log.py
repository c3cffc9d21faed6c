"""The objects of a SARIF 2.1.0 log that idbg writes; a test checks them against its schema.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html has the meaning of each.
"""

from typing import Literal

import msgspec

from idbg.reports.diagnostics import Level

VERSION: Literal["2.1.0"] = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An object of SARIF: keys are written in its case, and those that say nothing are left out."""


class Message(_Object, frozen=True, kw_only=True):
    """A text, and where a reader takes it the same as Markdown."""

    text: str
    markdown: str | None = None


class ArtifactLocation(_Object, frozen=True, kw_only=True):
    """A file: a URI, relative to what `uri_base_id` stands for."""

    uri: str | None = None
    uri_base_id: str | None = None
    description: Message | None = None


class Region(_Object, frozen=True, kw_only=True):
    """A line, from 1."""

    start_line: int


class PhysicalLocation(_Object, frozen=True, kw_only=True):
    """A line of a file."""

    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(_Object, frozen=True, kw_only=True):
    """A node of a graph."""

    name: str
    fully_qualified_name: str
    kind: str


class Location(_Object, frozen=True, kw_only=True):
    """Where something is, in files and in graphs."""

    id: int | None = None
    physical_location: PhysicalLocation | None = None
    logical_locations: tuple[LogicalLocation, ...] = ()
    message: Message | None = None


class Result(_Object, frozen=True, kw_only=True):
    """One thing that was found. `rule_index` is the rule's in the driver's `rules`."""

    rule_id: str
    rule_index: int
    level: Level
    message: Message
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]
    related_locations: tuple[Location, ...] = ()
    occurrence_count: int | None = None
    properties: dict[str, str | tuple[str, ...]] = {}


class Configuration(_Object, frozen=True, kw_only=True):
    """How bad it is to break a rule."""

    level: Level


class Rule(_Object, frozen=True, kw_only=True):
    """What results are about."""

    id: str
    name: str
    short_description: Message
    full_description: Message
    help: Message
    default_configuration: Configuration
    help_uri: str | None = None
    properties: dict[str, str | tuple[str, ...]] = {}


class Driver(_Object, frozen=True, kw_only=True):
    """The program that found it."""

    name: str
    full_name: str
    semantic_version: str
    rules: tuple[Rule, ...]


class Tool(_Object, frozen=True, kw_only=True):
    """The program that found it, without its plug-ins."""

    driver: Driver


class Notification(_Object, frozen=True, kw_only=True):
    """What is to be known of how it was found."""

    level: Level
    message: Message


class Invocation(_Object, frozen=True, kw_only=True):
    """How it went to find it."""

    execution_successful: bool
    tool_execution_notifications: tuple[Notification, ...] = ()


class AutomationDetails(_Object, frozen=True, kw_only=True):
    """Which of several analyses of the same commit this is: GitHub keeps one for each `id`, which ends with "/"."""

    id: str


class AnalysisRun(_Object, frozen=True, kw_only=True):
    """One analysis."""

    tool: Tool
    invocations: tuple[Invocation, ...]
    original_uri_base_ids: dict[str, ArtifactLocation]
    automation_details: AutomationDetails
    results: tuple[Result, ...]
    column_kind: Literal["unicodeCodePoints"]


class Log(_Object, frozen=True, kw_only=True):
    """The file."""

    schema: str = msgspec.field(name="$schema")
    version: Literal["2.1.0"]
    runs: tuple[AnalysisRun, ...]
