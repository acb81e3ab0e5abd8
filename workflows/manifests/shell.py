"""The commands of a shell script, with the words, the variables and the branches that they stand in.

tree-sitter's grammar of Bash reads the text; nothing is run. What it does not understand is left out, never guessed.
https://github.com/tree-sitter/tree-sitter-bash
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.word import Piece, Word

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
_DEEPER: Final = (*_BRANCHES, "subshell", "compound_statement")
_HEADS: Final = ("if_statement", "for_statement", "c_style_for_statement", "while_statement", "case_statement")
_BODIES: Final = ("do_group", "compound_statement", "then", "case_item", "esac")
_OPERATORS: Final = ("&&", "||", "|", "|&", ";", "&", ";;")
_DEEPEST: Final = 60
"""Statements within statements: a script that nests deeper is nobody's."""
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
        before: the operator in front of it: ``\\n``, ``;``, ``&&``, ``||``, ``|``, ``&``, or ``""`` at the beginning.
        after: the operator behind it.
        depth: 0 at the top level, more inside of ``if``, loops, functions and subshells.
        head: it is no command, but the beginning of a statement that holds some (``while true``).
        line: the lines that it stands on, joined where a backslash joins them.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    node: Node
    part: str
    inside: str = ""
    redirected: str = ""
    before: str = ""
    after: str = "\n"
    depth: int = 0
    head: bool = False
    line: str = ""

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
    found, whole = read_statements(text, node)
    return [each for each in found if not each.head], whole


def read_statements(text: str, node: Node) -> tuple[list[Command], bool]:
    """As :func:`read_script`, with the heads of ``if``, ``case`` and loops among the commands."""
    data = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    root = _parser().parse(data).root_node
    reader = _Reader(data, node)
    reader.commands(root, "", "", 0)
    reader.end()
    return reader.found, not root.has_error


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
        self.found: list[Command] = []
        self._between: list[str] = []
        """Operators since the last command."""

    # ---- commands

    def commands(self, node: tree_sitter.Node, inside: str, redirected: str, depth: int) -> None:
        kind = node.type
        if kind == "command":
            self._command(node, inside, redirected, depth)
        elif kind in ("declaration_command", "variable_assignment", "variable_assignments"):
            found = tuple(self._assignments(node))
            words = () if found else tuple(self._declared(node))
            self._add(node, words, found, inside, redirected, depth)
        elif kind in ("test_command", "unset_command"):
            word = Word((Piece(self._text(node)),), self._node, self._text(node))
            self._add(node, (word,), (), inside, redirected, depth)
        elif kind == "redirected_statement":
            self._redirected(node, inside, depth)
        elif node.is_named and kind not in ("comment", "heredoc_body", "word", "string") and depth < _DEEPEST:
            self._head(node, inside, depth)
            self._below(node, _BRANCHES.get(kind, inside), redirected, depth + (kind in _DEEPER))

    def _add(
        self,
        node: tree_sitter.Node,
        words: tuple[Word, ...],
        assignments: tuple[Assignment, ...],
        inside: str,
        redirected: str,
        depth: int,
    ) -> None:
        self.end()
        before = (self._between or ["\n"])[-1] if self.found else ""
        self._between = []
        text = self._text(node)
        self.found.append(
            Command(
                words, assignments, self._node, text, inside, redirected, before, "\n", depth, line=self._line(node)
            )
        )

    def end(self) -> None:
        """The operator behind the last command is known."""
        if self.found and self._between:
            self.found[-1] = replace(self.found[-1], after=self._between[0])

    def _line(self, node: tree_sitter.Node) -> str:
        start, end = self._data.rfind(b"\n", 0, node.start_byte) + 1, node.end_byte
        while (end := self._data.find(b"\n", end)) > 0 and self._data[end - 1 : end] == b"\\":
            end += 1
        line = self._data[start : end if end > 0 else len(self._data)].decode("utf-8", "replace")
        return line.replace("\\\n", " ").strip()

    def _head(self, node: tree_sitter.Node, inside: str, depth: int) -> None:
        first, body = node.children[:1], next((each for each in node.children if each.type in _BODIES), None)
        if node.type in _HEADS and first and body is not None:
            text = self._data[first[0].start_byte : body.start_byte].decode("utf-8", "replace").rstrip("; \n")
            words = tuple(Word((Piece(word),), self._node, word) for word in text.split())
            self._add(node, words, (), inside, "", depth)
            self.found[-1] = replace(self.found[-1], part=text, head=True)

    def _below(self, node: tree_sitter.Node, inside: str, redirected: str, depth: int) -> None:
        below = node.children
        for index, child in enumerate(below):
            after = below[index + 1].type if index + 1 < len(below) else ""
            before = below[index - 1].type if index else ""
            where = inside
            if after == "&":
                where = inside or "the background"
            elif before == "||":
                where = inside or "what follows ||"
            if child.type in _OPERATORS:
                self._between.append(child.type)
            self.commands(child, where, redirected, depth)

    def _redirected(self, node: tree_sitter.Node, inside: str, depth: int) -> None:
        marks = [child for child in node.children if child.type.endswith("_redirect")]
        shown = " ".join(self._text(each).split("\n")[0] for each in marks)
        for child in node.children:
            if not child.type.endswith("_redirect"):
                self.commands(child, inside, shown, depth)
            elif child.type == "heredoc_redirect":  # `cat <<E | tee x` and `<<E && y` hang below it
                self._below(child, inside, "", depth)

    def _command(self, node: tree_sitter.Node, inside: str, redirected: str, depth: int) -> None:
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
        self._add(node, tuple(words), assignments, inside, f"{redirected}{own}".strip(), depth)

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
