"""Reductions, sorts, slices, gathers, scatters and loops of popops, and poputil, against NumPy."""

import numpy
import pytest

pytestmark = pytest.mark.without_tensorflow

REDUCTIONS = {
    "ADD": numpy.sum,
    "MUL": numpy.prod,
    "MIN": numpy.min,
    "MAX": numpy.max,
    "SQUARE_ADD": lambda a, axis: numpy.sum(a * a, axis),
    "LOG_ADD": lambda a, axis: numpy.log(numpy.sum(numpy.exp(a), axis)),
    "LOGICAL_AND": numpy.all,
    "LOGICAL_OR": numpy.any,
}


def check(received, wanted, steps=8):
    wanted = numpy.asarray(wanted)
    assert received.shape == wanted.shape
    if received.dtype.kind == "f":
        step = steps * numpy.finfo(received.dtype).eps
        numpy.testing.assert_allclose(received.astype(float), wanted.astype(float), rtol=step, atol=step)
    else:
        numpy.testing.assert_array_equal(received, wanted)


@pytest.mark.parametrize("name", ["float", "half", "int", "bool"])
def test_reductions(cases, name):
    case = cases[f"reduce {name}"]
    a = case.inputs["a"]
    wide = a.astype(float) if a.dtype.kind == "f" else a
    assert len(case.outputs) >= 8
    for label, received in case.outputs.items():
        operation, dims = label.split()
        wanted = REDUCTIONS[operation](wide, axis=tuple(map(int, dims.split(","))))
        assert received.dtype == a.dtype
        check(received, numpy.asarray(wanted).astype(a.dtype))


def test_reduce_options(cases):
    case = cases["reduce options"]
    a, h, old = case.inputs["a"], case.inputs["h"], case.inputs["old"]
    check(case.outputs["sum"], old + a.sum(0) * case.inputs["scale"])
    assert case.outputs["wide"].dtype == numpy.float32
    check(case.outputs["wide"], h.astype(float).sum(0))
    check(case.outputs["unit axis"], a.sum(0)[None])
    check(case.outputs["transposed"], a.max(1))
    check(case.outputs["many 0"], a.sum(1))
    check(case.outputs["many 1"], h.max(1).astype(numpy.float32))
    assert "no reduction ADD from float to int" in case.errors["types"]
    assert "dimension 2" in case.errors["dims"]
    assert "the output has the shape {9,2}; expected {9}" in case.errors["shape"]


@pytest.mark.parametrize("name", ["float", "half", "int"])
def test_sorts(cases, name):
    case = cases[f"sort {name}"]
    a, v = case.inputs["a"], case.inputs["v"]
    by_key = numpy.argsort(a, 1, kind="stable")
    check(case.outputs["sorted 0"], numpy.sort(a, 0))
    check(case.outputs["sorted 1"], numpy.sort(a, 1))
    check(case.outputs["in place"], numpy.sort(a, 1))
    check(case.outputs["values"], numpy.take_along_axis(v, by_key, 1))
    check(case.outputs["moved"], numpy.take_along_axis(v, by_key, 1))
    largest_first = numpy.argsort(-a.astype(float), 1, kind="stable")
    check(case.outputs["keys"], numpy.take_along_axis(a, largest_first[:, :3], 1))
    check(case.outputs["with keys"], numpy.take_along_axis(v, largest_first[:, :3], 1))
    assert "k is 34" in case.errors["k"]


