"""The commands of a shell script, with the words, the variables and the branches that they stand in.

tree-sitter's grammar of Bash reads the text; nothing is run. https://github.com/tree-sitter/tree-sitter-bash
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from argosy.workflows.imports.word import Piece, Word
from argosy.workflows.manifests.node import Node

if TYPE_CHECKING:
    import tree_sitter

SHELLS: Final = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_BRANCHES: Final = {
    "if_statement": "if",
    "elif_clause": "if",
    "else_clause": "else",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "while_statement": "a loop",
    "case_statement": "case",
    "function_definition": "a function",
}
_EXPORTS: Final = ("export", "declare", "typeset")
_LONGEST: Final = 200_000
"""Characters of a script: an argv is limited to 128 KiB by Linux anyway."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """``X=value``; ``exported`` when the programs see it."""

    name: str
    value: Word
    exported: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a script, or the only one of an argv.

    Args:
        words: its words, the program first; none for a mere assignment.
        assignments: what is set for it, or from it on when it has no words.
        node: the value that holds it.
        part: how it is written there; ``""`` for an argv.
        inside: ``""``, or what decides whether and how often it is run: ``if``, ``a loop``, ….
        redirected: where its output goes, or what it reads, as it is written.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    node: Node
    part: str
    inside: str = ""
    redirected: str = ""

    @property
    def whole(self) -> Word:
        """All of it, for an account."""
        return Word((), self.node, self.part)


def read_script(text: str, node: Node) -> tuple[list[Command], bool]:
    """(commands in the order of the text, whether all of it was understood).

    Args:
        text: the script; ``node`` is the value that holds it.
    """
    if len(text) > _LONGEST:
        return [], False
    data = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    root = _parser().parse(data).root_node
    return list(_Reader(data, node).commands(root, "", "")), not root.has_error


@cache
def _parser() -> tree_sitter.Parser:
    # Imported here: most argvs are no scripts.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reader:
    def __init__(self, data: bytes, node: Node) -> None:
        self._data = data
        self._node = node

    # ---- commands

    def commands(self, node: tree_sitter.Node, inside: str, redirected: str) -> Iterator[Command]:
        kind = node.type
        if kind == "command":
            yield self._command(node, inside, redirected)
        elif kind in ("declaration_command", "variable_assignment", "variable_assignments"):
            found = tuple(self._assignments(node))
            words = () if found else tuple(self._declared(node))
            yield Command(words, found, self._node, self._text(node), inside, redirected)
        elif kind in ("test_command", "unset_command"):
            word = Word((Piece(self._text(node)),), self._node, self._text(node))
            yield Command((word,), (), self._node, self._text(node), inside, redirected)
        elif kind == "redirected_statement":
            yield from self._redirected(node, inside)
        elif node.is_named and kind not in ("comment", "heredoc_body", "word", "string"):
            yield from self._below(node, _BRANCHES.get(kind, inside), redirected)

    def _below(self, node: tree_sitter.Node, inside: str, redirected: str) -> Iterator[Command]:
        below = node.children
        for index, child in enumerate(below):
            after = below[index + 1].type if index + 1 < len(below) else ""
            before = below[index - 1].type if index else ""
            where = inside
            if after == "&":
                where = inside or "the background"
            elif before == "||":
                where = inside or "what follows ||"
            yield from self.commands(child, where, redirected)

    def _redirected(self, node: tree_sitter.Node, inside: str) -> Iterator[Command]:
        marks = [child for child in node.children if child.type.endswith("_redirect")]
        shown = " ".join(self._text(each).split("\n")[0] for each in marks)
        for child in node.children:
            if not child.type.endswith("_redirect"):
                yield from self.commands(child, inside, shown)
            elif child.type == "heredoc_redirect":  # `cat <<E | tee x` and `<<E && y` hang below it
                yield from self._below(child, inside, "")

    def _command(self, node: tree_sitter.Node, inside: str, redirected: str) -> Command:
        words: list[Word] = []
        own = ""
        for child in node.children:
            if child.type == "command_name":
                words.extend(self._word(each) for each in child.children)
            elif child.type.endswith("_redirect"):
                own += f" {self._text(child)}"
            elif child.type not in ("variable_assignment", "comment"):
                words.append(self._word(child))
        assignments = tuple(
            Assignment(each.name, each.value, True)
            for child in node.children
            if child.type == "variable_assignment"
            for each in self._assignments(child)
        )
        text = self._text(node)
        return Command(tuple(words), assignments, self._node, text, inside, f"{redirected}{own}".strip())

    def _declared(self, node: tree_sitter.Node) -> Iterator[Word]:
        for child in node.children:
            yield self._word(child)

    def _assignments(self, node: tree_sitter.Node) -> Iterator[Assignment]:
        exported = bool(node.children) and node.children[0].type in _EXPORTS
        for child in node.children if node.type != "variable_assignment" else [node]:
            name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            if child.type == "variable_assignment" and name is not None:
                empty = Word((Piece(""),), self._node, self._text(child))
                held = self._word(value) if value is not None else empty
                yield Assignment(self._text(name), Word(held.pieces, held.node, self._text(child)), exported)

    # ---- words

    def _text(self, node: tree_sitter.Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _word(self, node: tree_sitter.Node) -> Word:
        return Word(tuple(self._pieces(node, bare=True)), self._node, self._text(node))

    def _pieces(self, node: tree_sitter.Node, *, bare: bool) -> Iterator[Piece]:
        kind, text = node.type, self._text(node)
        if kind == "raw_string":
            yield Piece(text[1:-1])
        elif kind in ("string", "translated_string"):
            yield from self._string(node)
        elif kind == "concatenation":
            for child in node.children:
                yield from self._pieces(child, bare=bare)
        elif kind == "simple_expansion":
            yield Piece(text, variable=text[1:], bare=bare)
        elif kind == "expansion":
            yield self._expansion(text, bare=bare)
        elif kind in ("word", "number", "string_content"):
            glob = bare and kind == "word" and re.search(r"(?<!\\)[*?]", text) is not None
            yield Piece(text if glob else _unescaped(text, bare=bare), bare=bare, unknown=glob)
        elif node.child_count or kind in ("ansi_c_string",):
            yield Piece(text, bare=bare, unknown=True)
        else:
            yield Piece(text, bare=bare)

    def _string(self, node: tree_sitter.Node) -> Iterator[Piece]:
        """The grammar leaves out blanks between two expansions: what no child covers is text."""
        end = node.start_byte + (2 if node.type == "translated_string" else 1)
        if self._text(node).lstrip("$") == '""':
            yield Piece("")
        for child in node.children:
            if child.type in ('"', "$"):
                continue
            if child.start_byte > end:
                yield Piece(_unescaped(self._data[end : child.start_byte].decode("utf-8", "replace"), bare=False))
            yield from self._pieces(child, bare=False)
            end = child.end_byte
        if node.end_byte - 1 > end:
            yield Piece(_unescaped(self._data[end : node.end_byte - 1].decode("utf-8", "replace"), bare=False))

    @staticmethod
    def _expansion(text: str, *, bare: bool) -> Piece:
        found = re.fullmatch(r"\$\{(\w+|@|\*)(?::?-([^${}`]*))?\}", text)
        if found is None:
            return Piece(text, bare=bare, unknown=True)
        default = found[2].strip("\"'") if found[2] is not None else None
        return Piece(text, variable=found[1], default=default, bare=bare)


def _unescaped(text: str, *, bare: bool) -> str:
    text = text.replace("\\\n", "")
    return re.sub(r"\\(.)", r"\1", text) if bare else re.sub(r'\\(["$`\\])', r"\1", text)
