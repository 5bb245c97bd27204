const $ = id => document.getElementById(id);
const KINDS = {weight:"#3b6fb6", optimizer_state:"#7aa6d8", accumulator:"#4fb0ae", constant:"#9aa5b1", argument:"#b58b4c",
  exchange:"#d9822b", activation:"#58a55c", fifo:"#8bc34a", stash:"#c0ca33", gradient:"#c2527c", temporary:"#8e6bbf"};
const WORK = {compute:"#3b6fb6", exchange:"#d9822b", sync:"#9aa5b1", links:"#c2527c", host:"#58a55c"};
const WORDS = {compute:"compute", exchange:"exchange between tiles", sync:"sync", links:"exchange between IPUs", host:"host"};
const MEANS = {weight:"variables that are trained", optimizer_state:"variables that only the optimizer uses",
  accumulator:"sums of gradients over mini-batches", constant:"values that are known before a run",
  argument:"what is fed or streamed in", exchange:"copies from other IPUs",
  activation:"results of the forward pass that the backward pass takes", gradient:"results of the backward pass",
  fifo:"what stages of a pipeline keep for mini-batches on their way", stash:"inputs of stages, kept to compute them again",
  temporary:"all else, for as long as it is wanted", compute:"tiles work on what they have", sync:"tiles or IPUs wait for each other",
  links:"over IPU-Links and gateways", host:"copies from and to the host"};
const share = part => part && part < .001 ? "less than 0.1\u00a0%" : (100 * part).toFixed(1) + "\u00a0%";
const modeTitle = name => name === "xla" ? "XLA" : name;
const number = n => Math.round(n).toLocaleString("en");
const bytes = n => { const units = ["B","KiB","MiB","GiB"]; let at = 0;
  while (n >= 1024 && at < 3) { n /= 1024; at++ } return (at ? n.toFixed(n < 10 ? 2 : 1) : n) + " " + units[at] };
const made = (tag, text, cls) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls; return e };
const file = line => line.replace(/^.*[/\\]/, "").replace(/, in <module>$/, "");
const spoken = name => name === "fifo" ? "FIFO" : name.replace("_", " ");
const key = (where, names, colors, words) => names.forEach(name => { const one = made("span"), dot = made("i");
  dot.style.background = colors[name]; one.title = MEANS[name] || ""; one.append(dot, (words || {})[name] || spoken(name)); $(where).append(one) });
function table(where, columns, rows, sortBy, most, bySize, press) {
  let order = sortBy, down = true;
  const weight = value => bySize && typeof value === "number" ? Math.abs(value) : value;
  const draw = () => {
    const head = made("tr");
    columns.forEach(([title, numeric], at) => { const th = made("th", undefined, numeric ? "n" : "");
      const press = made("button", title + (order === at ? (down ? "\u00a0▼" : "\u00a0▲") : ""));
      th.setAttribute("aria-sort", order === at ? (down ? "descending" : "ascending") : "none");
      press.onclick = () => { down = order === at ? !down : true; order = at; draw();
        $(where).querySelectorAll("th button")[at].focus() }; th.append(press); head.append(th) });
    const sorted = [...rows()].sort((a, b) => { const [x, y] = [weight(a[order]), weight(b[order])];
      return (x > y ? 1 : x < y ? -1 : 0) * (down ? -1 : 1) });
    const body = made("tbody");
    for (const values of sorted.slice(0, most || 500)) { const tr = made("tr");
      columns.forEach(([title, numeric, show], at) => { const value = values[at], wraps = ["value", "before", "after"];
        const cell = made("td", numeric ? show(value) : "", numeric ? (value ? "n" : "n none") : wraps.includes(title) ? "wrap" : "");
        if (title === "line") { cell.className = "line"; cell.title = value;
          file(value).split(/(?<=_)/).forEach(part => cell.append(part, made("wbr"))) }
        else if (press && !at) { const go = made("button", undefined, "go"); go.onclick = () => press(values);
          String(value).split(/(?<=\/)/).forEach(part => go.append(part, made("wbr"))); cell.append(go) }
        else if (!numeric) String(value).split(/(?<=\/)/).forEach(part => cell.append(part, made("wbr")));
        tr.append(cell) }); body.append(tr) }
    const top = made("thead"); top.append(head); $(where).replaceChildren(top, body);
    return sorted.length };
  return draw }