@pytest.mark.parametrize("kind", ["smallest", "largest"])
@pytest.mark.parametrize("name", ["float", "half", "int"])
def test_top_k(cases, name, kind):
    case = cases[f"sort {name}"]
    a = case.inputs["a"]
    signed = -a.astype(float) if kind == "largest" else a.astype(float)
    taken = numpy.argsort(signed, 1, kind="stable")[:, :5]
    orders = {"NONE": numpy.sort(taken, 1)}
    for order, sign in (("ASCENDING", 1), ("DESCENDING", -1)):
        places = numpy.sort(taken, 1)
        values = sign * numpy.take_along_axis(a, places, 1).astype(float)
        orders[order] = numpy.take_along_axis(places, numpy.argsort(values, 1, kind="stable"), 1)
    for order, places in orders.items():
        check(case.outputs[f"{order} {kind} at"], places)
        check(case.outputs[f"{order} {kind}"], numpy.take_along_axis(a, places, 1))


def test_loops(cases):
    outputs = cases["loops"].outputs
    check(outputs["sum of i"], [sum(range(3, 20, 4))])
    check(outputs["nested sum"], [sum(i * k for i in range(5) for k in range(3))])
    check(outputs["number of runs"], len(range(-2, 4, 2)))


def test_rows(cases):
    case = cases["rows"]
    m, h, at = case.inputs["m"], case.inputs["h"], case.inputs["at"]
    for name, matrix in (("selected", m), ("half", h)):
        check(case.outputs[name], [matrix[0, 2], matrix[1, 0], 0, numpy.nan, matrix[4, 5]])
    updated, hot = m.copy(), numpy.zeros((5, 6))
    updated[[0, 1, 4], [2, 0, 5]] -= 1
    updated[3] = numpy.nan
    hot[[0, 1, 4], at[[0, 1, 4]]] = 1
    check(case.outputs["updated"], updated)
    check(case.outputs["one hot"], hot)
    check(case.outputs["iota"], numpy.arange(5, 305))
    check(case.outputs["signed iota"], numpy.arange(-3, 4))
    found = {"all of yes": 1, "all of no": 0, "nan in m": 0, "nan in nan": 1, "nan in inf": 0, "inf in inf": 1}
    for name, wanted in found.items():
        assert case.outputs[name] == bool(wanted), name
    image = case.inputs["image"] / 255 - case.inputs["offsets"].astype(float)
    wanted = numpy.zeros((4, 5, 4))
    wanted[..., :3] = image * case.inputs["scales"].astype(float)
    assert case.outputs["normalised"].dtype == numpy.float16
    check(case.outputs["normalised"], wanted)


def test_dynamic_slices(cases):
    case = cases["dynamic slice"]
    t, i = case.inputs["t"], case.inputs["i"]
    check(case.outputs["slice"], t[3:5, :, 1:4])
    check(case.outputs["wrapped"], t[[5, 0, 1]])
    check(case.outputs["bytes"], i.T[:, 5:7])
    updated = t.copy()
    updated[3:5, :, 1:4] = case.inputs["s"]
    check(case.outputs["updated"], updated)
    check(case.outputs["buffered"], numpy.concatenate([t[3].ravel()[:2], t[1].ravel()[:2]]))
    assert "sizes" in case.errors and "2 elements; expected" not in case.errors["sizes"]
    assert "expected 1 elements" in case.errors["sizes"]


@pytest.mark.parametrize("name", ["float", "half", "int"])
def test_multi_slices(cases, name):
    case = cases[f"multi slice {name}"]
    t, s = case.inputs["t"], case.inputs["s"][:, 0]
    slices = numpy.stack([t[3], t[8], t[3], 0 * t[0]])[:, None]
    check(case.outputs["slices"], slices)
    slices[3, 0] = t[0]
    check(case.outputs["remapped"], slices)
    check(case.outputs["columns"], t.T[[1, 0]][:, :, None])
    replaced, most = t.copy(), t.copy()
    added = t.astype(float)
    for row, values in zip((3, 8, 3), s):
        replaced[row] = values
        most[row] = numpy.maximum(most[row], values)
        added[row] += 2 * values.astype(float)
    check(case.outputs["set"], replaced)
    check(case.outputs["added"], added.astype(t.dtype))
    check(case.outputs["most"], most)


