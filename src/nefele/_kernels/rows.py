"""Rows of d numbers as single values in compiled code, held in vector registers.

Numba unrolls loops of known length but does not vectorise them: with rows an iteration on a grid
of 1000 x 1000 nodes, d = 5, takes 41 ms instead of 51, and its formulas read as in the paper.
A row is a struct of vectors of 8, 4, 2 or 1 numbers; other lengths are taken apart number by
number at every branch (d = 10: 102 ns instead of 39 for the edges of a node).

The length of a row is part of its type. It comes from a tuple `dims` of that length.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.extending import lower_builtin, models, register_model, type_callable

intrinsic: Any = extending.intrinsic
_NUMBER, _INDEX = ir.DoubleType(), ir.IntType(32)
_MOST_ROWS = 16


def as_dims(d: int, weights: int = 1) -> tuple[int, ...] | None:
    """The tuple that tells the loops d, where compiled rows can do the work."""
    return (0,) * d if d <= _MOST_ROWS and weights == 1 else None


class Row(types.Type):
    """A row of d numbers."""

    def __init__(self, d: int) -> None:
        self.d = d
        super().__init__(name=f"Row({d})")


@register_model(Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, row: Row) -> None:
        super().__init__(manager, row, _struct(row.d))


def _lengths(d: int) -> list[int]:
    """D as a sum of powers of two, at most 8 each."""
    return [8] * (d // 8) + [k for k in (4, 2, 1) if d & k]


def _struct(d: int) -> ir.Type:
    return ir.LiteralStructType([ir.VectorType(_NUMBER, k) for k in _lengths(d)])


def _parts(builder: Any, row: Any) -> list[Any]:
    return [builder.extract_value(row, k) for k in range(len(row.type.elements))]


def _join(builder: Any, parts: list[Any]) -> Any:
    row = ir.Constant(ir.LiteralStructType([part.type for part in parts]), ir.Undefined)
    for k, part in enumerate(parts):
        row = builder.insert_value(row, part, k)
    return row


def _each(builder: Any, code: Callable[..., Any], *rows: Any) -> Any:
    """The row whose parts are code(parts of the given rows)."""
    parts = zip(*(_parts(builder, row) for row in rows), strict=True)
    return _join(builder, [code(*part) for part in parts])


def _pick(builder: Any, x: Any, which: list[int]) -> Any:
    """The vector of the entries x[k], k in `which`."""
    at = ir.Constant(ir.VectorType(_INDEX, len(which)), which)
    return builder.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), at)


def _spread(builder: Any, number: Any, like: Any) -> Any:
    """The vector of the length of `like` whose entries all equal a number."""
    empty = ir.Constant(ir.VectorType(_NUMBER, 1), ir.Undefined)
    one = builder.insert_element(empty, number, ir.Constant(_INDEX, 0))
    return _pick(builder, one, [0] * like.type.count)


def _addresses(context: Any, builder: Any, kind: Any, x: Any, i: Any, parts: list[int]) -> list:
    """Where the parts of row i begin in the contiguous array x."""
    data = context.make_array(kind)(context, builder, x).data
    start = builder.mul(i, ir.Constant(i.type, sum(parts)))
    found = []
    for k, length in enumerate(parts):
        place = builder.gep(data, [builder.add(start, ir.Constant(i.type, sum(parts[:k])))])
        found.append(builder.bitcast(place, ir.VectorType(_NUMBER, length).as_pointer()))
    return found


def _add_up(builder: Any, total: Any, x: Any) -> Any:
    """The number `total` plus the entries of a vector."""
    name = f"llvm.vector.reduce.fadd.v{x.type.count}f64"
    kind = ir.FunctionType(_NUMBER, [_NUMBER, x.type])
    reduce = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(reduce, [total, x], fastmath=["reassoc"])


for _operation, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub")):

    @type_callable(_operation)
    def _type_sum(context):  # type: ignore[no-untyped-def]
        return lambda x, y: x if isinstance(x, Row) and x == y else None

    @lower_builtin(_operation, Row, Row)
    def _sum(context, builder, sig, args, name=_instruction):  # type: ignore[no-untyped-def]
        return _each(builder, getattr(builder, name), *args)


@type_callable(operator.mul)
def _type_product(context):  # type: ignore[no-untyped-def]
    return lambda a, x: x if isinstance(x, Row) and a == types.float64 else None


@lower_builtin(operator.mul, types.Float, Row)
def _product(context, builder, sig, args):  # type: ignore[no-untyped-def]
    number, row = args
    return _each(builder, lambda x: builder.fmul(_spread(builder, number, x), x), row)


@intrinsic
def load(typing, x, i, dims):  # type: ignore[no-untyped-def]
    """Row i of the contiguous array x of shape (n, d)."""
    d = len(dims)
    if x.layout != "C":
        return None

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        places = _addresses(context, builder, x, args[0], args[1], _lengths(d))
        return _join(builder, [builder.load(place, align=8) for place in places])

    return Row(d)(x, types.uint64, dims), code


@intrinsic
def store(typing, x, i, row):  # type: ignore[no-untyped-def]
    """Write row i of the contiguous array x of shape (n, d)."""
    if x.layout != "C":
        return None

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        places = _addresses(context, builder, x, args[0], args[1], _lengths(row.d))
        for part, place in zip(_parts(builder, args[2]), places, strict=True):
            builder.store(part, place, align=8)

    return types.void(x, types.uint64, row), code


@intrinsic
def zeros(typing, dims):  # type: ignore[no-untyped-def]
    """The zero row."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return ir.Constant(_struct(len(dims)), None)

    return Row(len(dims))(dims), code


