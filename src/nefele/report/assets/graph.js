// The graph, or a map, coloured by cluster; its legend; the selected node in words.
const graphFigure = $('#graph');
const px = new Float64Array(n);
const py = new Float64Array(n);

function degrees(value, [plus, minus]) {
  const rounded = Math.abs(Number(value.toFixed(4)));
  return rounded === 0 ? '0°' : `${rounded}°${value > 0 ? plus : minus}`;
}

// Meridians and parallels, and a frame: a map without a tile.
function graticule(stage, to) {
  const [lon0, lat0, perX, perY] = run.globe;
  const { left, right, top, bottom } = to;
  const lon = (x) => lon0 + to.backX(x) * perX;
  const lat = (y) => lat0 + to.backY(y) * perY;
  const x = scale(lon(left), lon(right), left, right);
  const y = scale(lat(bottom), lat(top), bottom, top);
  const step = Math.max(2, Math.round((right - left) / 110));
  x.ticks(step).forEach((v) => {
    svg(stage.svg, 'line', { class: 'grid', x1: x(v), x2: x(v), y1: top, y2: bottom });
    const turn = v > 180 ? v - 360 : v;
    if (x(v) > left + 14 && x(v) < right - 14) svg(stage.svg, 'text', { x: x(v), y: bottom + 15, 'text-anchor': 'middle' }, degrees(turn, 'EW'));
  });
  y.ticks(Math.max(2, Math.round((bottom - top) / 90))).forEach((v) => {
    svg(stage.svg, 'line', { class: 'grid', x1: left, x2: right, y1: y(v), y2: y(v) });
    svg(stage.svg, 'text', { x: left + 5, y: y(v) - 4, class: 'halo' }, degrees(v, 'NS'));
  });
  svg(stage.svg, 'rect', { class: 'axis', x: left + 0.5, y: top + 0.5, width: right - left - 1, height: bottom - top - 1 });
}

function placeNodes(stage) {
  const [bw, bh] = run.box;
  const frame = run.globe ? { left: 0, right: stage.w, top: 0, bottom: stage.h - 22 } : { left: 0, right: stage.w, top: 0, bottom: stage.h };
  const pad = Math.max(18, Math.min(34, stage.w * 0.05));
  const wide = frame.right - frame.left - 2 * pad;
  const high = frame.bottom - frame.top - 2 * pad;
  unit = Math.min(wide / Math.max(bw, 1e-6), high / Math.max(bh, 1e-6));
  const x0 = (frame.left + frame.right - unit * bw) / 2;
  const y0 = (frame.top + frame.bottom + unit * bh) / 2;
  if (run.globe) { // the frame fits the nodes, with room for a few degrees
    const more = Math.max(pad, 0.18 * unit);
    Object.assign(frame, {
      left: Math.max(0, x0 - more), right: Math.min(stage.w, x0 + unit * bw + more),
      top: Math.max(0, y0 - unit * bh - pad), bottom: Math.min(frame.bottom, y0 + pad),
    });
  }
  for (let i = 0; i < n; i++) {
    px[i] = x0 + (places[2 * i] / 65535) * unit;
    py[i] = y0 - (places[2 * i + 1] / 65535) * unit;
  }
  return { ...frame, backX: (x) => (x - x0) / unit, backY: (y) => (y0 - y) / unit };
}

let unit = 1; // pixels per unit of the layout
const dotSize = () => Math.max(2.2, Math.min(8, 0.26 * unit * Math.sqrt((run.box[0] * Math.max(run.box[1], 0.1)) / n)));

