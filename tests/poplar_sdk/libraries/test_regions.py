"""Regions of interest, and B-splines for graph networks, against NumPy."""

import itertools
import math

import numpy
import pytest

pytestmark = pytest.mark.without_tensorflow


def check(received, wanted, tolerance):
    numpy.testing.assert_allclose(received.astype(float), wanted, rtol=tolerance, atol=tolerance)


def weights_of(at, pixels):
    """The part of each pixel in a value between pixels; no part outside."""
    found = numpy.zeros(pixels)
    if -1 <= at <= pixels:
        at = min(max(at, 0), pixels - 1)
        found[math.floor(at)] += 1 - at % 1
        found[math.ceil(at)] += at % 1
    return found


def bins_of(begin, end, bins, pixels, ratio, aligned):
    """The parts of the pixels in each bin of one direction: {bins, pixels}."""
    length = end - begin if aligned else max(end - begin, 1)
    count = ratio or max(1, math.ceil(length / bins))
    at = begin + length / bins * (numpy.arange(bins)[:, None] + (numpy.arange(count) + 0.5) / count)
    return numpy.array([[weights_of(each, pixels) for each in row] for row in at]).mean(1)


REGIONS = {
    "regions": (2, False, 1e-5),
    "regions in halves": (2, False, 4e-3),
    "aligned regions": (3, True, 1e-5),
    "regions by size": (0, True, 1e-5),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions_and_their_gradient(cases, name):
    ratio, aligned, tolerance = REGIONS[name]
    case = cases[name]
    data, gradients = case.inputs["data"].astype(float), case.inputs["gradients"].astype(float)
    slopes = numpy.zeros_like(data)
    for region, corners in enumerate(case.inputs["regions"] / 2 - 0.5 * aligned):
        image = case.inputs["images"][region]
        down = bins_of(corners[1], corners[3], 3, data.shape[2], ratio, aligned)
        across = bins_of(corners[0], corners[2], 2, data.shape[3], ratio, aligned)
        check(case.outputs["pooled"][region], down @ data[image] @ across.T, tolerance)
        slopes[image] += down.T @ gradients[region] @ across
    check(case.outputs["slopes"], slopes, tolerance)


def test_wrong_regions_are_refused(cases):
    errors = cases["regions"].errors
    assert "bottomData is float of the shape {378}" in errors["flat data"]
    assert "bottomBatchIndex is float of the shape {2,3,7,9}" in errors["other images"]


def cardinal(degree, x):
    """The B-spline of a degree with the knots 0, 1, 2, ..., by its recursion."""
    if degree == 0:
        return 1.0 * (0 <= x < 1)
    return (x * cardinal(degree - 1, x) + (degree + 1 - x) * cardinal(degree - 1, x - 1)) / degree


SPLINES = {"splines 1": (1, 1e-5), "splines 2": (2, 1e-5), "splines 3": (3, 1e-5), "splines in halves": (2, 4e-3)}


@pytest.mark.parametrize("name", SPLINES)
def test_splines_and_their_features(cases, name):
    degree, tolerance = SPLINES[name]
    case = cases[name]
    scaled = case.inputs["pseudo"].astype(numpy.float32) * numpy.float32([5 - degree, 6])
    first, at = numpy.floor(scaled).astype(int), scaled % 1
    pairs = list(itertools.product(range(degree + 1), repeat=2))  # of the second and the first dimension
    basis = [
        [math.prod(cardinal(degree, x + degree - k) for x, k in zip(edge, pair[::-1])) for pair in pairs] for edge in at
    ]
    places = [[(edge[0] + j) % 5 + 5 * ((edge[1] + i) % 6) for i, j in pairs] for edge in first]
    check(case.outputs["basis"], basis, tolerance)
    check(case.outputs["basis"].sum(1, dtype=float), 1, tolerance)
    numpy.testing.assert_array_equal(case.outputs["places"], places)
    weight = case.inputs["weight"].astype(float)[numpy.array(places)]
    wanted = numpy.einsum("es,ei,esio->eo", basis, case.inputs["x"].astype(float), weight)
    check(case.outputs["features"], wanted, 3 * tolerance)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("degree", "the degree is 4; expected 1, 2 or 3"),
        ("sizes", "kernelSize is"),
        ("weight", "weight has the shape {7,3}"),
    ],
)
def test_wrong_splines_are_refused(cases, name, message):
    assert message in cases["splines 2"].errors[name]
