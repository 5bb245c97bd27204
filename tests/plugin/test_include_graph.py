"""The headers that a source includes."""

import pytest

from tf_ipu_shim.plugin import include_graph

pytestmark = pytest.mark.without_tensorflow


def test_headers_of_a_source(tmp_path):
    """Through other headers, from the folder of the file or one of the others, and in any condition."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "c.h").write_text('#include "a.h"\n')
    (tmp_path / "b.h").write_text('#if 0\n#include "c.h"\n#endif\n')
    (tmp_path / "a.h").write_text("#pragma once\n")
    source = tmp_path / "a.cc"
    source.write_text('#  include "b.h"\n#include <vector>\n// include "d.h"\n')
    (tmp_path / "d.h").touch()
    found = include_graph.IncludeGraph([tmp_path / "far", tmp_path]).headers_of(source)
    assert found == {tmp_path / "a.h", tmp_path / "b.h", tmp_path / "far" / "c.h"}
