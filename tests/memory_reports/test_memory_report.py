"""The memory report: its objects, its text, its JSON and its picture."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_strategy, scopes
from tf_ipu_shim.ipu.config import IPUConfig, reset_ipu_configuration

import tf_ipu_shim
from tf_ipu_shim import keras2
from tf_ipu_shim.machine.memory.byte_text import format_bytes

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture
def report(own_environment):
    """The report after one run of a program on two IPUs; nothing else ran on them before."""
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.norms.use_stable_statistics = True
    config.configure_ipu_system()
    from tf_ipu_shim.runtime import devices

    devices.load_library().reset_counters(0)
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, [8, 16])

        def model(x):
            with scopes.ipu_shard(0):
                x = tf.matmul(x, v1.get_variable("first", [16, 4], use_resource=True))
            with scopes.ipu_shard(1):
                return tf.matmul(x, v1.get_variable("second", [4, 2], use_resource=True))

        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(model, [fed])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(result, {fed: np.ones((8, 16))})
            yield tf_ipu_shim.memory_report()


def test_measured_figures(report):
    (device,) = report.devices
    assert device.exchange[0, 1].bytes == 8 * 4 * 4
    assert device.exchange[0, 1].transfers == 1
    assert device.host_to_device.bytes >= 8 * 16 * 4
    assert device.device_to_host.bytes == 8 * 2 * 4
    assert (device.programs_lowered, device.programs_run) == (1, 1)
    assert device.ipus[0].measured_peak_bytes >= device.ipus[0].measured_live_bytes


def test_modelled_figures(report):
    (device,) = report.devices
    assert device.name == "/device:IPU:0"
    assert [ipu.variable_bytes for ipu in device.ipus] == [16 * 4 * 4, 4 * 2 * 4]
    assert [ipu.modelled.limit_bytes for ipu in device.ipus] == [1472 * 638_976] * 2


def test_text_fits_and_has_both_figures(report):
    text = report.to_text()
    assert max(map(len, text.splitlines())) <= 100
    for part in ("/device:IPU:0: 2 x GC200", "Modelled", "Measured", "first", "second", "from \\ to"):
        assert part in text
    assert "norms.use_stable_statistics = True" in text
    assert str(report) == text


def test_json_has_all_of_it(report):
    read = json.loads(report.to_json())
    (device,) = read["devices"]
    (program,) = device["modelled"]["programs"]
    assert {(one["ipu"], one["name"], one["bytes"]) for one in program["variables"]} == {
        (0, "first", 256),
        (1, "second", 32),
    }
    assert program["exchanges"] == {"0->1": 128}
    assert device["measured"]["exchange"] == {"0->1": {"bytes": 128, "transfers": 1}}
    assert len(program["ipus"][0]["tile_bytes"]) == 1472
    assert sum(program["ipus"][0]["tile_bytes"]) == program["ipus"][0]["peak_bytes"]
    assert read["without_effect"] == [{"option": "norms.use_stable_statistics", "value": True}]


def test_the_picture_has_a_bar_for_each_ipu_and_category(report):
    elements = list(ElementTree.fromstring(report.to_svg()).iter())
    texts = [element.text for element in elements if element.tag.endswith("text")]
    assert [text for text in texts if "/device" in text] == ["/device:IPU:0 IPU 0", "/device:IPU:0 IPU 1"]
    titles = [element.text for element in elements if element.tag.endswith("title")]
    assert [title for title in titles if title.startswith("weight")] == ["weight: 256 bytes", "weight: 32 bytes"]
    assert [title for title in titles if title.startswith("limit")] == ["limit: 940,572,672 bytes"] * 2
    drawn = sum(int(title.split()[1].replace(",", "")) for title in titles if not title.startswith("limit"))
    peaks = [ipu.modelled.peak_bytes for ipu in report.devices[0].ipus]
    assert drawn == sum(peaks)
    assert [text.split(",")[0] for text in texts if ", below 0.1 %" in text] == [format_bytes(peak) for peak in peaks]
    assert "Memory: fits. The fullest IPU, 0, needs " in texts[0]
    bars = [element for element in elements if element.tag.endswith("rect") and element.get("height") == "20"]
    longest = max(sum(float(bar.get("width")) for bar in bars if bar.get("y") == y) for y in {b.get("y") for b in bars})
    assert 399 < longest < 401 and not [text for text in texts if "too full" in text]


def test_what_a_notebook_shows(report):
    assert report._repr_svg_() == report.to_svg() and report._repr_html_().startswith("<svg")
    picture = ElementTree.fromstring(report.to_svg())
    assert picture.get("viewBox") and "max-width:100%" in picture.get("style")


def test_the_picture_follows_dark_mode(report):
    style = next(one.text for one in ElementTree.fromstring(report.to_svg()).iter() if one.tag.endswith("style"))
    assert "prefers-color-scheme:dark" in style and "data-jp-theme-light" in style and "data-md-color-scheme" in style
    assert all(rule.strip().startswith((".ipu-memory", "@media", "[data", "}", "")) for rule in style.split("}"))


def test_all_digits_on_request(report, monkeypatch):
    peak = report.devices[0].ipus[0].modelled.peak_bytes
    assert f"{peak:,} B" not in report.to_text() or peak < 1024
    monkeypatch.setenv("TF_IPU_SHIM_EXACT_BYTES", "1")
    text = report.to_text()
    assert f"{peak:,} B of 940,572,672 B" in text and "KiB" not in text and "MiB" not in text


def test_lines_of_the_user(report):
    owners = [owner for owner in report.devices[0].ipus[0].modelled.owners if owner.name == "MatMul"]
    assert "test_memory_report.py" in owners[0].line


def test_nothing_configured_is_a_report_too(own_environment):
    from tf_ipu_shim.runtime import plans

    reset_ipu_configuration()
    plans.forget()
    empty = tf_ipu_shim.memory_report()
    assert empty.devices == ()
    assert "No program has been compiled" in empty.to_text()
    assert json.loads(empty.to_json())["devices"] == []


def test_programs_have_the_scripts_names(own_environment):
    IPUConfig().configure_ipu_system()
    keras = keras2.public_module()
    strategy = ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
        x, y = np.ones((4, 2), "f"), np.ones((4, 1), "f")
        model.fit(x, y, batch_size=2, verbose=0)
        model.evaluate(x, y, batch_size=2, verbose=0)
        model.predict(x, batch_size=2)

        @tf.function(jit_compile=True)
        def doubled_20(value):
            return 2.0 * value

        strategy.run(doubled_20, args=[tf.ones([3])])
    (device,) = tf_ipu_shim.memory_report().devices
    assert [plan.program for plan in device.programs][-4:] == ["train", "evaluate", "predict", "doubled_20"]
    reset_ipu_configuration()
