// Stages (an SVG under two canvases), axes, colours and the tooltip.
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#882255', '#8a8a1f', '#4b3fa7', '#e3d430'];
const DARK = ['#4da3dc', '#f0793a', '#2bbf94', '#de9cc0', '#f2b33d', '#9bd3f5', '#c66a94', '#b9b94f', '#9c92ee', '#f0e442'];
const darkMode = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const isDark = () => darkMode.matches && !printing;

function theme() {
  const dark = isDark();
  return {
    colours: dark ? DARK : LIGHT,
    grey: dark ? '#8b97a3' : '#8f99a3',
    paper: dark ? '#14181d' : '#fcfcfa',
    ink: dark ? '#e5e9ed' : '#1d252e',
    edge: dark ? '#4a5560' : '#c3c9cf',
    outline: dark ? '#14181d' : '#ffffff',
    gain: dark ? '#5faedd' : '#3a87b7',
    lose: dark ? '#f28a52' : '#c44e10',
  };
}
const colourOf = (mark, look) => (mark < SMALL ? look.colours[mark] : look.grey);

const NS = 'http://www.w3.org/2000/svg';
function svg(parent, name, attributes = {}, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// The sign of a cluster: four shapes, so that colour is not the only difference.
function sign(path, mark, x, y, r) {
  if (mark >= SMALL) { path.moveTo(x + r, y); path.arc(x, y, r, 0, 7); return; }
  const shape = mark % 4;
  if (shape === 0) { path.moveTo(x + r, y); path.arc(x, y, r, 0, 7); }
  else if (shape === 1) path.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
  else {
    const corners = shape === 2
      ? [[0, -1.25], [1.12, 0.8], [-1.12, 0.8]]
      : [[0, -1.28], [1.28, 0], [0, 1.28], [-1.28, 0]];
    corners.forEach(([a, b], c) => (c ? path.lineTo(x + a * r, y + b * r) : path.moveTo(x + a * r, y + b * r)));
    path.closePath();
  }
}

// The same sign for legend and table.
function signIcon(mark) {
  const look = theme();
  const icon = document.createElementNS(NS, 'svg');
  icon.setAttribute('viewBox', '-8 -8 16 16');
  icon.setAttribute('aria-hidden', 'true');
  const style = mark === SINGLE
    ? { fill: 'none', stroke: look.grey, 'stroke-width': 2 }
    : { fill: colourOf(mark, look) };
  const shape = mark < SMALL ? mark % 4 : 0;
  if (shape === 0) svg(icon, 'circle', { r: mark === SINGLE ? 4.5 : 5.5, ...style });
  else if (shape === 1) svg(icon, 'rect', { x: -5, y: -5, width: 10, height: 10, ...style });
  else svg(icon, 'path', { d: shape === 2 ? 'M0-7L6 5H-6Z' : 'M0-7L7 0L0 7L-7 0Z', ...style });
  return icon;
}

const stages = [];
// paint(stage) draws what depends on alpha, mark(stage) what is hovered or selected.
class Stage {
  constructor(figure, { height, paint, mark, picks, on }) {
    Object.assign(this, { figure, height, paint, mark, picks, on: new Set(on) });
    this.host = $('.stage', figure);
    this.svg = document.createElementNS(NS, 'svg');
    this.svg.setAttribute('aria-hidden', 'true');
    this.host.append(this.svg);
    this.host.setAttribute('role', 'img');
    if (mark) {
      this.base = document.createElement('canvas');
      this.over = document.createElement('canvas');
      this.host.append(this.base, this.over);
    }
    if (picks) this.listen();
    painters.push((changes) => {
      if ([...changes].some((c) => this.on.has(c) || c === 'size')) this.draw();
      else if (this.mark && (changes.has('hover') || changes.has('selected'))) this.remark();
    });
    stages.push(this);
  }

  pen(canvas) {
    const ratio = Math.min(devicePixelRatio || 1, 3) * (printing ? 2 : 1);
    canvas.width = Math.round(this.w * ratio);
    canvas.height = Math.round(this.h * ratio);
    canvas.style.width = this.w + 'px';
    canvas.style.height = this.h + 'px';
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return pen;
  }

  draw() {
    this.w = this.host.clientWidth;
    this.h = Math.round(this.height(this.w));
    this.host.style.height = this.h + 'px';
    this.figure.classList.toggle('brief', this.h === 0);
    this.svg.setAttribute('width', this.w);
    this.svg.setAttribute('height', this.h);
    this.svg.setAttribute('viewBox', `0 0 ${this.w} ${this.h}`);
    this.svg.replaceChildren();
    this.look = theme();
    this.paint(this, this.base && this.pen(this.base));
    if (this.mark) this.remark();
  }

  remark() { if (this.w) this.mark(this, this.pen(this.over)); }

  describe(text) { this.host.setAttribute('aria-label', text); }

  nearest(event) {
    const box = this.host.getBoundingClientRect();
    return this.picks(this, event.clientX - box.left, event.clientY - box.top);
  }

  listen() {
    this.host.classList.add('live');
    this.host.addEventListener('pointermove', (event) => {
      const i = this.nearest(event);
      change({ hover: i });
      if (i >= 0) tip(i, event.clientX, event.clientY);
      else hideTip();
    });
    this.host.addEventListener('pointerleave', () => { change({ hover: -1 }); hideTip(); });
    this.host.addEventListener('click', (event) => {
      const i = this.nearest(event);
      change({ selected: i === state.selected ? -1 : i });
    });
  }
}

// Nearest of n points given by flat arrays, within reach.
function nearestPoint(xs, ys, x, y, reach = 20) {
  let best = -1;
  let least = reach * reach;
  for (let i = 0; i < n; i++) {
    const d = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
    if (d < least) { least = d; best = i; }
  }
  return best;
}

const tipBox = $('#tip');
function tip(i, x, y) {
  const k = state.k;
  const lines = [clusterOf(k, i) ? `cluster ${clusterOf(k, i)}` : 'on its own', count(run.rows[i], 'row')];
  const gain = gainOf(k, i);
  const errors = Number.isFinite(gain)
    ? `error ${show(own[i])} alone, ${show(nodeError(k, i))} coupled: ${gain < 0 ? '▼ loses' : gain > 0 ? 'gains' : 'the same'}${gain ? ' ' + show(Math.abs(gain)) : ''}`
    : 'no held-out rows';
  tipBox.replaceChildren(element('b', {}, run.ids[i]), lines.join(' · '), element('br'), errors);
  tipBox.hidden = false;
  const box = tipBox.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
  tipBox.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}
function hideTip() { tipBox.hidden = true; }

function linearTicks(low, high, wanted) {
  const raw = (high - low) / Math.max(wanted, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let v = Math.ceil(low / step - 1e-9); v * step <= high + 1e-9 * step; v++) ticks.push(v * step);
  return ticks;
}

function logTicks(low, high, wanted) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const decades = last - first + 1;
  if (decades >= 2) {
    const every = Math.ceil(decades / Math.max(wanted, 1));
    return Array.from({ length: decades }, (_, d) => first + d).filter((d) => (d - last) % every === 0).map((d) => 10 ** d);
  }
  const fine = [];
  for (let d = first - 1; d <= last; d++) [1, 2, 5].forEach((m) => fine.push(m * 10 ** d));
  const inside = fine.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  return inside.length >= 2 ? inside : linearTicks(low, high, 3).filter((v) => v > 0);
}

