"""Expressions in a document's markers: a safe part of Python's, over given names.

Numbers, texts, names, calls of what is named, arithmetic, comparisons, `and`, `or`, `not`, lists and comprehensions.
No attributes, no assignments, nothing that is not in the namespace.
"""

import ast
import math
import re
from typing import Any

from plots.errors import InputError, hint

ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Call, ast.keyword, ast.Starred),
    *(ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop, ast.IfExp),
    *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension),
)
FUNCTION = (ast.Lambda, ast.arguments, ast.arg)  # of a definition alone
BASIC: dict[str, Any] = {
    **{f.__name__: f for f in (abs, all, any, dict, int, len, list, max, min, range, round, set, sorted, str, sum, tuple, zip)},
    **{f.__name__: f for f in (math.ceil, math.exp, math.floor, math.log, math.prod, math.sqrt)},
}
Names = dict[str, Any]


def evaluate(text: str, names: Names) -> Any:
    """The value of an expression; InputError, in one line, where it has none."""
    return _value(_parsed(text, names), text, names)


def define(text: str, names: Names) -> None:
    """Adds `name = expression` or `name(a, b) = expression` to the names."""
    parts = re.fullmatch(r"([a-z]\w*)(?:\(([\w,*=' ]*)\))?\s*=(?!=)\s*(.+)", text)
    if not parts:
        raise InputError(f"'{text}' is no definition: expected name = expression, or name(a, b) = expression")
    name, parameters, expression = parts.groups()
    if name in names:
        raise InputError(f"'{name}' is defined already")
    function = expression if parameters is None else f"lambda {parameters}: {expression}"
    names[name] = _value(_parsed(function, names, (*ALLOWED, *FUNCTION)), text, names)


def untrue(text: str, names: Names) -> str:
    """Why a relation does not hold, with the numbers that it compares; empty where it does."""
    return _untrue(_parsed(text, names).body, text, names)


def _untrue(node: ast.expr, text: str, names: Names) -> str:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return next((why for part in node.values if (why := _untrue(part, text, names))), "")
    holds = _value(ast.Expression(node), text, names)
    if not isinstance(holds, bool):
        raise InputError(f"'{ast.unparse(node)}' is {_shown(holds)}, which is neither true nor false")
    if holds:
        return ""
    compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    sides = [part for part in compared if not isinstance(part, ast.Constant)]
    values = [f"{ast.unparse(part)} is {_shown(_value(ast.Expression(part), text, names))}" for part in sides]
    return ast.unparse(node) + (f" ({', '.join(values)})" if values else "")


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _parsed(text: str, names: Names, allowed: tuple[type[ast.AST], ...] = ALLOWED) -> ast.Expression:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise InputError(f"'{text}' is no expression: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, allowed):
            raise InputError(f"'{text}': {type(node).__name__} has no place in a marker")
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known = {*names, *BASIC, *bound, *(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in known:
            raise InputError(f"'{text}': there is no '{node.id}'{hint(node.id, known)}")
    return tree


def _value(tree: ast.Expression, text: str, names: Names) -> Any:
    try:
        return eval(compile(tree, "<marker>", "eval"), {"__builtins__": {}, **BASIC, **names})
    except InputError as error:
        raise InputError(f"'{text}': {error}") if f"'{text}'" not in str(error) else error from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"'{text}': {error}") from None
