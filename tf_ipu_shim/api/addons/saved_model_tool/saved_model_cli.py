"""`ipu_tensorflow_addons.saved_model_tool.saved_model_cli`: TensorFlow's `saved_model_cli` with IPU conversion.

`run` and `convert ipu` are here; `show` and `scan` are TensorFlow's own. Checked on 2.15.1.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool import ipu_convert
from tf_ipu_shim.frontend.conversion import system_options
from tf_ipu_shim.tf_private.saved_model_cli import saved_model_cli as stock

_NAME = "ipu_saved_model_cli"
_STOCK_COMMANDS = ("show", "scan")
_PARAMETERS = (
    "batch_size",
    "batch_per_step",
    "conv_amp",
    "conv_partial_type",
    "embedded_runtime_save_config",
    "excluded_nodes",
    "gelu_replacement",
    "int64_to_int32_conversion",
    "manual_sharding",
    "matmul_amp",
    "matmul_partial_type",
    "merge_subgraphs",
    "num_ipus",
    "pipeline_cfg",
    "precision_conversion_excluded_nodes",
    "precision_mode",
    "remove_excluded_nodes",
)


def main() -> None:
    """Runs the command line `sys.argv`.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.main`.
    """
    if len(sys.argv) > 1 and sys.argv[1] in _STOCK_COMMANDS:
        stock.main()
        return
    args = create_parser().parse_args()
    args.func(args)


def create_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line; parsed arguments have the command's function as `func`.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.create_parser`.

    Example:
        >>> arguments = ["convert", "--dir", "model", "--output_dir", "made", "--tag_set", "serve", "ipu"]
        >>> create_parser().parse_args([*arguments, "--excluded_nodes", "^embedding"]).excluded_nodes
        ['^embedding']
    """
    parser = argparse.ArgumentParser(prog=_NAME, description="Converts SavedModels for IPUs, and runs them.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="run | convert | show | scan")
    change_description_cmd_name(_add_run(commands), "run")
    change_description_cmd_name(_add_convert(commands), "convert")
    return parser


def run(args: argparse.Namespace) -> None:
    """Runs a signature of a SavedModel and prints its outputs.

    Args:
        args: the parsed arguments of `run`.

    Raises:
        AttributeError: there is no input.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.run`.
    """
    if not (args.inputs or args.input_exprs or args.input_examples):
        raise AttributeError(
            "At least one of --inputs, --input_exprs or --input_examples must be required: none was given. Pass one."
        )
    if args.init_ipu:
        system_options.configure(args)
    feeds = stock.load_inputs_from_input_arg_string(args.inputs, args.input_exprs, args.input_examples)
    stock.run_saved_model_with_feed_dict(
        args.dir,
        args.tag_set,
        args.signature_def,
        feeds,
        args.outdir,
        args.overwrite,
        worker=args.worker,
        tf_debug=args.tf_debug,
    )


def convert_with_ipu(args: argparse.Namespace) -> None:
    """Converts a SavedModel.

    Args:
        args: the parsed arguments of `convert ipu`.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.convert_with_ipu`.
    """
    params = ipu_convert.IpuConversionParams(
        ipu_placement=not args.no_ipu_placement, **{name: getattr(args, name) for name in _PARAMETERS}
    )
    if args.config_file:
        params.load_from_json_file(args.config_file)
    converter = ipu_convert.IpuGraphConverter(
        input_saved_model_dir=args.dir, input_saved_model_tags=args.tag_set.split(","), conversion_params=params
    )
    converter.convert()
    converter.save(args.output_dir)


def json_dict(strs: str) -> dict[str, Any]:
    """Returns an argument that is a JSON object.

    Raises:
        argparse.ArgumentTypeError: it is none.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.json_dict`.

    Example:
        >>> json_dict('{"converter": "load"}')
        {'converter': 'load'}
    """
    try:
        value = json.loads(strs)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{strs!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{strs!r} is not a JSON object.")
    return value


def list_of_lists_str(strs: str) -> list[list[str]]:
    """Returns an argument that is a list of lists of strings.

    Raises:
        argparse.ArgumentTypeError: it is none.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.list_of_lists_str`.

    Example:
        >>> list_of_lists_str('[["^first"], ["^second", "^third"]]')
        [['^first'], ['^second', '^third']]
    """
    try:
        value = ast.literal_eval(strs)
    except (ValueError, SyntaxError) as error:
        raise argparse.ArgumentTypeError(f"{strs!r} is not a list of lists of strings: {error}") from error
    if not isinstance(value, list) or not all(isinstance(inner, list) for inner in value):
        raise argparse.ArgumentTypeError(f"{strs!r} is not a list of lists of strings.")
    if not all(isinstance(pattern, str) for inner in value for pattern in inner):
        raise argparse.ArgumentTypeError(f"{strs!r} is not a list of lists of strings.")
    return value


def change_description_cmd_name(parser: argparse.ArgumentParser, subcmd: str | None = None) -> None:
    """Makes a parser's help name this command instead of TensorFlow's.

    Args:
        parser: is changed.
        subcmd: the command whose parser this is.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_cli.change_description_cmd_name`.
    """
    if parser.description:
        parser.description = parser.description.replace("$saved_model_cli", f"${_NAME}")
    parser.prog = f"{_NAME} {subcmd}" if subcmd else _NAME


def _add_run(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        formatter_class=argparse.RawTextHelpFormatter,
        description="Runs a signature on simulated IPUs and prints what it gives.\n\n"
        "$saved_model_cli run --dir model --tag_set serve --signature_def serving_default\n"
        "    --input_exprs 'x=[[1.0, 1.0, 1.0, 1.0]]' --init_ipu",
    )
    parser.add_argument("--dir", required=True, help="of the SavedModel")
    parser.add_argument("--tag_set", required=True, help="which of its graphs: tags with commas between them")
    parser.add_argument("--signature_def", required=True, metavar="SIGNATURE_DEF_KEY", help="which of its signatures")
    parser.add_argument("--inputs", default="", help="key=file of .npy, .npz or pickle, with semicolons between them")
    parser.add_argument("--input_exprs", default="", help="key=literal of Python, with semicolons between them")
    parser.add_argument("--input_examples", default="", help="key=[{name: values}], for inputs that are tf.Example")
    parser.add_argument("--outdir", default="", help="where results are written as .npy files")
    parser.add_argument("--overwrite", action="store_true", help="files that are there")
    parser.add_argument("--tf_debug", action="store_true", help="TensorFlow's debugger")
    parser.add_argument("--worker", default="", help="the job to run in, such as grpc://localhost:2222")
    parser.add_argument("--init_ipu", action="store_true", help="configure a system of --num_ipus IPUs before")
    parser.add_argument("--num_ipus", type=int, default=1, help="that the model runs on")
    _add_system(parser)
    parser.set_defaults(func=run)
    return parser


def _add_convert(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "convert",
        formatter_class=argparse.RawTextHelpFormatter,
        description="Converts a SavedModel for IPUs.\n\n"
        "$saved_model_cli convert --dir model --output_dir made --tag_set serve ipu --merge_subgraphs",
    )
    parser.add_argument("--dir", required=True, help="of the SavedModel")
    parser.add_argument("--output_dir", required=True, help="of the converted one")
    parser.add_argument("--tag_set", required=True, help="which of its graphs: tags with commas between them")
    methods = parser.add_subparsers(title="conversion methods", required=True, metavar="ipu")
    ipu = methods.add_parser("ipu", description="Converts a SavedModel for IPUs.")
    ipu.add_argument("--excluded_nodes", nargs="+", help="regular expressions: nodes that stay on the host")
    ipu.add_argument("--num_ipus", type=int, default=1, help="that the model runs on")
    _add_system(ipu)
    ipu.add_argument("--batch_size", type=int, default=1, help="of each batch")
    ipu.add_argument("--batch_per_step", type=int, default=0, help="how many batches a run takes")
    ipu.add_argument("--precision_mode", help="FP16 or FP32")
    ipu.add_argument("--gelu_replacement", type=json_dict, help="a JSON object: which nodes compute a GELU")
    ipu.add_argument("--no_ipu_placement", action="store_true", help="place no node on the IPU")
    ipu.add_argument("--int64_to_int32_conversion", action="store_true", help="int64 becomes int32")
    ipu.add_argument(
        "--precision_conversion_excluded_nodes", nargs="+", help="regular expressions: nodes that keep their precision"
    )
    ipu.add_argument("--remove_excluded_nodes", action="store_true", help="the model takes what they computed")
    ipu.add_argument("--merge_subgraphs", action="store_true", help="compile all on the IPU as one program")
    ipu.add_argument("--manual_sharding", type=list_of_lists_str, help="for each IPU a list of regular expressions")
    ipu.add_argument("--embedded_runtime_save_config", type=json_dict, help="a JSON object")
    ipu.add_argument("--pipeline_cfg", type=json_dict, help="a JSON object")
    ipu.add_argument("--config_file", help="a JSON file with these options, which has the last word")
    ipu.set_defaults(func=convert_with_ipu)
    return parser


def _add_system(parser: argparse.ArgumentParser) -> None:
    for operation in ("matmul", "conv"):
        parser.add_argument(
            f"--{operation}_amp", type=float, default=0.6, help="the part of memory for temporary values"
        )
        parser.add_argument(
            f"--{operation}_partial_type", default="float", help="float or half: in which partials add up"
        )
