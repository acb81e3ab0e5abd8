"""Every file that a page names by a link, or a table of the README by its path, is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("examples/*/README.md")]
MAPS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "tests" / "README.md"]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ROOM = re.compile(r"`((?:steps|workflows|tests|docs|examples)/[\w./-]+)`")


def test_what_pages_name_is_there() -> None:
    linked = [(page, page.parent / to) for page in PAGES for to in LINK.findall(page.read_text()) if ":" not in to]
    named = [(page, ROOT / to) for page in MAPS for to in ROOM.findall(page.read_text())]
    assert len(linked) > 60
    assert len(named) > 30
    assert [f"{page.name}: {to}" for page, to in [*linked, *named] if not to.exists()] == []


def test_every_page_has_its_place_on_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in ROOT.glob("docs/*.md") if page.name not in nav] == []