// A scale from [low, high] to pixels [a, b].
function scale(low, high, a, b, log = false) {
  if (!(high > low)) {
    const pad = log ? 2 : Math.abs(low) * 0.1 || 1;
    [low, high] = log ? [low / pad, high * pad] : [low - pad, high + pad];
  }
  const f = log ? Math.log10 : (v) => v;
  const span = f(high) - f(low);
  const to = (v) => a + ((f(v) - f(low)) / span) * (b - a);
  return Object.assign(to, { low, high, a, b, log, ticks: (m) => (log ? logTicks : linearTicks)(low, high, m) });
}

function tickText(v, log) {
  if (v === 0) return '0';
  return log && (v >= 1e5 || v < 1e-3) && Math.abs(Math.log10(v) % 1) < 1e-9 ? raise(Math.round(Math.log10(v))) : show(v);
}

function axisX(stage, x, y, label, format) {
  const wanted = Math.max(2, Math.floor((x.b - x.a) / 85));
  x.ticks(wanted).forEach((v) => {
    svg(stage.svg, 'line', { class: 'grid', x1: x(v), x2: x(v), y1: y.a, y2: y.b });
    svg(stage.svg, 'text', { x: x(v), y: y.a + 17, 'text-anchor': 'middle' }, (format || ((t) => tickText(t, x.log)))(v));
  });
  svg(stage.svg, 'line', { class: 'axis', x1: x.a, x2: x.b, y1: y.a, y2: y.a });
  svg(stage.svg, 'text', { x: x.b, y: y.a + 36, 'text-anchor': 'end' }, label);
}

function axisY(stage, x, y, label, format) {
  const wanted = Math.max(2, Math.floor((y.a - y.b) / 42));
  y.ticks(wanted).forEach((v) => {
    svg(stage.svg, 'line', { class: 'grid', x1: x.a, x2: x.b, y1: y(v), y2: y(v) });
    svg(stage.svg, 'text', { x: x.a - 8, y: y(v) + 4, 'text-anchor': 'end' }, (format || ((t) => tickText(t, y.log)))(v));
  });
  svg(stage.svg, 'text', { x: 0, y: y.b - 12 }, label);
}

// Alpha on a log axis; alpha = 0 has a place of its own at the left end.
const positive = run.alphas.filter((a) => a > 0);
const leastAlpha = positive.length ? Math.min(...positive) : 1;
const mostAlpha = positive.length ? Math.max(...positive) : 1;
const hasZero = run.alphas.some((a) => !(a > 0));
const zeroAt = leastAlpha / Math.max(3, (mostAlpha / leastAlpha) ** 0.08);
const alphaAt = (k) => (run.alphas[k] > 0 ? run.alphas[k] : zeroAt);
function alphaScale(a, b) {
  const to = scale(hasZero ? zeroAt : leastAlpha, mostAlpha, a, b, true);
  if (!hasZero) return to;
  const apart = leastAlpha * (leastAlpha / zeroAt) ** -0.3; // a tick nearer to 0 would run into its label
  return Object.assign(to, { ticks: (wanted) => [zeroAt, ...logTicks(to.low, to.high, wanted).filter((v) => v >= apart)] });
}
const alphaText = (v) => (hasZero && v === zeroAt ? '0' : tickText(v, true));

// Where a pointer's x lies nearest to one of the alphas.
function nearestAlpha(x, px) {
  let best = 0;
  for (let k = 1; k < K; k++) if (Math.abs(x(alphaAt(k)) - px) < Math.abs(x(alphaAt(best)) - px)) best = k;
  return best;
}
