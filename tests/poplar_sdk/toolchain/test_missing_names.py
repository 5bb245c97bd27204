"""A call of a function that PopLibs has and we don't: the compiler names it, its header and what to do."""

import subprocess

import generate_poplibs
import pytest

from tf_ipu_shim.poplar_sdk.toolchain import build, missing_headers

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

PROGRAM = """
void op(poplar::Graph &graph, poplar::Tensor a, poplar::program::Sequence &prog) {
#ifdef FUNCTIONS
  auto state = popnn::rnn::forwardIterate(graph, a, a, a, a, prog, popnn::NonLinearityType::TANH);
  auto lu = poplin::experimental::LUFactorization(graph, a, prog);
  poplin::reportPlanInfo(std::cout, graph, {});
#endif
#ifdef TYPES
  poplar::QuarterMetadata metadata;
  gcl::allGatherToDestinationCrossReplica(graph, a, a, prog);
#endif
}
inline void notCalled(poplar::Graph &graph) { poplin::reportPlanInfo(std::cout, graph, {}); }
"""
WRITE = "Write it with a codelet or with the functions that the reference page PopLibs lists"
FUNCTIONS = [
    f"popnn::rnn::forwardIterate of <popnn/Recurrent.hpp> is not emulated. {WRITE}",
    f"poplin::experimental::LUFactorization of <poplin/experimental/LuFactorization.hpp> is not emulated. {WRITE}",
    "poplin::reportPlanInfo of <poplin/Convolution.hpp> is not emulated. Leave the call out: values do not "
    "depend on plans, and nothing is planned here",
]
TYPES = [
    "poplar::QuarterMetadata of <poplar/Quarter.hpp> is not emulated. Use half: float8 values are not emulated in C++",
    f"gcl::allGatherToDestinationCrossReplica of <gcl/Collectives.hpp> is not emulated. {WRITE}",
]


@pytest.mark.parametrize(
    ("kind", "headers", "messages"),
    [
        ("FUNCTIONS", tuple(missing_headers.headers()), FUNCTIONS),  # the headers compile together
        ("TYPES", ("poplar/Quarter.hpp", "gcl/Collectives.hpp", "poplin/Convolution.hpp"), TYPES),
    ],
)
def test_errors_name_function_and_header(tmp_path, kind, headers, messages):
    text = "".join(f"#include <{header}>\n" for header in ("iostream", *headers)) + PROGRAM
    words = ["g++", "-std=c++17", "-S", "-Wall", f"-D{kind}", f"-I{build.find_prefix() / 'include'}", "-xc++", "-"]
    done = subprocess.run([*words, "-o", "/dev/null"], input=text, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if ": error: " in line or ": warning: " in line]
    assert [message for message in messages if not any(line.endswith(message) for line in said)] == []
    assert len({line.split(": ", 1)[1] for line in said if "is not emulated" in line}) == len(messages)


def test_every_missing_name_has_its_message():
    texts = missing_headers.headers()
    for header, names in generate_poplibs.missing_names().items():
        assert [name for name in names if f'("{name} of <{header}> ' not in texts[header]] == []
