// Gain of each node, error against alpha, and the convergence of the final solve.
const gainFigure = $('#gain');
let sorted = []; // nodes with a known gain, the largest gain first

function gainScale(stage, gains) {
  const size = gains.map(Math.abs).filter((v) => v > 0).sort((a, b) => a - b);
  const typical = size.length ? size[size.length >> 1] : 1;
  const most = size.length ? size[size.length - 1] : 1;
  const high = Math.max(0, ...gains.slice(0, 1));
  const low = Math.min(0, ...gains.slice(-1));
  const stretched = most > 25 * typical;
  const bend = stretched ? (v) => Math.asinh(v / typical) : (v) => v;
  const inner = scale(bend(low), bend(high), stage.h - 22, 24);
  const to = (v) => inner(bend(v));
  const powers = [1, 10, 100, 1e3, 1e4, 1e6].map((f) => 10 ** Math.round(Math.log10(typical)) * f);
  const ticks = stretched ? [0, ...powers, ...powers.map((v) => -v)].filter((v) => v >= low && v <= high) : linearTicks(inner.low, inner.high, Math.max(3, Math.floor(stage.h / 60)));
  return { to, ticks, stretched };
}

function gainBars(stage, pen) {
  const gains = sorted.map((i) => gainOf(state.k, i));
  const { to, ticks, stretched } = gainScale(stage, gains);
  const left = 58;
  const width = Math.min(40, (stage.w - left - 4) / sorted.length);
  Object.assign(stage, { left, width, to });
  const used = [];
  ticks.forEach((v) => {
    if (used.some((y) => Math.abs(y - to(v)) < 14)) return;
    used.push(to(v));
    svg(stage.svg, 'line', { class: v === 0 ? 'axis' : 'grid', x1: left, x2: stage.w, y1: to(v), y2: to(v) });
    svg(stage.svg, 'text', { x: left - 8, y: to(v) + 4, 'text-anchor': 'end' }, show(v));
  });
  const zero = to(0);
  const bar = Math.max(width - (width > 4 ? 1.5 : width > 2 ? 0.6 : 0), 0.8);
  gains.forEach((gain, at) => {
    const x = left + at * width;
    const y = to(gain);
    pen.fillStyle = gain < 0 ? stage.look.lose : stage.look.gain;
    pen.fillRect(x, Math.min(y, zero), bar, Math.max(Math.abs(y - zero), gain ? 0.8 : 0));
    if (gain >= 0 || bar < 3) return;
    // losers are cross-hatched too
    pen.strokeStyle = stage.look.paper;
    pen.lineWidth = 1;
    for (let s = zero + 4; s < y; s += 4) { pen.beginPath(); pen.moveTo(x, s); pen.lineTo(x + bar, s - 3); pen.stroke(); }
  });
  const [win, lose] = run.outcome[state.k];
  svg(stage.svg, 'text', { x: 0, y: 12 }, 'gain in error');
  pen.font = pen.font.replace(/^\D*\d+px/, '600 12px');
  // above all bars, so that they hide none
  const loss = lose ? `▼ ${count(lose, 'node')} lose${lose === 1 ? 's' : ''}` : '';
  const room = lose ? pen.measureText(loss).width + 14 : 0;
  if (win) halo(stage, pen, `${count(win, 'node')} gain${win === 1 ? 's' : ''}`, stage.w - 4 - room, 12, 'right', stage.look.gain);
  if (lose) halo(stage, pen, loss, stage.w - 4, 12, 'right', stage.look.lose);
  return stretched;
}

function gainList(title, nodes, kind) {
  if (!nodes.length) return '';
  const items = nodes.map((i) => element('li', {}, nodeLink(i), element('span', {}, (kind ? '▼ ' : '+') + show(Math.abs(gainOf(state.k, i))))));
  return element('div', {}, element('h3', { class: kind }, title), element('ol', {}, ...items));
}