function drawEdges(stage, pen) {
  const m = edges.length / 2;
  pen.strokeStyle = stage.look.edge;
  const crowd = Math.max(0.18, Math.min(0.9, 2.2 / Math.sqrt(m / Math.max(n, 1)) * Math.sqrt(150 / Math.max(n, 150))));
  if (!edgeWeights) {
    pen.globalAlpha = crowd;
    pen.lineWidth = n > 600 ? 0.7 : 1;
    pen.beginPath();
    for (let e = 0; e < edges.length; e += 2) { pen.moveTo(px[edges[e]], py[edges[e]]); pen.lineTo(px[edges[e + 1]], py[edges[e + 1]]); }
    pen.stroke();
  } else {
    for (let level = 0; level < 4; level++) { // four widths, drawn together
      pen.globalAlpha = crowd * (0.4 + 0.2 * level);
      pen.lineWidth = 0.6 + 0.5 * level;
      pen.beginPath();
      for (let e = 0; e < m; e++) {
        if (edgeWeights[e] >> 6 !== level) continue;
        pen.moveTo(px[edges[2 * e]], py[edges[2 * e]]);
        pen.lineTo(px[edges[2 * e + 1]], py[edges[2 * e + 1]]);
      }
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
}

// A ramp that colour-blind readers see as well (viridis), from low to high.
const RAMP = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
function ramp(share) {
  const at = Math.max(0, Math.min(0.9999, share)) * (RAMP.length - 1);
  const low = RAMP[Math.floor(at)];
  const high = RAMP[Math.floor(at) + 1];
  return `rgb(${low.map((v, c) => Math.round(v + (high[c] - v) * (at % 1))).join(',')})`;
}

const tint = (share) => ramp(isDark() ? 0.2 + 0.8 * share : 0.9 * share); // never the page's own shade

// What colours the nodes besides clusters: a chosen value, or, where no two nodes share a model,
// the models themselves. Null where the clusters do.
function shading() {
  const alone = run.single[state.k] === run.total && run.total > 1;
  if (state.colour === BY_CLUSTER && !alone) return null;
  const chosen = state.colour !== BY_CLUSTER;
  const j = chosen ? state.colour : mainTable ? -1 : 0;
  const value = (i) => (j < 0 ? mainValue(state.k, i) : coefficient(j, state.k, i));
  let [low, high] = rangeFor(j);
  if (!chosen) {
    const all = run.ids.map((_, i) => value(i)).filter(Number.isFinite);
    [low, high] = [Math.min(...all), Math.max(...all)];
  }
  const share = (i) => Math.max(0, Math.min(1, (value(i) - low) / (high - low || 1)));
  const colour = (i) => (Number.isFinite(value(i)) ? tint(share(i)) : theme().grey);
  return { low, high, chosen, colour, name: j < 0 ? 'first principal component' : nameOf(j) };
}

function drawShades(stage, pen, xs, ys, radius, shade) {
  pen.strokeStyle = stage.look.outline;
  pen.lineWidth = Math.min(1.6, radius * 0.3);
  for (let i = 0; i < n; i++) {
    pen.beginPath();
    pen.arc(xs[i], ys[i], radius, 0, 7);
    pen.fillStyle = shade.colour(i);
    pen.stroke();
    pen.fill();
  }
}

// Nodes of one sign are drawn as one path.
function drawNodes(stage, pen, xs, ys, radius) {
  const groups = new Map();
  for (let i = 0; i < n; i++) {
    const mark = markOf(state.k, i);
    if (!groups.has(mark)) groups.set(mark, []);
    groups.get(mark).push(i);
  }
  [...groups.keys()].sort((a, b) => b - a).forEach((mark) => {
    pen.beginPath();
    groups.get(mark).forEach((i) => sign(pen, mark, xs[i], ys[i], mark === SINGLE ? radius * 0.78 : radius));
    pen.lineWidth = mark === SINGLE ? Math.max(1.2, radius * 0.3) : Math.min(1.6, radius * 0.3);
    pen.fillStyle = mark === SINGLE ? stage.look.paper : colourOf(mark, stage.look);
    pen.strokeStyle = mark === SINGLE ? stage.look.grey : stage.look.outline;
    if (mark === SINGLE) { pen.fill(); pen.stroke(); } else { pen.stroke(); pen.fill(); }
  });
}

function halo(stage, pen, text, x, y, align, colour) {
  pen.textAlign = align;
  pen.lineWidth = 4;
  pen.lineJoin = 'round';
  pen.strokeStyle = stage.look.paper;
  pen.strokeText(text, x, y);
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
  pen.textAlign = 'left';
}

function label(stage, pen, text, x, y) {
  const short = text.length > 28 ? text.slice(0, 27) + '…' : text;
  pen.font = pen.font.replace(/^\D*\d+px/, '600 12px');
  const width = pen.measureText(short).width;
  const at = Math.max(3, x + 11 + width < stage.w ? x + 11 : x - 11 - width);
  const up = y < 26 ? y + 20 : y - 9;
  halo(stage, pen, short, at, up, 'left', stage.look.ink);
}

function ring(stage, pen, i, x, y, radius, shade) {
  const mark = shade ? SMALL : markOf(state.k, i);
  pen.beginPath();
  sign(pen, mark, x, y, radius);
  pen.fillStyle = shade ? shade.colour(i) : colourOf(mark, stage.look);
  pen.strokeStyle = stage.look.ink;
  pen.lineWidth = 2;
  pen.fill();
  pen.stroke();
}

const lit = () => [state.selected, state.hover].filter((i, at, all) => i >= 0 && all.indexOf(i) === at);

const graphStage = new Stage(graphFigure, {
  on: ['k', 'colour'],
  height: (w) => {
    const ratio = run.box[1] / Math.max(run.box[0], 1e-6);
    if (edges.length === 0 && !run.placed && n === 1) return 150;
    return Math.max(210, Math.min(w * Math.max(0.45, Math.min(0.86, ratio)) + (run.globe ? 34 : 10), innerHeight * 0.8, 640));
  },
  paint(stage, pen) {
    const frame = placeNodes(stage);
    if (run.globe) graticule(stage, frame);
    drawEdges(stage, pen);
    const shade = shading();
    if (shade) drawShades(stage, pen, px, py, dotSize(), shade);
    else drawNodes(stage, pen, px, py, dotSize());
    stage.describe(`${run.globe ? 'Map' : 'Graph'} of ${count(run.total, 'node')} and ${count(run.totalEdges, 'edge')}, in ${count(run.counts[state.k], 'cluster')} at alpha ${show(run.alphas[state.k])}. Arrow keys move from node to node, Enter selects.`);
  },
  mark(stage, pen) {
    const r = dotSize();
    const shade = shading();
    lit().forEach((i) => {
      pen.strokeStyle = stage.look.ink;
      pen.lineWidth = 1.6;
      pen.beginPath();
      neighbours[i].forEach((j) => { pen.moveTo(px[i], py[i]); pen.lineTo(px[j], py[j]); });
      pen.stroke();
      neighbours[i].forEach((j) => ring(stage, pen, j, px[j], py[j], r, shade));
      ring(stage, pen, i, px[i], py[i], r + 3, shade);
      label(stage, pen, run.ids[i], px[i], py[i]);
    });
  },
  picks: (stage, x, y) => nearestPoint(px, py, x, y),
});

graphStage.host.addEventListener('keydown', (event) => {
  const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (move) {
    const from = state.hover >= 0 ? state.hover : state.selected >= 0 ? state.selected : move > 0 ? -1 : 0;
    const i = (from + move + n) % n;
    change({ hover: i });
    const box = graphStage.host.getBoundingClientRect();
    tip(i, box.left + px[i], box.top + py[i]);
  } else if (event.key === 'Enter' && state.hover >= 0) change({ selected: state.hover });
  else return;
  event.preventDefault();
});
graphStage.host.addEventListener('blur', () => { change({ hover: -1 }); hideTip(); });

function paintRamp(shade) {
  const bar = element('span', { class: 'ramp', style: `background:linear-gradient(90deg,${[0, 0.2, 0.4, 0.6, 0.8, 1].map(tint).join(',')})` });
  $('.legend', graphFigure).replaceChildren(element('li', {}, shade.name), element('li', {}, show(shade.low, 2), bar, show(shade.high, 2)));
  $('.says', graphFigure).textContent = shade.chosen
    ? 'Each node coloured by its model; the colours mean the same at every α.'
    : run.centre ? 'Each node has a model of its own, drawn towards a common centre' + (run.totalEdges ? ' and towards its neighbours’.' : ', which couples all nodes; there are no edges.') + ' The colours show the models.'
    : !run.totalEdges ? 'There are no edges, so nothing couples the nodes: each has its own model, shown by its colour.'
      : `At this α each node has a model of its own, near its neighbours’ but equal to none, so the colours show the models.${K > 1 ? ' A stronger coupling shows clusters.' : ''}`;
}

function paintLegend() {
  const k = state.k;
  $('h2', graphFigure).textContent = run.globe ? 'The map' : 'The graph';
  const shade = shading();
  if (shade) { paintRamp(shade); return; }
  const items = run.legend[k].map(([mark, number, size]) => {
    const words = element('span', {}, element('b', {}, String(number)), ` ${count(size, 'node')}`);
    return element('li', {}, signIcon(mark), words);
  });
  if (run.small[k]) items.push(element('li', { class: 'more' }, signIcon(SMALL), count(run.small[k], 'smaller cluster')));
  if (run.single[k]) items.push(element('li', { class: 'more' }, signIcon(SINGLE), count(run.single[k], 'node') + ' on ' + (run.single[k] === 1 ? 'its' : 'their') + ' own'));
  $('.legend', graphFigure).replaceChildren(...items);
  $('.says', graphFigure).textContent = clusterWords(k);
}

function clusterWords(k) {
  if (run.total === 1) return 'One node, with its own model.';
  const grey = run.small[k] ? ' Grey: smaller clusters, without a colour of their own.' : '';
  const hollow = run.single[k] ? ' Hollow: a model of its own.' : '';
  return `Nodes of one colour and shape share one model.${K > 1 ? ' A cluster keeps its colour as the slider moves.' : ''}${grey}${hollow}`;
}

function nodeLink(i) {
  return element('button', { type: 'button', class: 'link', onclick: () => change({ selected: i }) }, run.ids[i]);
}

function modelWords(i) {
  const all = run.along.map((_, j) => `${nameOf(j)} ${show(coefficient(j, state.k, i))}`);
  return all.slice(0, 8).join(', ') + (run.parameters.length > 8 ? ', …' : '');
}

function paintChosen() {
  const box = $('#chosen');
  const i = state.selected;
  box.hidden = i < 0;
  if (i < 0) return;
  const k = state.k;
  const cluster = clusterOf(k, i);
  const size = run.legend[k].find((row) => row[1] === cluster);
  const where = cluster ? `In cluster ${cluster}${size ? `, ${count(size[2], 'node')}` : ''}` : 'On its own';
  const gain = gainOf(k, i);
  const judged = Number.isFinite(gain)
    ? `Held-out error ${show(own[i])} from own data only, ${show(pooled[i])} from one model, ${show(nodeError(k, i))} coupled: it ${gain > 0 ? 'gains ' + show(gain) : gain < 0 ? '▼ loses ' + show(-gain) : 'stays the same'}.`
    : 'It has no held-out rows to judge by.';
  const near = element('p', {}, `${count(neighbours[i].length, 'neighbour')}${neighbours[i].length ? ': ' : ''}`);
  neighbours[i].slice(0, 16).forEach((j, at) => near.append(at ? ', ' : '', nodeLink(j)));
  if (neighbours[i].length > 16) near.append(` and ${neighbours[i].length - 16} more`);
  box.replaceChildren(
    element('h3', {}, run.ids[i]),
    element('button', { type: 'button', onclick: () => change({ selected: -1 }) }, 'Clear'),
    element('p', {}, `${where} · ${count(run.rows[i], 'training row')}. ${judged}`),
    element('p', {}, `Model: ${modelWords(i)}`), near,
  );
}
painters.push((changes) => {
  if (changes.has('k') || changes.has('colour') || changes.has('size')) paintLegend();
  if (changes.has('k') || changes.has('selected') || changes.has('size')) paintChosen();
});
