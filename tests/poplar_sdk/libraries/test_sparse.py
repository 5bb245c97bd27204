"""popsparse against NumPy: dense matrices whose absent blocks are zeros."""

import numpy
import pytest

pytestmark = pytest.mark.without_tensorflow

TOLERANCE = {"float": 1e-5, "half": 3e-3}
BLOCK_MASK = numpy.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0], dtype=bool)


def close(received, wanted, tolerance=1e-5):
    assert received.shape == wanted.shape
    numpy.testing.assert_allclose(received.astype(float), wanted, rtol=tolerance, atol=tolerance)


def order_of(case):
    """Numbers of the blocks {4, 2}, sorted by row, then by column."""
    return numpy.lexsort((case.inputs["columns"], case.inputs["rows"]))


def dense_of(case, values):
    """The matrix {24, 16} of blocks in the sorted order."""
    dense = numpy.zeros((24, 16))
    for number, block in zip(order_of(case), values.astype(float).reshape(-1, 4, 2)):
        row, column = int(case.inputs["rows"][number]), int(case.inputs["columns"][number])
        dense[row : row + 4, column : column + 2] = block
    return dense


def gathered(case, dense):
    """The values of a dense matrix at the positions of the blocks, sorted."""
    corners = [(int(case.inputs["rows"][i]), int(case.inputs["columns"][i])) for i in order_of(case)]
    return numpy.concatenate([dense[row : row + 4, column : column + 2].ravel() for row, column in corners])


@pytest.mark.parametrize("name", TOLERANCE)
def test_fully_connected_layers(cases, name):
    case, tolerance = cases[f"fully connected {name}"], TOLERANCE[name]
    x, g = case.inputs["x"].astype(float), case.inputs["g"].astype(float)
    weights = dense_of(case, case.inputs["values"].reshape(-1, 8)[order_of(case)])
    close(case.outputs["forward"], x @ weights.T, tolerance)
    close(case.outputs["inputs"], g @ weights, tolerance)
    close(case.outputs["weights"], numpy.append(gathered(case, g.T @ x), numpy.zeros(24)), tolerance)


@pytest.mark.parametrize("name", TOLERANCE)
def test_sparse_embeddings(cases, name):
    case, tolerance = cases[f"fully connected {name}"], TOLERANCE[name]
    weights = dense_of(case, case.inputs["values"].reshape(-1, 8)[order_of(case)])
    rows = numpy.append(weights, numpy.zeros((8, 16)), axis=0)
    close(case.outputs["slice"], rows[case.inputs["indices"]], tolerance)
    numpy.add.at(rows, case.inputs["indices"], case.inputs["slices"].astype(float) / 2)
    close(case.outputs["updated"], numpy.append(gathered(case, rows), numpy.zeros(24)), tolerance)


