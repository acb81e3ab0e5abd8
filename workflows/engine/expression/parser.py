"""Text to tree, with lark; the grammar is loaded on first use because most workflows have no expression."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark, Tree


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the message says where and why.

    ``unsupported`` marks what Argo could evaluate and we cannot: that must never pass in silence.
    """

    def __init__(self, message: str, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.unsupported = unsupported


@lru_cache(maxsize=4)
def load_grammar(name: str) -> Lark:
    """The LALR parser of ``NAME.lark`` beside this module."""
    from lark import Lark

    text = Path(__file__).with_name(f"{name}.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True)


def parse_with(grammar: str, text: str) -> Tree[Any]:
    """The tree of ``text`` in one of our grammars.

    Raises:
        ExpressionError: it is not in the language.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        return load_grammar(grammar).parse(text)
    except UnexpectedCharacters as error:
        place = error.pos_in_stream or 0
        raise ExpressionError(f"unexpected character {text[place]!r} at {place}") from None
    except UnexpectedToken as error:
        found = "end of expression" if error.token.type == "$END" else repr(str(error.token))
        raise ExpressionError(f"unexpected {found} at {error.pos_in_stream}") from None
    except UnexpectedInput as error:
        raise ExpressionError(str(error).splitlines()[0]) from None


_OPERATORS = ("either", "both", "compare", "compare_not", "arithmetic")


@lru_cache(maxsize=512)
def parse(text: str) -> Tree[Any]:
    """The tree of an expr-lang expression.

    Raises:
        ExpressionError: not in the supported part of the language.
    """
    tree = parse_with("grammar", text)
    for each in tree.find_pred(lambda each: each.data in _OPERATORS):
        left = each.children[0]
        if left.data == "coalesce" and vars(left.meta)["container_start_pos"] == left.meta.start_pos:  # in no brackets
            raise ExpressionError("?? and an operator after it cannot be mixed: put brackets around one of them")
    return tree
