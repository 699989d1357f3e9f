"""Make mutants of a module: one small change each, by the operators declared here.

Left alone: logging, because log messages stop no car; decorators; and the command line around a
core, because tests of the real process cover it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SHELL = ("main", "_command_line")
REMOVED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Continue)
WORDS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.And: "and",
    ast.Or: "or",
}


@dataclass(frozen=True)
class Mutant:
    """A single change. `key` is its permanent name, independent of the line number."""

    key: str
    source: str


def mutants(module: str, source: str) -> list[Mutant]:
    """Return every mutant of a module's source, in the order of the file."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    seen: dict[str, int] = {}
    for where, node in _inside(tree, module):
        for words in _changes(node):  # the mutated tree stays until the next iteration
            key = f"{where}: {words}"
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                key = f"{key} #{seen[key]}"
            found.append(Mutant(key, ast.unparse(tree)))
    return found


def _inside(tree: ast.Module, module: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of the function or class that contains it."""

    def walk(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
        decorators = getattr(node, "decorator_list", [])
        for child in list(ast.iter_child_nodes(node)):
            if child in decorators or _left_alone(child):
                continue
            inner = where
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                inner = f"{where}.{child.name}"
            yield inner, child
            yield from walk(child, inner)

    yield from walk(tree, module)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, FUNCTIONS) and node.name in SHELL:
        return True
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Expr):
        words = ast.unparse(node)
        return isinstance(node.value, ast.Constant) or words.startswith("log.")
    return False


def _changes(node: ast.AST) -> Iterator[str]:
    """Make each change of a node in place, yield its description, and undo it."""
    if isinstance(node, ast.Compare):
        yield from _comparisons(node)
    elif isinstance(node, ast.BoolOp):
        yield from _and_or(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield from _arithmetic(node)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in SWAPPED:
            before = ast.unparse(node)
            kept, node.func.id = node.func.id, SWAPPED[node.func.id]
            yield f"{before}: {node.func.id}"
            node.func.id = kept
    elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Attribute):
        before_value, node.value = node.value, ast.Constant(None)
        yield f"{ast.unparse(node.target)} = {ast.unparse(before_value)}: None"
        node.value = before_value
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        before = ast.unparse(node.test)
        kept_test, node.test = node.test, ast.UnaryOp(ast.Not(), node.test)
        yield f"negated: {before}"
        node.test = kept_test
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and not isinstance(node, ast.ClassDef):
            yield from _removals(block, isinstance(node, FUNCTIONS))


def _comparisons(node: ast.Compare) -> Iterator[str]:
    before = ast.unparse(node)
    for index, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            node.ops[index] = other()
            yield f"{before}: {WORDS[type(operator)]} -> {WORDS[other]}"
        node.ops[index] = operator


def _and_or(node: ast.BoolOp) -> Iterator[str]:
    before, kept = ast.unparse(node), node.op
    node.op = ast.Or() if isinstance(kept, ast.And) else ast.And()
    yield f"{before}: {WORDS[type(kept)]} -> {WORDS[type(node.op)]}"
    node.op = kept
    for index, value in enumerate(list(node.values)):
        del node.values[index]
        yield f"{before}: without {ast.unparse(value)}"
        node.values.insert(index, value)


def _arithmetic(node: ast.BinOp) -> Iterator[str]:
    before, kept = ast.unparse(node), node.op
    node.op = ARITHMETIC[type(kept)]()
    yield f"{before}: {WORDS[type(kept)]} -> {WORDS[type(node.op)]}"
    node.op = kept


def _constants(node: ast.Constant) -> Iterator[str]:
    kept = node.value
    if isinstance(kept, bool):
        values: tuple[object, ...] = (not kept,)
    elif isinstance(kept, int):
        step = max(1, abs(kept) // 10)
        values = (kept + step, kept - step)
    elif isinstance(kept, float):
        values = (kept * 1.1, kept * 0.9) if kept else (0.1, -0.1)
    else:
        return
    for value in values:
        node.value = value  # type: ignore[assignment]
        yield f"constant {kept!r} -> {value!r}"
    node.value = kept


def _removals(block: list[ast.stmt], function: bool) -> Iterator[str]:
    for index, statement in enumerate(list(block)):
        last = function and statement is block[-1]
        if isinstance(statement, REMOVED) and not _idle(statement, last):
            block[index] = ast.Pass()
            yield f"removed: {ast.unparse(statement)}"
            block[index] = statement


def _idle(statement: ast.stmt, last: bool) -> bool:
    """A return of None at the end of a function is idle: it is the default and stands there for
    type checkers only."""
    none = isinstance(statement, ast.Return) and (
        statement.value is None or ast.unparse(statement.value) == "None"
    )
    return _left_alone(statement) or (none and last)
