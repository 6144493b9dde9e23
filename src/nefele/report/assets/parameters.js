// The models as points (Fig. 7 and 9 of the paper) and their values along alpha.
const scatterFigure = $('#scatter');
const pathFigure = $('#path');
const m = run.along.length;
const sx = new Float64Array(n);
const sy = new Float64Array(n);

// Range of values over all alphas without the outermost share, but whole where it matters most.
function rangeOf(value, share, whole) {
  const all = [];
  let low = Infinity;
  let high = -Infinity;
  for (let k = 0; k < K; k++) {
    for (let i = 0; i < n; i++) {
      const v = value(k, i);
      if (!Number.isFinite(v)) continue;
      all.push(v);
      if (whole.includes(k)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
  }
  if (!all.length) return [0, 1];
  const sorted = Float64Array.from(all).sort();
  low = Math.min(low, sorted[Math.floor(share * (sorted.length - 1))]);
  high = Math.max(high, sorted[Math.ceil((1 - share) * (sorted.length - 1))]);
  const pad = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low - pad, high + pad];
}
const ranges = new Map();
function rangeFor(j) {
  if (!ranges.has(j)) ranges.set(j, rangeOf(j < 0 ? mainValue : (k, i) => coefficient(j, k, i), 0.02, [run.start]));
  return ranges.get(j);
}

// The scatter's frame follows the nodes, down to a tenth of the frame of all alphas, or stays.
const frames = new Map();
function frameFor(j) {
  const key = state.zoom ? `${j} ${state.k}` : j;
  if (frames.has(key)) return frames.get(key);
  const all = frames.get(j) || rangeOf((k, i) => coefficient(j, k, i), 0.2, Object.values(run.places));
  frames.set(j, all);
  if (!state.zoom) return all;
  let [low, high] = rangeOf((k, i) => (k === state.k ? coefficient(j, k, i) : NaN), n > 100 ? 0.005 : 0, []);
  const lack = 0.1 * (all[1] - all[0]) - (high - low);
  if (lack > 0) [low, high] = [low - lack / 2, high + lack / 2];
  frames.set(key, [low, high]);
  return [low, high];
}

// With one parameter the second axis only sets the nodes apart, in order of their values.
const order = new Float64Array(n);
if (m === 1) {
  const by = Array.from({ length: n }, (_, i) => i).sort((a, b) => (coefficient(0, K - 1, a) - coefficient(0, K - 1, b)) || a - b);
  by.forEach((i, at) => { order[i] = at + 1; });
}

function drawTrails(stage, pen, x, y) {
  if (K < 2 || n > 400 || m === 1) return;
  pen.strokeStyle = stage.look.edge;
  pen.globalAlpha = Math.max(0.12, Math.min(0.5, 18 / n));
  pen.lineWidth = 1;
  pen.beginPath();
  for (let i = 0; i < n; i++) {
    let on = false;
    for (let k = 0; k < K; k++) {
      const a = x(coefficient(state.x, k, i));
      const b = y(coefficient(state.y, k, i));
      if (!Number.isFinite(a + b)) { on = false; continue; }
      if (on) pen.lineTo(a, b); else pen.moveTo(a, b);
      on = true;
    }
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

// A cluster whose members coincide is one large sign with its number of nodes.
function drawClusters(stage, pen, r) {
  const members = new Map();
  for (let i = 0; i < n; i++) {
    const number = clusterOf(state.k, i);
    if (!number || !Number.isFinite(sx[i] + sy[i])) continue;
    const sum = members.get(number) || { x: 0, y: 0, size: 0, mark: markOf(state.k, i) };
    sum.x += sx[i]; sum.y += sy[i]; sum.size++;
    members.set(number, sum);
  }
  const total = new Map(run.legend[state.k].map(([, number, size]) => [number, size]));
  const labels = [];
  const spots = [...members].map(([number, sum]) => ({ number, x: sum.x / sum.size, y: sum.y / sum.size, reach: sum.mark < SMALL ? 8 : 3 }));
  [...members].sort((a, b) => b[1].size - a[1].size).forEach(([number, sum]) => {
    if (m === 1) return;
    const x = sum.x / sum.size;
    const y = sum.y / sum.size;
    const size = total.get(number) || sum.size;
    const radius = Math.min(22, r + 2.2 * Math.sqrt((size * Math.min(1, 200 / run.total))));
    pen.beginPath();
    sign(pen, sum.mark, x, y, radius);
    pen.fillStyle = colourOf(sum.mark, stage.look);
    pen.strokeStyle = stage.look.outline;
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
    const side = x + radius + 70 < stage.w ? 1 : -1;
    const free = spots.every((one) => one.number === number || Math.abs(one.y - y) > one.reach + 8
      || (one.x - x) * side < 0 || (one.x - x) * side > radius + 66 + one.reach);
    const room = free && labels.every((one) => Math.abs(one.y - y) > 15 || Math.abs(one.x - x) > 70);
    if (size > 1 && sum.mark < SMALL && room && labels.length < 8) labels.push({ x, y, radius, size });
  });
  labels.forEach(({ x, y, radius, size }) => {
    const text = count(size, 'node');
    const right = x + radius + 8 + pen.measureText(text).width < stage.w;
    halo(stage, pen, text, right ? x + radius + 6 : x - radius - 6, y + 4, right ? 'left' : 'right', stage.look.ink);
  });
}

const scatterStage = new Stage(scatterFigure, {
  on: ['k', 'x', 'y', 'zoom', 'colour'],
  height: (w) => Math.max(300, Math.min(460, w * 0.8)),
  paint(stage, pen) {
    const single = m === 1;
    const [x0, x1] = frameFor(state.x);
    const [y0, y1] = single ? [0, n + 1] : frameFor(state.y);
    const x = scale(x0, x1, 46, stage.w - 12);
    const y = scale(y0, y1, stage.h - 44, 26);
    axisX(stage, x, y, nameOf(state.x));
    if (single) svg(stage.svg, 'text', { x: 0, y: 14 }, 'nodes, by their value');
    else axisY(stage, x, y, nameOf(state.y));
    let outside = 0;
    const clamp = (v, s) => Math.max(Math.min(s.a, s.b), Math.min(Math.max(s.a, s.b), v));
    for (let i = 0; i < n; i++) {
      const a = x(coefficient(state.x, state.k, i));
      const b = y(single ? order[i] : coefficient(state.y, state.k, i));
      sx[i] = clamp(a, x);
      sy[i] = clamp(b, y);
      if (sx[i] !== a || sy[i] !== b) outside++;
    }
    pen.save();
    clip(pen, x, y);
    drawTrails(stage, pen, x, y);
    const r = Math.max(2.4, Math.min(5, 60 / Math.sqrt(n)));
    const shade = shading();
    if (shade) drawShades(stage, pen, sx, sy, r, shade);
    else drawNodes(stage, pen, sx, sy, r);
    pen.restore();
    if (!shade) drawClusters(stage, pen, r);
    const few = m < run.parameters.length ? ` Only the ${m} parameters that differ most between nodes are here, to keep the file small.` : '';
    const edge = outside ? ` ${count(outside, 'node')} outside the frame ${outside === 1 ? 'is' : 'are'} drawn on its edge.` : '';
    const trails = K > 1 && n <= 400 && m > 1 ? ' Thin lines are the ways of the nodes as the coupling grows.' : '';
    $('.says', scatterFigure).textContent = (single || shade ? `One point per node, fitted to all rows.${trails}` : `One point per node, fitted to all rows; a cluster is one larger sign, since its nodes share a model.${trails}`) + edge + few;
    stage.describe(`Parameters of the nodes at alpha ${show(run.alphas[state.k])}: ${nameOf(state.x)}${single ? '' : ` against ${nameOf(state.y)}`}, in ${count(run.counts[state.k], 'cluster')}.`);
  },
  mark(stage, pen) {
    const shade = shading();
    lit().forEach((i) => {
      if (!Number.isFinite(sx[i] + sy[i])) return;
      ring(stage, pen, i, sx[i], sy[i], 6, shade);
      label(stage, pen, run.ids[i], sx[i], sy[i]);
    });
  },
  picks: (stage, x, y) => nearestPoint(sx, sy, x, y),
});

// The frame of the lines is whole unless a few of them would press all others together.
const pathFrames = new Map();
function pathFrame() {
  const j = state.path;
  if (!pathFrames.has(j)) {
    const value = (k, i) => (j < 0 ? mainValue(k, i) : coefficient(j, k, i));
    const whole = rangeOf(value, 0, []);
    const most = rangeFor(j);
    const cut = whole[1] - whole[0] > 4 * (most[1] - most[0]);
    pathFrames.set(j, { range: cut ? most : whole, cut });
  }
  return pathFrames.get(j);
}

const pathValue = (k, i) => (state.path < 0 ? mainValue(k, i) : coefficient(state.path, k, i));
const pathName = () => (state.path < 0 ? 'first principal component' : nameOf(state.path));

function clip(pen, x, y) {
  pen.beginPath();
  pen.rect(x.a - 6, y.b - 6, x.b - x.a + 12, y.a - y.b + 12);
  pen.clip();
}

function pathLine(pen, x, y, i) {
  let on = false;
  for (let k = 0; k < K; k++) {
    const v = y(pathValue(k, i));
    if (!Number.isFinite(v)) { on = false; continue; }
    if (on) pen.lineTo(x(alphaAt(k)), v); else pen.moveTo(x(alphaAt(k)), v);
    on = true;
  }
}

const pathStage = new Stage(pathFigure, {
  on: ['k', 'path', 'colour'],
  height: (w) => Math.max(300, Math.min(460, w * 0.8)),
  paint(stage, pen) {
    const x = alphaScale(46, stage.w - 12);
    const y = scale(...pathFrame().range, stage.h - 44, 26);
    Object.assign(stage, { x, y });
    axisX(stage, x, y, 'α, stronger coupling →', alphaText);
    axisY(stage, x, y, pathName());
    pen.save();
    clip(pen, x, y);
    pen.globalAlpha = Math.max(0.12, Math.min(0.85, 22 / Math.sqrt(n) / 3));
    pen.lineWidth = n > 300 ? 0.8 : 1.3;
    const shade = shading();
    for (let i = 0; shade && i < n; i++) {
      pen.beginPath();
      pathLine(pen, x, y, i);
      pen.strokeStyle = shade.colour(i);
      pen.stroke();
    }
    for (const wanted of shade ? [] : [SINGLE, SMALL, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]) {
      pen.beginPath();
      for (let i = 0; i < n; i++) if (markOf(state.k, i) === wanted) pathLine(pen, x, y, i);
      pen.strokeStyle = colourOf(wanted, stage.look);
      pen.stroke();
    }
    pen.restore();
    const at = x(alphaAt(state.k));
    svg(stage.svg, 'line', { class: 'now', x1: at, x2: at, y1: y.a, y2: y.b - 6 });
    const share = state.path < 0 && run.mainShare !== null ? ` It carries ${Math.round(100 * run.mainShare)}% of how the models differ.` : '';
    $('.says', pathFigure).textContent = `One line per node, coloured as in the ${run.globe ? 'map' : 'graph'}; lines meet where nodes begin to share a model. Models here are fitted to all rows.${pathFrame().cut ? ' A few lines leave the frame.' : ''}${share}`;
    stage.describe(`Clusterpath: ${pathName()} of each node against alpha, from ${show(run.alphas[K - 1])} to ${show(run.alphas[0])}; ${count(run.counts[K - 1], 'cluster')} at the weakest coupling, ${run.counts[0]} at the strongest.`);
  },
  mark(stage, pen) {
    lit().forEach((i) => {
      pen.save();
      clip(pen, stage.x, stage.y);
      pen.beginPath();
      pathLine(pen, stage.x, stage.y, i);
      pen.strokeStyle = stage.look.ink;
      pen.lineWidth = 2.4;
      pen.stroke();
      pen.restore();
      const y = stage.y(pathValue(state.k, i));
      if (Number.isFinite(y)) label(stage, pen, run.ids[i], stage.x(alphaAt(state.k)), Math.max(stage.y.b, Math.min(stage.y.a, y)));
    });
  },
  picks: (stage, x, y) => {
    const k = nearestAlpha(stage.x, x);
    let best = -1;
    let least = 10;
    for (let i = 0; i < n; i++) {
      const d = Math.abs(stage.y(pathValue(k, i)) - y);
      if (d < least) { least = d; best = i; }
    }
    return best;
  },
});
pathFigure.hidden = K < 2;

function chooser(figure, text, key, names) {
  const select = element('select', {});
  names.forEach(([value, name]) => {
    const option = element('option', { value }, name);
    option.selected = value === state[key];
    select.append(option);
  });
  select.onchange = () => change({ [key]: Number(select.value) });
  $('.selects', figure).append(element('label', {}, text, select));
}
const parameterNames = run.along.map((_, j) => [j, nameOf(j)]);
const valueNames = [...(mainTable ? [[-1, 'first principal component']] : []), ...parameterNames];
chooser(graphFigure, 'colour', 'colour', [[BY_CLUSTER, 'clusters'], ...valueNames]);
if (m > 1) {
  chooser(scatterFigure, 'across', 'x', parameterNames);
  chooser(scatterFigure, 'up', 'y', parameterNames);
  chooser(pathFigure, 'show', 'path', valueNames);
  if (K > 1) {
    const box = element('input', { type: 'checkbox' });
    box.checked = state.zoom;
    box.onchange = () => change({ zoom: box.checked });
    $('.selects', scatterFigure).append(element('label', {}, box, 'frame follows α'));
  }
}