@pytest.mark.parametrize("name", ["fully connected float", "sparse matmul"])
def test_formats_of_sparse_matrices(cases, name):
    inputs = cases[name].inputs
    order = order_of(cases[name])
    values = inputs["values"].reshape(-1, 8)
    assert inputs["coo rows"].tolist() == inputs["rows"][order].tolist()
    assert inputs["csr columns"].tolist() == inputs["coo columns"].tolist() == inputs["columns"][order].tolist()
    assert inputs["csr values"].tolist() == inputs["coo values"].tolist() == values[order].ravel().tolist()
    in_row = numpy.bincount((inputs["rows"] // 4).astype(int), minlength=6) * 8
    assert inputs["csr rows"].tolist() == [0, *numpy.cumsum(in_row)]
    by_column = numpy.argsort(inputs["columns"], kind="stable")
    assert inputs["csc rows"].tolist() == inputs["rows"][by_column].tolist()
    assert inputs["csc values"].tolist() == values[by_column].ravel().tolist()
    in_column = numpy.bincount((inputs["columns"] // 2).astype(int), minlength=8) * 8
    assert inputs["csc columns"].tolist() == [0, *numpy.cumsum(in_column)]
    stored = inputs["stored" if "stored static" not in inputs else "stored static"].tolist()
    assert inputs["from csr"].tolist() == inputs["from csc"].tolist() == stored


def test_sparse_products(cases):
    case = cases["sparse matmul"]
    weights = dense_of(case, case.inputs["values"].reshape(-1, 8)[order_of(case)])
    b, left, right = (case.inputs[key].astype(float) for key in ("b", "left", "right"))
    close(case.outputs["dynamic"], weights @ b)
    close(case.outputs["dynamic transposed"], weights.T @ left.transpose(0, 2, 1))
    close(case.outputs["static"], weights @ b)
    close(case.outputs["dense sparse"], left @ weights)
    close(case.outputs["dense sparse transposed"], right @ weights.T)


def test_errors_of_sparse_matrices(cases):
    errors = cases["fully connected float"].errors
    assert "has 5 blocks; expected at most 4" in errors["capacity"]
    assert "the meta information has the shape {18} and the type unsigned short; expected {10}" in errors["meta"]
    assert "there are 2 groups; expected 1" in errors["groups"]
    assert "a block is at {6,7}; expected a position below {6,8}" in errors["outside"]
    assert "a matrix has 5 row and 4 column indices" in errors["indices"]
    errors = cases["sparse matmul"].errors
    assert "the sparse operand does not know its sizes" in errors["bare"]
    assert "the dense operand has the shape {1,24,3}" in errors["depth"]
    assert "the parameters are those of sparse * dense" in errors["order"]


def expanded(blocks, mask):
    """The dense form of blocks {blocks, rows, columns} where a mask {block rows, block columns} has them."""
    dense = numpy.zeros((mask.shape[0], blocks.shape[1], mask.shape[1], blocks.shape[2]))
    dense[mask.nonzero()[0], :, mask.nonzero()[1]] = blocks
    return dense.reshape(mask.shape[0] * blocks.shape[1], -1)


@pytest.mark.parametrize("name", TOLERANCE)
def test_block_sparse_products(cases, name):
    case, size = cases[f"block products {name}"], {"float": 8, "half": 16}[name]
    x, a, b = (case.inputs[key].astype(float) for key in "xab")
    w = case.inputs["w"].astype(float).reshape(-1, size, size)
    groups = numpy.split(x, 2)
    rights = numpy.split(expanded(w, BLOCK_MASK.reshape(4, 3)), 2)
    close(case.outputs["sparse"], numpy.concatenate([left @ right for left, right in zip(groups, rights)]), 1e-4)
    rights = numpy.split(expanded(w, BLOCK_MASK.reshape(6, 2)), 2)
    close(case.outputs["transposed"], numpy.concatenate([left @ right.T for left, right in zip(groups, rights)]), 1e-4)
    products = [numpy.tril(left @ right) for left, right in zip(numpy.split(a, 2), numpy.split(b, 2))]
    all_blocks = numpy.concatenate(products).reshape(4, size, 3, size).transpose(0, 2, 1, 3).reshape(12, -1)
    close(case.outputs["result"], all_blocks[BLOCK_MASK], 1e-4)


def test_errors_of_block_sparse_products(cases):
    errors = cases["block products half"].errors
    assert (
        "in blocks of 8, in 1 groups; expected a multiple of the block, and blocks of multiples of 16 for half"
        in (errors["block"])
    )
    assert "the mask has 2 elements; expected 1 times 1" in errors["mask"]
    assert "the left matrix has the shape {6,256}" in errors["operand"]


def softmax_blocks(dense):
    """The blocks {4, 2} that the mask has, of a matrix {16, 6}."""
    return dense.reshape(4, 4, 3, 2).transpose(0, 2, 1, 3).reshape(12, 8)[BLOCK_MASK]


@pytest.mark.parametrize("mask", ["none", "upper", "lower"])
def test_block_sparse_softmax(cases, mask):
    case = cases[f"block softmax {mask}"]
    blocks = BLOCK_MASK.reshape(4, 3)
    row, column = numpy.indices((8, 6))
    kept = {"none": row >= 0, "upper": column <= row, "lower": column >= row}[mask]
    present = (expanded(numpy.ones((6, 4, 2)), blocks) != 0) & numpy.concatenate([kept, kept])
    x = numpy.where(present, expanded(case.inputs["x"].astype(float).reshape(-1, 4, 2), blocks), -numpy.inf)
    exponentials = numpy.where(present, numpy.exp(x), 0)
    sums = exponentials.sum(axis=1, keepdims=True)
    y = exponentials / numpy.where(sums == 0, 1, sums)
    close(case.outputs["y"], softmax_blocks(y))
    close(case.outputs["of one group"], softmax_blocks(y))
    close(case.outputs["in place"], softmax_blocks(y))
    g = expanded(case.inputs["g"].astype(float).reshape(-1, 4, 2), blocks)
    close(case.outputs["gradient"], softmax_blocks(y * (g - (y * g).sum(axis=1, keepdims=True))))