const gainStage = new Stage(gainFigure, {
  on: ['k'],
  height: (w) => (run.outcome[0][3] === run.total ? 0 : Math.max(220, Math.min(340, w * 0.68))),
  paint(stage, pen) {
    const [win, lose, same, unknown] = run.outcome[state.k];
    sorted = [];
    for (let i = 0; i < n; i++) if (Number.isFinite(gainOf(state.k, i))) sorted.push(i);
    sorted.sort((a, b) => gainOf(state.k, b) - gainOf(state.k, a) || a - b);
    const words = $('.says', gainFigure);
    const list = $('.extremes', gainFigure);
    if (!sorted.length) {
      words.textContent = 'No node has held-out rows, so there is nothing to compare.';
      list.replaceChildren();
      stage.describe('No held-out rows.');
      return;
    }
    const stretched = gainBars(stage, pen);
    const rest = [same ? `${same} the same` : '', unknown ? `${unknown} without held-out rows` : ''].filter(Boolean).join(', ');
    words.textContent = `Error at held-out rows from own data only, minus that of the coupled model, both fitted to the other rows; one bar per node.${rest ? ` Besides: ${rest}.` : ''}${stretched ? ' The scale is stretched around zero.' : ''}`;
    const winners = sorted.filter((i) => gainOf(state.k, i) > 0).slice(0, 3);
    const losers = sorted.filter((i) => gainOf(state.k, i) < 0).slice(-3).reverse();
    list.replaceChildren(gainList('gain most', winners, ''), gainList('lose most', losers, 'lose'));
    stage.describe(`Gain over own data only: ${count(win, 'node')} gain, ${lose} lose, ${same} stay the same, ${unknown} cannot be judged.`);
  },
  mark(stage, pen) {
    if (!sorted.length) return;
    lit().forEach((i) => {
      const at = sorted.indexOf(i);
      if (at < 0) return;
      const x = stage.left + at * stage.width;
      const y = stage.to(gainOf(state.k, i));
      pen.strokeStyle = stage.look.ink;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, Math.min(y, stage.to(0)), Math.max(stage.width, 2), Math.abs(y - stage.to(0)));
      label(stage, pen, run.ids[i], x, Math.min(y, stage.to(0)));
    });
  },
  picks: (stage, x) => sorted[Math.floor((x - stage.left) / stage.width)] ?? -1,
});

const curveFigure = $('#curve');
const known = (v) => v !== null && Number.isFinite(v);

// Height of the curve at x, in pixels.
function curveHeight(points, at) {
  const right = points.findIndex(([px]) => px >= at);
  if (right <= 0) return points[right === 0 ? 0 : points.length - 1][1];
  const [[x0, y0], [x1, y1]] = [points[right - 1], points[right]];
  return y0 + ((y1 - y0) * (at - x0)) / (x1 - x0 || 1);
}

// Names of the lines, each where it lies farthest from the curve, the other lines and other names.
function curveLabels(stage, x, y, lines, ks) {
  const points = ks.map((k) => [x(alphaAt(k)), y(run.error[k])]).sort((a, b) => a[0] - b[0]);
  const posts = Object.values(run.places).filter((k) => k >= 0).map((k) => x(alphaAt(k)));
  const used = [];
  lines.forEach(([name, v]) => {
    const made = svg(stage.svg, 'text', { class: 'halo' }, `${name}  ${show(v)}`);
    const width = made.getBBox().width;
    let best = { free: -Infinity };
    for (const dy of [-12, 12]) { // middle of the text above and below its line
      const middle = y(v) + dy;
      for (let left = x.b - width; left >= x.a + 4; left -= 10) {
        const near = [];
        for (let px = left - 8; px <= left + width + 8; px += 6) near.push(Math.abs(curveHeight(points, px) - middle));
        lines.forEach(([, other]) => near.push(other === v ? 12 : Math.abs(y(other) - middle)));
        used.forEach((one) => near.push(left < one.right + 10 && left + width > one.left - 10 ? Math.abs(one.middle - middle) : 30));
        const inside = middle - 8 > y.b && middle + 8 < y.a ? 0 : 20;
        const crossed = posts.some((px) => px > left - 4 && px < left + width + 4) ? 6 : 0;
        const free = Math.min(...near) - inside - crossed;
        if (free > best.free) best = { free, left, right: left + width, middle };
      }
    }
    used.push(best);
    made.setAttribute('x', best.left);
    made.setAttribute('y', best.middle + 4);
  });
}

