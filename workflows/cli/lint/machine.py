"""Findings for programs: JSON, SARIF 2.1.0, and GitHub's workflow commands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.page import page

_SARIF_LEVEL: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}
_GITHUB_LEVEL: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def as_json(findings: Sequence[Finding], fixable: Collection[Finding]) -> str:
    """``{"findings": [{"rule", "level", "file", "line", "column", "end_column", "message", "remedy", "fixable"}]}``."""
    return json.dumps({"findings": [_plain(each, fixable) for each in findings]}, indent=2, ensure_ascii=False)


def _plain(finding: Finding, fixable: Collection[Finding]) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level.word,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "end_column": finding.end_column,
        "message": finding.message,
        "remedy": finding.remedy,
        "fixable": finding in fixable,
    }


def as_sarif(findings: Sequence[Finding], version: str) -> str:
    """A SARIF log of one run. https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html"""
    names = sorted({finding.rule for finding in findings})
    driver = {
        "name": "argosy",
        "semanticVersion": version,
        "rules": [_sarif_rule(name) for name in names],
    }
    results = [_sarif_result(finding, names.index(finding.rule)) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _sarif_rule(name: str) -> dict[str, Any]:
    held = page(name)
    return {
        "id": name,
        "shortDescription": {"text": held.title},
        "help": {"text": held.text, "markdown": held.text},
        "helpUri": held.sources[0],
        "defaultConfiguration": {"level": held.level},
    }


def _sarif_result(finding: Finding, index: int) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column, "endColumn": finding.end_column}
    uri = quote(PurePath(finding.file).as_posix())
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _SARIF_LEVEL[finding.level],
        "message": {"text": f"{finding.message}; {finding.remedy}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}],
    }


def as_github(findings: Sequence[Finding]) -> Iterator[str]:
    """A workflow command per finding, which GitHub shows beside the line of the pull request.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    for each in findings:
        place = f"file={_property(each.file)},line={each.line},col={each.column},endColumn={each.end_column}"
        text = _data(f"{each.message}; {each.remedy}")
        yield f"::{_GITHUB_LEVEL[each.level]} {place},title={_property(each.rule)}::{text}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
