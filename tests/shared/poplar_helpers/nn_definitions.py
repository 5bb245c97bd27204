"""Functions of networks by their definitions, in NumPy."""

import numpy


def transformed(values, truncation, dilation, padding, flip):
    """An input or kernel after its transform, along the field's dimensions."""
    first = values.ndim - len(dilation)
    for dim in range(len(dilation)):
        axis = first + dim
        values = numpy.moveaxis(values, axis, -1)
        values = values[..., truncation[0][dim] : values.shape[-1] - truncation[1][dim]]
        wide = numpy.zeros((*values.shape[:-1], (values.shape[-1] - 1) * dilation[dim] + 1))
        wide[..., :: dilation[dim]] = values
        wide = numpy.pad(wide, [(0, 0)] * (wide.ndim - 1) + [(padding[0][dim], padding[1][dim])])
        values = numpy.moveaxis(wide[..., ::-1] if flip[dim] else wide, -1, axis)
    return values


def convolved(x, w, transform):
    """The convolution's definition, for its transforms."""
    x, w = transformed(x, *transform["input"]), transformed(w, *transform["kernel"])
    groups, outs, ins = w.shape[:3]
    field = [i - k + 1 for i, k in zip(x.shape[2:], w.shape[3:])]
    y = numpy.zeros((x.shape[0], groups * outs, *field))
    for place in numpy.ndindex(*field):
        window = x[(slice(None), slice(None), *(slice(p, p + k) for p, k in zip(place, w.shape[3:])))]
        window = window.reshape(x.shape[0], groups, 1, ins, -1)
        y[(slice(None), slice(None), *place)] = (
            (window * w.reshape(1, groups, outs, ins, -1)).sum((3, 4)).reshape(x.shape[0], -1)
        )
    for dim, (low, high, stride, before, after) in enumerate(transform["output"]):
        y = numpy.moveaxis(y, 2 + dim, -1)
        y = y[..., low : y.shape[-1] - high : stride]
        y = numpy.moveaxis(numpy.pad(y, [(0, 0)] * (y.ndim - 1) + [(before, after)]), -1, 2 + dim)
    return y


def plain(dims):
    one = ([[0] * dims] * 2, [1] * dims, [[0] * dims] * 2, [False] * dims)
    return {"input": one, "kernel": one, "output": [(0, 0, 1, 0, 0)] * dims}


def gradient(function, at, along):
    """The gradient of sum(function(at) * along) for a linear function."""
    result = numpy.zeros(at.shape)
    for place in numpy.ndindex(*at.shape):
        unit = numpy.zeros(at.shape)
        unit[place] = 1
        result[place] = (function(unit) * along).sum()
    return result


def softmax(x):
    exponents = numpy.exp(x - x.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))