const curveStage = new Stage(curveFigure, {
  on: ['k'],
  height: (w) => (K > 1 && run.error.some(known) ? Math.max(290, Math.min(380, w * 0.68)) : 0),
  paint(stage) {
    const ks = run.error.map((v, k) => k).filter((k) => known(run.error[k]));
    const words = $('.says', curveFigure);
    if (!ks.length || K < 2) {
      words.textContent = K < 2 ? `Only one strength was fitted, α = ${show(run.alphas[0])}, so there is no curve.` : 'No held-out error was computed along the path.';
      stage.describe(words.textContent);
      return;
    }
    const low = (k) => run.error[k] - (run.se[k] ?? 0);
    const high = (k) => run.error[k] + (run.se[k] ?? 0);
    const lines = run.lines.filter(([, v]) => known(v));
    const all = [...ks.map(high), ...ks.map((k) => run.error[k]), ...lines.map(([, v]) => v)];
    const floor = Math.min(...ks.map((k) => run.error[k]), ...lines.map(([, v]) => v));
    const top = Math.max(...all);
    const log = floor > 0 && top / floor > 6;
    const bottom = log ? Math.max(Math.min(...ks.map(low)), floor / 2) : Math.min(floor, ...ks.map(low));
    const pad = log ? (top / bottom) ** 0.06 : 0.06 * (top - bottom);
    const x = alphaScale(52, stage.w - 12);
    const y = log ? scale(bottom / pad, top * pad, stage.h - 44, 52, true) : scale(bottom - pad, top + pad, stage.h - 44, 52);
    axisX(stage, x, y, 'α, stronger coupling →', alphaText);
    axisY(stage, x, y, '');
    const point = (k, v) => `${x(alphaAt(k)).toFixed(1)},${y(Math.max(v, y.low)).toFixed(1)}`;
    const withBand = ks.filter((k) => known(run.se[k]));
    svg(stage.svg, 'polygon', { class: 'band', points: [...withBand.map((k) => point(k, high(k))), ...withBand.reverse().map((k) => point(k, low(k)))].join(' ') });
    lines.forEach(([, v]) => svg(stage.svg, 'line', { class: 'base', x1: x.a, x2: x.b, y1: y(v), y2: y(v) }));
    svg(stage.svg, 'polyline', { class: 'curve', points: ks.map((k) => point(k, run.error[k])).join(' ') });
    curveLabels(stage, x, y, lines, ks);
    curveChoices(stage, x, y);
    if (known(run.error[state.k])) {
      const at = x(alphaAt(state.k));
      svg(stage.svg, 'line', { class: 'now', x1: at, x2: at, y1: y.a, y2: y.b });
      svg(stage.svg, 'circle', { class: 'now-dot', cx: at, cy: y(run.error[state.k]), r: 6 });
    }
    const over = run.byRows ? 'all held-out rows, as above,' : 'the nodes';
    const what = run.crossValidated ? `Cross-validated ${run.metric}` : `The ${run.metric} over ${over}`;
    words.textContent = `${what} against α${withBand.length ? '; the band is one standard error to each side' : ''}${log ? '; both axes are logarithmic' : ''}. ${lines.length ? 'Dashed: own data only and one model, judged on the same rows. ' : ''}Lower is better.`;
    const best = ks.reduce((a, b) => (run.error[b] < run.error[a] ? b : a));
    stage.describe(`${what} against alpha: lowest ${show(run.error[best])} at alpha ${show(run.alphas[best])}; ${lines.map(([name, v]) => `${name} ${show(v)}`).join(', ')}.`);
  },
});