@intrinsic
def square(typing, row):  # type: ignore[no-untyped-def]
    """Sum of the squares of the entries."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        total = ir.Constant(_NUMBER, 0.0)
        for x in _parts(builder, args[0]):
            total = _add_up(builder, total, builder.fmul(x, x))
        return total

    return types.float64(row), code


def _magnitude(builder: Any, x: Any) -> Any:
    """The absolute values of a vector's entries."""
    name = f"llvm.fabs.v{x.type.count}f64"
    kind = ir.FunctionType(x.type, [x.type])
    fabs = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(fabs, [x])


@intrinsic
def absolute(typing, row):  # type: ignore[no-untyped-def]
    """Sum of the absolute values of the entries."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        total = ir.Constant(_NUMBER, 0.0)
        for x in _parts(builder, args[0]):
            total = _add_up(builder, total, _magnitude(builder, x))
        return total

    return types.float64(row), code


@intrinsic
def farther(typing, row, most):  # type: ignore[no-untyped-def]
    """The absolute values of a row's entries where they are larger than those of `most`."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        def larger(x: Any, y: Any) -> Any:
            x = _magnitude(builder, x)
            return builder.select(builder.fcmp_ordered(">", x, y), x, y)

        return _each(builder, larger, *args)

    return row(row, most), code


@intrinsic
def clip(typing, row, bound):  # type: ignore[no-untyped-def]
    """Entries limited to [-bound, bound]."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        def limit(x: Any) -> Any:
            most = _spread(builder, args[1], x)
            least = _spread(builder, builder.fneg(args[1]), x)
            x = builder.select(builder.fcmp_ordered(">", x, most), most, x)
            return builder.select(builder.fcmp_ordered("<", x, least), least, x)

        return _each(builder, limit, args[0])

    return row(row, types.float64), code


@intrinsic
def symmetric(typing, A, i, row):  # type: ignore[no-untyped-def]
    """A_i times a row; A of shape (n, d (d + 1) / 2) holds upper triangles, row by row."""
    d = row.d
    lengths = _lengths(d)
    firsts = [sum(lengths[:k]) for k in range(len(lengths))]

    def entry(r: int, s: int) -> int:
        r, s = min(r, s), max(r, s)
        return r * (2 * d - 1 - r) // 2 + s

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        (place,) = _addresses(context, builder, A, args[0], args[1], [d * (d + 1) // 2])
        packed = builder.load(place, align=8)
        parts = _parts(builder, args[2])
        out = [ir.Constant(part.type, None) for part in parts]
        for first, part in zip(firsts, parts, strict=True):
            for at in range(part.type.count):  # column r of A_i times entry r of the row
                r = first + at
                for k, length in enumerate(lengths):
                    column = [entry(r, s) for s in range(firsts[k], firsts[k] + length)]
                    factor = _pick(builder, part, [at] * length)
                    term = builder.fmul(_pick(builder, packed, column), factor)
                    out[k] = builder.fadd(out[k], term)
        return _join(builder, out)

    return row(A, types.uint64, row), code


@intrinsic
def dot(typing, x, y):  # type: ignore[no-untyped-def]
    """Inner product of two rows."""

    def code(context, builder, sig, args):  # type: ignore[no-untyped-def]
        total = ir.Constant(_NUMBER, 0.0)
        for a, b in zip(*(_parts(builder, row) for row in args), strict=True):
            total = _add_up(builder, total, builder.fmul(a, b))
        return total

    return types.float64(x, y), code
