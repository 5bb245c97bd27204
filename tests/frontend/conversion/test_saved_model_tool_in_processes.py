"""The SavedModel tool as users start it: the page's example, and the command line in processes of their own."""

import re

import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

PAGE = ROOT / "docs/how_to/deploy/saved_model_tool.md"


def test_the_page(python):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    printed = python.succeeds(python.script("import tf_ipu_shim\n" + example))
    assert printed.strip().endswith("[[4. 4.]]")
    tool = (
        "import runpy, sys\nimport tf_ipu_shim\nsys.argv[1:] = {}\n"
        "runpy.run_module('ipu_tensorflow_addons.saved_model_tool', run_name='__main__', alter_sys=True)\n"
    )
    convert = ["convert", "--dir", "model", "--output_dir", "made", "--tag_set", "serve", "ipu", "--merge_subgraphs"]
    python.succeeds(python.script(tool.format(convert)))
    run = ["run", "--dir", "made", "--tag_set", "serve", "--signature_def", "serving_default", "--init_ipu"]
    printed = python.succeeds(python.script(tool.format([*run, "--input_exprs", "x=[[2.0, 2.0, 2.0, 2.0]]"])))
    assert "[[8. 8.]]" in printed