function curveChoices(stage, x, y) {
  const named = Object.entries(run.places).filter(([, k]) => k >= 0);
  const groups = new Map();
  named.forEach(([name, k]) => groups.set(k, [...(groups.get(k) || []), name]));
  let row = 0;
  [...groups].sort((a, b) => b[0] - a[0]).forEach(([k, names]) => {
    const at = x(alphaAt(k));
    const left = at > (x.a + x.b) / 2;
    const text = names.join(', ');
    svg(stage.svg, 'line', { class: 'choice', x1: at, x2: at, y1: y.a, y2: 6 + 15 * row });
    const made = svg(stage.svg, 'text', { x: at + (left ? -5 : 5), y: 14 + 15 * row, class: 'strong halo', 'text-anchor': left ? 'end' : 'start' }, text);
    const box = made.getBBox();
    if (box.x < 0) made.setAttribute('x', at - 5 - box.x);
    if (box.x + box.width > stage.w) made.setAttribute('x', at + 5 + stage.w - box.x - box.width);
    if (known(run.error[k])) svg(stage.svg, 'circle', { class: 'ring', cx: at, cy: y(run.error[k]), r: 4.5 });
    row++;
  });
}

const solveFigure = $('#convergence');
function solvePanel(stage, top, bottom, x, column, title, extra) {
  const values = run.history.map((step) => step[column]);
  const shown = values.filter((v) => known(v) && v > 0);
  const all = [...shown, ...extra.filter((v) => v > 0)];
  if (!shown.length) {
    svg(stage.svg, 'text', { x: x.a, y: (top + bottom) / 2 }, `${title}: ${values.some((v) => v === 0) ? 'below 10⁻¹⁶' : 'no value on a logarithmic scale'}`);
    return;
  }
  const low = Math.min(...all);
  const high = Math.max(...all);
  const close = high / low < 1.5;
  const pad = close ? 0.15 * (high - low) : 1.3;
  const y = close && high > low ? scale(low - pad, high + pad, bottom, top) : scale(low / 1.3, high * 1.3, bottom, top, true);
  axisY(stage, x, y, '', close ? (v) => show(v, 5) : undefined);
  svg(stage.svg, 'text', { x: x.b, y: top - 8, 'text-anchor': 'end', class: 'strong' }, title);
  extra.filter((v) => v > 0).forEach((v) => {
    svg(stage.svg, 'line', { class: 'limit', x1: x.a, x2: x.b, y1: y(v), y2: y(v) });
    svg(stage.svg, 'text', { x: x.a + 6, y: y(v) - 5, class: 'halo' }, `tolerance ${show(v)}`);
  });
  const points = run.history.map((step) => [x(step[0]), known(step[column]) && step[column] > 0 ? y(step[column]) : null]).filter(([, b]) => b !== null);
  svg(stage.svg, 'polyline', { class: 'curve', points: points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(' ') });
  if (points.length <= 60) points.forEach(([a, b]) => svg(stage.svg, 'circle', { class: 'dot', cx: a, cy: b, r: 3 }));
  return y;
}

const solveStage = new Stage(solveFigure, {
  on: [],
  height: (w) => (run.history.length > 1 ? Math.max(310, Math.min(400, w * 0.7)) : 0),
  paint(stage) {
    const steps = run.history;
    const words = $('.says', solveFigure);
    const last = steps[steps.length - 1];
    const good = last && known(last[2]) && run.tol !== null && last[2] <= run.tol;
    const ended = last ? `The final solve ${last[0] ? `stopped after ${count(last[0], 'iteration')} at` : 'needed no iteration:'} objective ${show(last[1], 5)}, ${known(last[2]) ? `with a certified relative gap of ${gapText(last[2], 3)}` : 'without a certified gap'}: ${good ? '' : 'not '}within the tolerance of ${show(run.tol)}.` : '';
    words.textContent = last ? ended : `No history of the final solve was kept. ${known(run.gaps[run.start]) ? `Certified relative gap at the alpha used: ${gapText(run.gaps[run.start], 3)}` : 'The fit has no certified gap'}.`;
    stage.describe(words.textContent);
    if (steps.length < 2) return;
    const x = scale(steps[0][0], last[0], 52, stage.w - 12);
    const middle = Math.round((stage.h - 44) * 0.42);
    solvePanel(stage, 24, middle, x, 1, 'objective', []);
    const y = solvePanel(stage, middle + 40, stage.h - 44, x, 2, 'certified gap', [run.tol ?? 0]);
    axisX(stage, x, y || Object.assign(() => 0, { a: stage.h - 44, b: middle + 40 }), 'iterations');
  },
});
