// Sections of the page of a profile: insights, memory by tile, layers and scopes, the program tree.
const ticks = (from, to, most) => { const step = 10 ** Math.floor(Math.log10(Math.max(1e-9, (to - from) / most)));
  const wide = [1, 2, 5, 10].map(f => f * step).find(s => (to - from) / s <= most), found = [];
  for (let at = Math.ceil(from / wide) * wide; at <= to; at += wide) found.push(at); return found };
const sizeTicks = (top, most) => { let step = 1; while (top / step > most) step *= 2;
  const found = []; for (let at = step; at <= top; at += step) found.push(at); return found };
const short = n => n >= 1e9 ? +(n / 1e9).toPrecision(3) + " G" : n >= 1e6 ? +(n / 1e6).toPrecision(3) + " M" :
  n >= 1e4 ? +(n / 1e3).toPrecision(3) + " k" : number(n);

// Layers are named by variables: `dense/kernel/3` is of the layer `dense`. An op is of the last layer in its name.
const segments = name => name.replace(/(\/\d+)?(:\d+)?$/, "").split("/");
const LAYERS = new Set(D.variables.filter(v => v[2] === "weight").map(v => segments(v[1])).filter(s => s.length > 1)
  .map(s => s[s.length - 2]));
const once = make => { const known = new Map();
  return name => { if (!known.has(name)) known.set(name, make(name)); return known.get(name) } };
const layerOf = once(name => !LAYERS.size ? "(no layer)" : segments(name).map(s => s.replace(/_grad$/, ""))
  .filter(s => LAYERS.has(s)).pop() || "(no layer)");
const WRAPPERS = /^((gradient_tape|gradients|while|cond|body|loop|StatefulPartitionedCall|PartitionedCall)(_\d+)?\/)+/;
const partsOf = once(name => segments(name.replace(WRAPPERS, "")));
const scopeOf = (name, depth) => { const parts = partsOf(name);
  return parts.slice(0, Math.max(1, Math.min(depth, parts.length - 1))).join("/") || "(none)" };
const GROUPINGS = {layer: [name => layerOf(name), "layer"], one: [name => scopeOf(name, 1), "scope, first level"],
  two: [name => scopeOf(name, 2), "scope, two levels"], all: [name => scopeOf(name, 99), "whole scope"],
  line: [(name, line) => line ? file(line) : "(no line)", "line of the script"]};
const peakStep = D.ipus.map(ipu => ipu.liveness.reduce((best, s, at, all) => s[1] > all[best][1] ? at : best, 0));
const atPeak = v => v[4] || (v[5] <= peakStep[v[0]] && peakStep[v[0]] <= v[6]);
function groups(of) { const found = new Map();
  const get = key => { if (!found.has(key)) found.set(key, [key, 0, 0, 0]); return found.get(key) };
  for (const o of D.ops) { const group = get(of(o[0], o[2])); group[1] += o[3] + o[4] + o[5]; group[3]++ }
  for (const v of D.variables) if (atPeak(v)) get(of(v[1], v[7]))[2] += v[3];
  return [...found.values()] }
Object.entries(GROUPINGS).forEach(([key, [, label]]) => $("group").append(new Option(label, key)));
$("group").value = LAYERS.size ? "layer" : "one";
let grouping = () => GROUPINGS[$("group").value][0];
const drawGroups = table("groups", [["group"], ["cycles", 1, number], ["of a run", 1, share], ["memory", 1, bytes],
  ["ops", 1, number]], () => { const all = groups(grouping()), sum = all.reduce((a, g) => a + g[1], 0) || 1;
  return all.map(g => [g[0], g[1], g[1] / sum, g[2], g[3]]) }, 1, 500, false, values => showGroup(values[0]));
$("group").onchange = drawGroups; drawGroups();
let chosenGroup = null;
const inGroup = o => chosenGroup === null || grouping()(o[0], o[2]) === chosenGroup;
function showGroup(name) { chosenGroup = name; text.value = ""; findOps();
  $("of").textContent = `of ${name}`; $("all").hidden = false; $("ops").scrollIntoView({block: "nearest"}) }
