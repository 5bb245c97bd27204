"""The pages of profiles in Chromium, where there is one: what they show at three sizes, by mouse and by keyboard.

`CHROMIUM` names it where it is none of the usual names. `.ci/run` says so where it finds none.
"""

import html as html_module
import json
import os
import re
import shutil
import subprocess

import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, Move
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Saving, Value, plan_of
from tf_ipu_shim.profiling import collect, comparison, page

NAMES = (os.environ.get("CHROMIUM") or "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.without_tensorflow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page in"),
]
CHIP = CHIPS["gc200"]
SIZES = [(500, 900), (1024, 768), (1600, 1000)]
# Runs when the page has drawn itself; what it finds stands in an element of its own.
LOOK = """<script>{
const found = {errors: window.errors, ms: performance.now(), wide: document.documentElement.scrollWidth - innerWidth};
const text = id => document.getElementById(id).innerText, press = (id, key) => document.getElementById(id)
  .dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
try { /*LOOK*/ } catch (error) { found.errors.push(String(error)) }
const out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(found);
document.body.append(out) }
</script>"""
ERRORS = '<script>window.errors = []; onerror = (text, file, line) => errors.push(text + " at line " + line);</script>'
PROFILE = """
found.text = document.body.innerText;
found.bars = [...document.querySelectorAll("#memory .bar")].map(bar => bar.getBoundingClientRect())
  .map(bar => [bar.left, bar.width]);
found.steps = [text("step")];
for (const key of ["Home", "ArrowRight", "End", "m"]) { press("curve", key); found.steps.push(text("step")) }
const ink = () => { const c = document.getElementById("tracks"), seen = new Set();
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  for (let at = 0; at < d.length; at += 4) if (d[at + 3]) seen.add([d[at], d[at + 1], d[at + 2]].join());
  return ["59,111,182", "194,82,124"].map(color => seen.has(color)) };
found.ink = ink(); press("tracks", "+"); found.zoomed = ink();
const find = document.getElementById("find"); find.value = "op 7"; find.oninput(); found.count = text("count");
found.lines = [...document.querySelectorAll("#ops td.line")].map(cell => cell.clientWidth);
found.alive = document.querySelectorAll("#alive tbody tr").length;
document.querySelectorAll("#ops th button")[0].click();
found.first = document.querySelector("#ops tbody td").innerText;
found.order = document.querySelectorAll("#ops th")[0].getAttribute("aria-sort");
"""


def looked_at(tmp_path, html, look, size=SIZES[1]):
    """What a script finds in a page."""
    file = tmp_path / "page.html"
    looking = LOOK.replace("/*LOOK*/", look)
    file.write_text(html.replace("<head>", "<head>" + ERRORS).replace("</body>", looking + "</body>"))
    process = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path / 'browser'}", f"--window-size={size[0]},{size[1]}", "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    match = re.search(r'<pre id="found">(.*?)</pre>', process.stdout, re.S)
    assert match is not None, process.stdout[-500:] + process.stderr[-500:]
    found = json.loads(html_module.unescape(match[1]))
    assert found["errors"] == []
    return found


def profile(steps=40, tensor=4000, savings=()):
    """Additions on two IPUs, each of what the one before made; then a loop of them in a loop."""
    plans, blocks = [], {}
    for ipu in range(2):
        block, body, inner = Block(f"IPU {ipu}"), Block("body"), Block("inner")
        last = ()
        for step in range(steps):
            work = Computation("elementwise", f"op {step}/add/Op/Add", ElementwiseSizes(1000, 2))
            made = block.add(Value(tensor * (1 + ipu) * (1 + step % 5), f"op {step}", "temporary"))
            block.run(f"op {step}", last, (made,), work=work)
            if step % 10 == 5:
                moved = Computation("exchange", f"move {step}", ExchangeSizes((Move(400_000, 0, 1),)), 1)
                block.run("move", (made,), (), work=SyncPoint(step + 2, computation=moved))
            last = (made,)
        inner.run("deep", (), (), work=Computation("elementwise", "deep/add/Op/Add", ElementwiseSizes(9000, 2)))
        body.run("inner loop", (), (), (inner,), True, SyncPoint(1, 3, (0,)))
        block.run("loop", (), (), (body,), True, SyncPoint(0, 4, (0,)))
        blocks[ipu] = block
        plans.append(plan_of(ipu, block, CHIP))
    ipus, helps = tuple(plans), tuple(savings)
    plan = MemoryPlan(program="train", device="/device:IPU:0", chip=CHIP.title, ipus=ipus, savings=helps)
    facts = {"sdk": "3.4", "execution_mode": "xla"}
    return collect.make_profile(plan, blocks, timeline_of(blocks, CHIP, 1), CHIP, 1, 2, {}.get, {}, facts)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_is_shown(tmp_path, size):
    found = looked_at(tmp_path, page.render_page(profile()), PROFILE, size)
    assert found["wide"] <= 0  # nothing to scroll to the side for
    assert "fits" in found["text"] and "does not fit" not in found["text"]
    assert found["bars"][0] == pytest.approx(found["bars"][1])  # one scale for both IPUs
    first, home, right, end, most = found["steps"]
    assert first == most != home and right.startswith("step 2 of 47, ") and end.startswith("step 47 of 47, ")
    assert found["ink"] == [True, True]  # compute and exchanges
    assert found["zoomed"][0]
    assert found["count"] == "2 of 83 ops"  # of either IPU
    assert found["alive"] == 2
    assert min(found["lines"]) > 90  # room for words: the tables scroll
    assert "less than 0.1\u00a0%" in found["text"]
    assert (found["first"], found["order"]) == ("op 7", "descending")


