"""`saved_model_cli` as TensorFlow 1.15 to 2.6 have it, which tools add options to: against what a model computes."""

import numpy as np
import pytest
import saved_models
from tensorflow.python.tools import saved_model_cli

from tf_ipu_shim import ipu


@pytest.fixture
def model(tmp_path):
    return saved_models.two_layers(tmp_path / "stock")


@pytest.fixture
def parser():
    """TensorFlow's parser with `run --init_ipu --precision_mode`, as Graphcore's converter adds them."""
    assert ipu
    made = saved_model_cli.create_parser()
    commands = next(action for action in made._actions if action.dest == "==SUPPRESS==" and action.choices)
    commands.choices["run"].add_argument("--init_ipu", action="store_true")
    commands.choices["run"].add_argument("--precision_mode", default="FP16")
    return made


def test_runs_what_was_parsed(parser, model, tmp_path):
    command = ["run", "--dir", model, "--tag_set", "serve", "--signature_def", "serving_default"]
    inputs = ["--input_exprs", "x=[[1.0, 2.0, 3.0, 4.0]]", "--outdir", str(tmp_path / "results")]
    args = parser.parse_args([*command, *inputs, "--init_ipu"])
    assert (args.dir, args.tag_set, args.init_ipu, args.precision_mode) == (model, "serve", True, "FP16")
    saved_model_cli.run(args)
    expected = saved_models.run(model, {"x": np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)})
    np.testing.assert_allclose(np.load(tmp_path / "results" / "y.npy"), expected["y"], rtol=1e-6)


def test_command_lines_are_apart(parser, capsys, model):
    first = parser.parse_args(["run", "--dir", "one", "--tag_set", "serve", "--overwrite"])
    second = parser.parse_args(["show", "--dir", model])
    assert (first.dir, first.overwrite) == ("one", True)
    assert (second.dir, second.overwrite, second.tag_set) == (model, False, None)
    saved_model_cli.show(second)
    assert "'serve'" in capsys.readouterr().out
    with pytest.raises(AttributeError, match="At least one of --inputs"):
        saved_model_cli.run(first)
