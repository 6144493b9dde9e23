// The run, unpacked, and the one state that all pictures share.
const run = JSON.parse(document.getElementById('data').textContent);
const n = run.ids.length;
const K = run.alphas.length;
const SMALL = 254;
const SINGLE = 255;
const BY_CLUSTER = -2; // -1 is the first principal component, 0 and more a parameter

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

function unpack(block) {
  const buffer = bytes(block.data).buffer;
  if (block.kind === 'f8') return new Float64Array(buffer);
  return block.kind === 'u1' ? new Uint8Array(buffer) : new Uint16Array(buffer);
}

// A table of groups x width; see encode.py.
function table(block) {
  if (!block) return null;
  const values = unpack(block);
  const width = block.width;
  if (block.kind === 'f8') return (g, j) => values[g * width + j];
  const low = unpack(block.low);
  const step = unpack(block.step);
  return (g, j) => {
    const level = values[g * width + j];
    return level === 65535 ? NaN : low[g] + level * step[g];
  };
}

const own = unpack(run.own);
const pooled = unpack(run.pooled);
const edges = unpack(run.edges);
const edgeWeights = run.weights ? unpack(run.weights) : null;
const places = unpack(run.xy);
const numbers = unpack(run.number);
const marks = unpack(run.mark);
const errorTable = table(run.nodeError);
const coefTable = table(run.coef);
const usedTable = table(run.coefUsed);
const mainTable = table(run.main);

const nodeError = (k, i) => errorTable(i, k);
const coefficient = (j, k, i) => coefTable(j, k * n + i);
const mainValue = (k, i) => mainTable(0, k * n + i);
const clusterOf = (k, i) => numbers[k * n + i];
const markOf = (k, i) => marks[k * n + i];
const nameOf = (j) => run.parameters[run.along[j]];

function gainOf(k, i) {
  const gain = own[i] - nodeError(k, i);
  return Math.abs(gain) <= 1e-9 * Math.abs(own[i]) ? 0 : gain;
}

const neighbours = Array.from({ length: n }, () => []);
for (let e = 0; e < edges.length; e += 2) {
  neighbours[edges[e]].push(edges[e + 1]);
  neighbours[edges[e + 1]].push(edges[e]);
}

const state = {
  k: run.start, selected: -1, hover: -1, x: run.axes[0], y: run.axes[1] ?? run.axes[0], path: mainTable ? -1 : 0, colour: BY_CLUSTER, zoom: true,
};
const painters = []; // (changes) => void, called in the next frame
let waiting = null;

function change(patch) {
  const changed = Object.keys(patch).filter((key) => state[key] !== patch[key]);
  if (!changed.length) return;
  Object.assign(state, patch);
  if (!waiting) {
    waiting = new Set();
    requestAnimationFrame(() => {
      const changes = waiting;
      waiting = null;
      painters.forEach((paint) => paint(changes));
    });
  }
  changed.forEach((key) => waiting.add(key));
}

const SUPER = { '-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹' };
const raise = (power) => '10' + String(power).replace(/./g, (c) => SUPER[c]);

// Three digits that count, in words a reader knows.
function show(value, digits = 3) {
  if (value === null || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) {
    const [head, power] = value.toExponential(digits - 1).split('e');
    return `${Number(head)}×${raise(Number(power))}`.replace('-', '−').replace(/^(−?)1×/, '$1');
  }
  return String(Number(value.toPrecision(digits))).replace('-', '−');
}

// What doubles cannot resolve is no exact number.
const gapText = (gap, digits = 2) => (gap === null || !Number.isFinite(gap) ? 'none' : gap < 1e-16 ? '< 10⁻¹⁶' : show(gap, digits));

const count = (number, one, many = one + 's') => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
const $ = (selector, from = document) => from.querySelector(selector);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'onclick') made.onclick = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