@pytest.mark.parametrize("name", ["float", "half", "int"])
def test_grouped_multi_slices(cases, name):
    case = cases[f"multi slice {name}"]
    groups, where, updates = case.inputs["groups"], case.inputs["where"][..., 0], case.inputs["updates"]
    check(case.outputs["grouped"], numpy.stack([groups[g][where[g]] for g in range(2)])[:, :, None])
    sums = groups.astype(float)
    for group in range(2):
        numpy.add.at(sums[group], where[group], 2 * updates[group, :, 0].astype(float))
    check(case.outputs["grouped sums"], sums.astype(groups.dtype))


def test_gathers_and_scatters(cases):
    case = cases["gather and scatter"]
    t, at, updates = case.inputs["t"], case.inputs["at"], case.inputs["updates"]
    check(case.outputs["axis 0"], t[at])
    # Index 4 and 3 lie outside of the last dimension.
    wide = numpy.concatenate([t, numpy.zeros((5, 4, 2), t.dtype)], 2)
    check(case.outputs["axis 2"], wide[:, :, at[:1]])
    check(case.outputs["points of t"], t[[0, 4, 2, 4], [1, 3, 2, 1]])
    starts = [(0, 1), (3, 3), (2, 2), (3, 1)]
    check(case.outputs["windows"], numpy.stack([t[r : r + 2, c] for r, c in starts], 1))
    replaced, summed = t.copy(), t.copy()
    for (row, column), update in zip(((0, 1), (4, 3), (2, 2)), updates):
        replaced[row, column] = update
        summed[row, column] += update
    check(case.outputs["set"], replaced)
    check(case.outputs["sum"], summed)
    rows = numpy.zeros_like(t)
    rows[3:5], rows[0] = t[1:3], t[4]
    check(case.outputs["rows"], rows)


def test_pads(cases):
    case = cases["pad"]
    t, v = case.inputs["t"], case.inputs["v"]
    check(case.outputs["constant"], numpy.pad(t, ((1, 2), (0, 3)), constant_values=1.5))
    check(case.outputs["cut"], numpy.pad(t[1:, :2], ((0, 0), (2, 0))))
    check(case.outputs["tensor"], numpy.pad(t, ((1, 1), (0, 0)), constant_values=v))
    check(case.outputs["edge"], numpy.pad(t, ((1, 2), (2, 0)), mode="edge"))
    check(case.outputs["reflect"], numpy.pad(t, ((2, 1), (1, 3)), mode="reflect"))


def test_poputil_views_and_functions(cases):
    case = cases["poputil"]
    t = case.inputs["t"]
    check(case.outputs["twice"], t + 2)
    check(case.outputs["factored"], t.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3))
    check(case.outputs["unfactored"], t)
    check(case.outputs["parts"], t)
    check(case.outputs["groupings"], [6, 1, 2])
    check(case.outputs["function 1"], t * (t + 1))
    check(case.outputs["function 2"], t * (t + 2))
    check(case.outputs["broadcast shape"], [5, 6])
    arguments = "popops::Operation::LOG_ADD,popnn::NonLinearityType::GELU_ERF"
    assert case.errors["vertex"] == f"ns::V<float,true,3,int,x>W<{arguments}>"
    assert "does not broadcast to {5,7}" in case.errors["broadcast"]


def test_poputil_mappings(cases):
    outputs = cases["poputil"].outputs
    tiles = outputs["tiles"]
    assert tiles.sum() == 1000
    assert all(size % 10 == 0 for size in tiles)
    assert tiles.max() - tiles.min() <= 10
    # The balanced mapping of 1000 elements on 16 tiles has 63 on the fullest; 24 elements on one tile are 22 too many.
    check(outputs["imbalance"], [tiles.max() - 63, 22])
    workers = outputs["workers"].reshape(-1, 2)
    covered = numpy.concatenate([numpy.arange(begin, end) for begin, end in workers])
    check(covered, [*range(3, 10), *range(20, 33)])