$("all").onclick = () => { chosenGroup = null; $("of").textContent = ""; $("all").hidden = true; findOps() };

// What dominates, and what would save.
const insights = [];
const told = (words, level) => insights.push([words, level || ""]);
const names = Object.entries(fullest.categories).filter(c => c[1]).sort((a, b) => b[1] - a[1]);
const fullestAt = D.ipus.indexOf(fullest), sum = fullest.always + fullest.rest;
const HELPS = {weight: "float16, more IPUs, or replicated tensor sharding",
  optimizer_state: "offload_weight_update_variables, or replicated_optimizer_state_sharding",
  accumulator: "offload_gradient_accumulation_buffers, or accumulation in float16",
  activation: "a smaller mini-batch, or recomputation (allow_recompute)", gradient: "a smaller mini-batch, or more accumulation",
  fifo: "recomputation (allow_recompute), or another schedule (Interleaved, Sequential)",
  stash: "more recomputation checkpoints, or offload_activations", argument: "a smaller mini-batch, or fewer inputs at once",
  exchange: "another split of the model, with less between IPUs", temporary: "a smaller mini-batch",
  constant: "variables or inputs instead of large constants"};
if (names.length && sum) { const [kind, size] = names[0];
  told(`Memory: ${spoken(kind)} is the largest part of IPU ${fullestAt}: ${bytes(size)}, ${share(size / sum)}. ` +
    `What saves it: ${HELPS[kind] || "a smaller mini-batch"}.`);
  const owners = LAYERS.size ? groups(layerOf).filter(g => LAYERS.has(g[0])).sort((a, b) => b[2] - a[2]) : [];
  if (owners.length) told(`Layer ${owners[0][0]} has most memory at the largest steps: ${bytes(owners[0][2])}.`);
  if (fullest.largest) told(`The largest step is ${fullest.largest}; ${share(fullest.always / sum)} is there at every step.`) }
const work = {compute: 0, "exchange and sync": 0, host: 0};
for (const o of D.ops) { work.compute += o[3]; work["exchange and sync"] += o[4]; work.host += o[5] }
const cyclesOfAll = Object.values(work).reduce((a, b) => a + b, 0);
if (cyclesOfAll) { const [most, cycles] = Object.entries(work).sort((a, b) => b[1] - a[1])[0];
  const helps = {compute: "float16, or a larger share of matmuls", host: "fewer or smaller inputs, prefetch, or I/O tiles",
    "exchange and sync": "larger mini-batches, fewer small ops, or another split"};
  told(`Time: ${most} is ${share(cycles / cyclesOfAll)} of all cycles. What saves it: ${helps[most]}.`);
  const op = D.ops.reduce((a, b) => b[3] + b[4] + b[5] > a[3] + a[4] + a[5] ? b : a);
  told(`The longest op is ${op[0]}: ${share((op[3] + op[4] + op[5]) / cyclesOfAll)} of all cycles.`) }
const working = D.ipus.map((ipu, at) => [at, ipu.busy]).filter(i => i[1]).sort((a, b) => a[1] - b[1]);
if (working.length > 1 && working[0][1] < .7 * working[working.length - 1][1]) told(`IPU ${working[0][0]} works ` +
  `${share(working[0][1] / working[working.length - 1][1])} of the time of IPU ${working[working.length - 1][0]}: balance the stages (tf-ipu fit).`);
insights.forEach(([words]) => $("told").append(made("li", words)));

