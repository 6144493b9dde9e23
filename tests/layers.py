"""Which imports of a source tree break its layers: read from the text, nothing is run.

Imports inside functions and under TYPE_CHECKING count like all others: who reads a module must
know what they name.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One imported name: where, from which module, and the module that it comes from."""

    file: str  # relative to the root, with slashes
    line: int
    module: str  # that imports, such as "nefele.solvers.base"
    target: str  # module that is imported, such as "nefele.problem"
    name: str = ""  # what is taken from it, unless the module itself is


@dataclass(frozen=True, order=True)
class Violation:
    """An import that a rule forbids."""

    file: str
    line: int
    rule: str  # "layer", "private", "cycle" or "relative"
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.what}"


@dataclass(frozen=True)
class Rules:
    """The layers from the lowest up, who may see whom within one, and what a part never sees."""

    layers: tuple[tuple[str, ...], ...]
    neighbours: dict[str, set[str]]
    hidden: dict[str, set[str]]  # lower parts that a part must not import
    excepted: frozenset[str]  # files that may import them all the same

    def allowed(self, file: str) -> set[str]:
        """The parts that a file may import beside its own."""
        part = part_of_file(file)
        own = next((k for k, names in enumerate(self.layers) if part in names), None)
        if own is None:
            return set()
        lower = {name for names in self.layers[:own] for name in names}
        if file not in self.excepted:
            lower -= self.hidden.get(part, set())
        return lower | self.neighbours.get(part, set())


class Tree:
    """All modules below the folder of a package, and what they import of it."""

    def __init__(self, root: Path) -> None:
        self.package = root.name
        paths = sorted(root.rglob("*.py"))
        self.files = {path.relative_to(root).as_posix(): path for path in paths}
        self.modules = {self._module(file) for file in self.files}
        self.homes = self._homes() if "__init__.py" in self.files else {}
        self.relative: list[Violation] = []
        self.imports = [
            found for file in self.files if file != "__init__.py" for found in self._imports(file)
        ]

    def _module(self, file: str) -> str:
        parts = [self.package, *file.removesuffix(".py").split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _parsed(self, file: str) -> Iterator[ast.AST]:
        return ast.walk(ast.parse(self.files[file].read_text(encoding="utf-8")))

    def _homes(self) -> dict[str, str]:
        """The modules of the names that the package itself re-exports."""
        return {
            alias.name: node.module
            for node in self._parsed("__init__.py")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(self.package)
            for alias in node.names
        }

    def _imports(self, file: str) -> Iterator[Import]:
        module = self._module(file)
        for node in self._parsed(file):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if f"{alias.name}.".startswith(f"{self.package}."):
                        yield Import(file, node.lineno, module, alias.name)
            elif isinstance(node, ast.ImportFrom) and node.level:
                what = f"imports are absolute, not {'.' * node.level}{node.module or ''}"
                self.relative.append(Violation(file, node.lineno, "relative", what))
            elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(
                f"{self.package}."
            ):
                for alias in node.names:
                    yield Import(file, node.lineno, module, *self._found(node.module, alias.name))

    def _found(self, module: str, name: str) -> tuple[str, str]:
        """The module that `from module import name` reaches, and the name taken from it."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}", ""
        return (self.homes.get(name, module) if module == self.package else module), name

    def violations(self, rules: Rules) -> list[Violation]:
        """All imports that break a rule, sorted by file and line."""
        found = [*self.relative, *self._against_layers(rules), *self._private(), *self._cycles()]
        return sorted(set(found))

    def _against_layers(self, rules: Rules) -> Iterator[Violation]:
        placed = {name for names in rules.layers for name in names}
        for file in self.files:
            if part_of_file(file) not in {*placed, "__init__", "__main__"}:
                yield Violation(file, 1, "layer", f"{part_of_file(file)} has no layer")
        for found in self.imports:
            own, part = part_of_file(found.file), part_of_module(found.target)
            if own in placed and part != own and part not in rules.allowed(found.file):
                yield Violation(found.file, found.line, "layer", f"{own} imports {part}")

    def _private(self) -> Iterator[Violation]:
        """Modules and names with an underscore belong to the package that holds them."""
        for found in self.imports:
            whole = [*found.target.split("."), *([found.name] if found.name else [])]
            for k, word in enumerate(whole):
                if not word.startswith("_"):
                    continue
                # A private name is shared by the modules of its package, not only by its own.
                owner = ".".join(whole[:k])
                if k == len(whole) - 1 and found.name and not self._is_package(owner):
                    owner = owner.rpartition(".")[0]
                if not f"{found.module}.".startswith(f"{owner}."):
                    what = f"{'.'.join(whole[: k + 1])} is private to {owner}"
                    yield Violation(found.file, found.line, "private", what)

    def _is_package(self, module: str) -> bool:
        return "/".join([*module.split(".")[1:], "__init__.py"]) in self.files

    def _cycles(self) -> Iterator[Violation]:
        """One violation for every import from which a way leads back to the module itself."""
        graph: dict[str, set[str]] = {}
        for found in self.imports:
            graph.setdefault(found.module, set()).add(found.target)
        for found in self.imports:
            way = shortest_way(graph, found.target, found.module)
            if way:
                yield Violation(found.file, found.line, "cycle", " -> ".join([found.module, *way]))


def shortest_way(graph: dict[str, set[str]], start: str, end: str) -> list[str]:
    """Modules from start to end, each imported by the one before; empty if there is no way."""
    before, waiting = {start: ""}, [start]
    for module in waiting:
        if module == end:
            way = [module]
            while before[way[0]]:
                way.insert(0, before[way[0]])
            return way
        for other in sorted(graph.get(module, set()) - before.keys()):
            before[other] = module
            waiting.append(other)
    return []


def part_of_file(file: str) -> str:
    """Top-level module or package that a file belongs to."""
    return file.split("/")[0].removesuffix(".py")


def part_of_module(module: str) -> str:
    """The same of a module; the package as a whole is "__init__"."""
    return ([*module.split("."), "__init__"])[1]