def test_a_program_that_does_not_fit(tmp_path):
    savings = [Saving("<b>less</b>", 3 << 20, True), Saving("more IPUs", 2 << 20, False)]
    found = looked_at(tmp_path, page.render_page(profile(tensor=100 << 20, savings=savings)), PROFILE)
    assert "does not fit" in found["text"] and "too full" in found["text"]
    assert "3.00 MiB less: <b>less</b> – fits then\n2.00 MiB less: more IPUs – not enough by itself\n" in found["text"]
    assert found["bars"][0] == pytest.approx(found["bars"][1])


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_two_side_by_side(tmp_path, size):
    pair = comparison.compare_profiles("train", profile(), profile(tensor=8000))
    html = page.render_comparison([pair], ["gone"], ["new"], ("before", "after"))
    found = looked_at(tmp_path, html, "found.text = document.body.innerText", size)
    assert found["wide"] <= 0
    assert "+100 %" in found["text"] and "as before" in found["text"] and "changed" in found["text"]


def test_ten_thousand_steps(tmp_path):
    """Alone on a machine that takes less than one second; here others may be at work."""
    found = looked_at(tmp_path, page.render_page(profile(steps=10_000)), PROFILE)
    assert found["ms"] < 5000
    assert re.match(r"step \d+ of 11,003, ", found["steps"][0])


PIPELINE = """
found.text = document.body.innerText;
const box = document.getElementById("tracks").getBoundingClientRect();
const at = (x, y) => { document.getElementById("tracks").dispatchEvent(new MouseEvent("mousemove",
  {clientX: box.left + x, clientY: box.top + y, bubbles: true})); return text("thing") };
found.seen = [];
for (let lane = 0; lane < 2; lane++) { const seen = [];
  for (let x = 0; x < box.width; x += 1) seen.push(at(x, lane * 50 + 30)); found.seen.push(seen) }
"""


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_pipeline_slot_by_slot(tmp_path, size):
    blocks, plans = {}, []
    for ipu in range(2):
        body, block = Block("body"), Block(f"IPU {ipu}")
        made = body.add(Value(4, "x", "temporary"))
        body.run(
            f"stage {ipu}",
            (),
            (made,),
            work=Computation("elementwise", f"work {ipu}", ElementwiseSizes(4_000_000, 2)),
        )
        work = SyncPoint(0, 4, (0,), schedule="Grouped", stages=2)
        block.run("pipeline", (), (), (body,), True, work)
        blocks[ipu] = block
        plans.append(plan_of(ipu, block, CHIP))
    plan = MemoryPlan(program="train", device="/device:IPU:0", chip=CHIP.title, ipus=tuple(plans))
    facts = {"sdk": "3.4", "execution_mode": "xla", "stages": [[1], [0]]}  # the second IPU has the first stage
    made = collect.make_profile(plan, blocks, timeline_of(blocks, CHIP, 2), CHIP, 2, 1, {}.get, {}, facts)
    found = looked_at(tmp_path, page.render_page(made), PIPELINE, size)
    assert found["wide"] <= 0 and "expected between" in found["text"]
    for lane, ipu in enumerate((1, 0)):
        seen = found["seen"][lane]
        slots = [re.search(r"mini-batch (\d) of 4", one) for one in seen]
        assert [one and int(one[1]) for one in slots[int(0.1 * len(seen)) :: len(seen) // 5]][:5] == (
            [1, 2, 3, 4, None] if lane == 0 else [None, 1, 2, 3, 4]
        )
        assert {one for one in seen if one} == {
            f"work {ipu} – compute, {number} cycles, mini-batch {batch} of 4"
            for number in [format(made.programs[2].cycles, ",")]
            for batch in range(1, 5)
        }


SECTIONS = """
found.told = text("told"); found.tile = text("tile");
const rows = id => [...document.querySelectorAll(`#${id} tbody tr`)]
  .map(row => [...row.cells].map(one => one.textContent));
found.tiles = rows("fulltiles");
found.groups = rows("groups");
document.querySelector("#groups button.go").click(); found.chosen = rows("ops").map(row => row[0]);
document.getElementById("all").click(); found.all = text("count");
const op = [...document.querySelectorAll("#ops button.go")].find(one => one.textContent === "op 7");
op.click(); found.step = text("step");
document.getElementById("toop").click(); found.back = rows("ops").map(row => row[0]);
const nodes = () => document.querySelectorAll("#tree details, #tree .leaf").length;
found.before = nodes(); const closed = [...document.querySelectorAll("#tree details")].find(one => !one.open);
if (closed) { closed.open = true; closed.ontoggle(); } found.after = nodes(); found.closed = Boolean(closed);
"""


@pytest.mark.parametrize("size", [(420, 900), SIZES[1]], ids=str)
def test_sections(tmp_path, size):
    found = looked_at(tmp_path, page.render_page(profile()), SECTIONS, size)
    assert found["wide"] <= 0
    assert "Memory: temporary is the largest part of IPU 1: " in found["told"] and "Time: " in found["told"]
    largest = max(json.loads(profile().ipus[1].tile_bytes))
    assert found["tile"].startswith(f"fullest {largest} B of 624.0 KiB")
    assert len(found["tiles"]) == 10 and {row[1] for row in found["tiles"]} == {f"{largest} B"}
    assert sum(int(row[4].replace(",", "")) for row in found["groups"]) == 83  # every op is in one group
    assert len(found["chosen"]) == int(found["groups"][0][4]) and found["all"] == "83 of 83 ops"
    assert found["step"].startswith("step 9 of 47, ") and found["step"].endswith(": op 7")
    assert set(found["back"]) == {"op 7"}
    assert not found["closed"] or found["after"] > found["before"]