// Memory by tile.
const perTile = F.bytes_per_tile;
order.forEach(at => $("tileipu").append(new Option(named(at).slice(4), at))); $("tileipu").value = fullestAt;
const tileAt = () => D.ipus[+$("tileipu").value].tiles, wideOf = w => Math.max(16, Math.floor(w / 14));
function drawTiles() { const tiles = tileAt(), w = $("tiles").clientWidth || 300, columns = wideOf(w);
  const cell = w / columns, rows = Math.ceil(tiles.length / columns), [g] = canvas("tiles", Math.max(20, rows * cell));
  const top = Math.max(1, ...tiles), scale = Math.max(top, 1);
  tiles.forEach((size, at) => { const x = at % columns * cell, y = Math.floor(at / columns) * cell;
    g.globalAlpha = 1; g.fillStyle = color(size > perTile ? "--bad" : "--accent");
    g.globalAlpha = size ? .12 + .88 * size / scale : .04; g.fillRect(x + .5, y + .5, cell - 1, cell - 1) }); g.globalAlpha = 1;
  const over = tiles.filter(size => size > perTile).length, mean = tiles.reduce((a, b) => a + b, 0) / Math.max(1, tiles.length);
  $("tile").textContent = `fullest ${bytes(top)} of ${bytes(perTile)}, ${share(top / perTile)}; on average ${bytes(Math.round(mean))}` +
    (over ? `; ${number(over)} of ${number(tiles.length)} tiles too full` : "");
  table("fulltiles", [["tile"], ["memory", 1, bytes], ["of the tile", 1, share]], () => tiles.map((size, at) =>
    [at, size, size / perTile]).sort((a, b) => b[1] - a[1]).slice(0, 10), 1, 10)() }
$("tileipu").onchange = drawTiles;
$("tiles").onmousemove = e => { const w = $("tiles").clientWidth, columns = wideOf(w), cell = w / columns, tiles = tileAt();
  const at = Math.floor(e.offsetY / cell) * columns + Math.floor(e.offsetX / cell);
  if (at < tiles.length) $("tile").textContent = `tile ${at}: ${bytes(tiles[at])}, ${share(tiles[at] / perTile)}` };
$("tiles").onmouseleave = drawTiles;

// The program tree: what is in a node is made when it is opened.
const inside = new Map();
D.tree.forEach((node, id) => { if (!inside.has(node[0])) inside.set(node[0], []); inside.get(node[0]).push(id) });
function branch(id) { const [, kind, name, cycles, times, op] = D.tree[id], parts = inside.get(id);
  const label = `${kind === "loop" ? `loop × ${times}: ` : ""}${name} – ${number(cycles)} cycles`;
  if (!parts) { const leaf = made("div", label, "leaf"), dot = made("i"); dot.style.background = WORK[kind] || WORK.compute;
    leaf.prepend(dot); if (op) { leaf.title = op; leaf.onclick = () => toLiveness(op) } return leaf }
  const node = made("details"), head = made("summary", label); node.append(head);
  node.ontoggle = () => { if (node.open && node.childElementCount === 1) grow(node, parts) };
  return node }
function grow(node, parts, begin) { const first = begin || 0, end = Math.min(parts.length, first + 200);
  for (const part of parts.slice(first, end)) node.append(branch(part));
  if (end < parts.length) { const more = made("button", `${number(parts.length - end)} more`);
    more.onclick = () => { more.remove(); grow(node, parts, end) }; node.append(more) } }
grow($("tree"), inside.get(-1) || []);
[...$("tree").children].slice(0, 3).forEach(node => { if (node.tagName === "DETAILS") node.open = true });
if (D.tree_left_out) $("treenote").textContent = ` ${number(D.tree_left_out)} of the innermost are left out.`;

// From an op to the step at which it runs, and back.
function toLiveness(op) { const at = D.ipus[shown].liveness.findIndex(s => s[0] === op), on = at >= 0 ? shown :
    D.ipus.findIndex(ipu => ipu.liveness.some(s => s[0] === op));
  if (on < 0) { $("count").textContent = `${op} has no step of its own`; return }
  shown = on; $("ipu").value = on; choose(D.ipus[on].liveness.findIndex(s => s[0] === op));
  $("curve").scrollIntoView({block: "center"}); $("curve").focus({preventScroll: true}) }
$("toop").onclick = () => { const op = D.ipus[shown].liveness[chosen]; if (!op) return;
  $("all").onclick(); text.value = op[0]; findOps(); $("ops").scrollIntoView({block: "nearest"}) };
