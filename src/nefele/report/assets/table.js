// The nodes as a table that sorts, searches, and selects.
const nodeTable = $('#nodes table');
const PAGE = 25;
const sorting = { column: 0, down: false };
let query = '';
let limit = PAGE;

const { listed } = run; // without a table of their own all parameters are there along the path
const coefValue = (j, c, i) => (usedTable ? usedTable(c, i) : coefficient(j, state.k, i));
const columns = [
  { name: 'node', text: (i) => run.ids[i], value: (i) => run.ids[i], words: true },
  { name: 'cluster', value: (i) => clusterOf(state.k, i) || Infinity, text: (i) => (clusterOf(state.k, i) ? String(clusterOf(state.k, i)) : 'alone') },
  { name: 'rows', value: (i) => run.rows[i], text: (i) => run.rows[i].toLocaleString('en') },
  { name: 'own error', value: (i) => own[i] },
  { name: 'nefele error', value: (i) => nodeError(state.k, i) },
  { name: 'gain', value: (i) => gainOf(state.k, i), text: (i) => { const g = gainOf(state.k, i); return (g < 0 ? '▼ ' : g > 0 ? '+' : '') + show(g); } },
  ...listed.map((j, c) => ({ name: run.parameters[j], value: (i) => coefValue(j, c, i) })),
];
const natural = new Intl.Collator('en', { numeric: true });

function compare(a, b) {
  const column = columns[sorting.column];
  const va = column.value(a);
  const vb = column.value(b);
  if (column.words) return (sorting.down ? -1 : 1) * natural.compare(va, vb) || a - b;
  const na = Number.isNaN(va);
  const nb = Number.isNaN(vb);
  if (na || nb) return na - nb || a - b; // what is not known comes last either way
  if (va === vb) return a - b;
  return (sorting.down ? -1 : 1) * (va < vb ? -1 : 1);
}

function found() {
  const wanted = query.trim().toLowerCase();
  const all = [];
  for (let i = 0; i < n; i++) if (!wanted || run.ids[i].toLowerCase().includes(wanted)) all.push(i);
  return all.sort(compare);
}

function bodyRow(i) {
  const row = element('tr', { tabindex: '0', 'data-node': i, 'aria-selected': String(i === state.selected) });
  columns.forEach((column, c) => {
    const cell = element('td', {}, column.text ? column.text(i) : show(column.value(i)));
    if (c === 0) cell.title = run.ids[i];
    if (c === 1) cell.prepend(signIcon(markOf(state.k, i)));
    if (c === 5 && gainOf(state.k, i) < 0) cell.className = 'lose';
    row.append(cell);
  });
  return row;
}

function paintTable() {
  const focused = document.activeElement?.closest?.('#nodes tbody tr')?.dataset.node;
  const nodes = found();
  $('tbody', nodeTable).replaceChildren(...nodes.slice(0, limit).map(bodyRow));
  if (focused !== undefined) $(`tr[data-node="${focused}"]`, nodeTable)?.focus({ preventScroll: true });
  [...$('thead tr', nodeTable).children].forEach((head, c) => {
    if (c === sorting.column) head.setAttribute('aria-sort', sorting.down ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
    $('button', head).textContent = columns[c].name + (c === sorting.column ? (sorting.down ? ' ↓' : ' ↑') : '');
  });
  const part = nodes.length > limit ? `, the first ${limit} shown` : '';
  const kept = n < run.total ? ` of the sample (${run.total.toLocaleString('en')} in all)` : '';
  const few = listed.length < run.parameters.length ? ` Of ${run.parameters.length} parameters it lists the ${listed.length} that differ most.` : '';
  const fixed = (usedTable ? ` Coefficients are those at α = ${show(run.alphas[run.start])}.` : '') + few;
  $('#nodes-says').textContent = `${query.trim() ? `${count(nodes.length, 'node')} found${kept}` : `${count(nodes.length, 'node')}${kept}`}${part}, at α = ${show(run.alphas[state.k])}. Errors are at held-out rows, from models fitted to the other rows; coefficients are fitted to all rows. Choose a row to see the node in every picture.${fixed}`;
  const more = $('#more');
  more.hidden = nodes.length <= limit;
  more.textContent = `Show ${Math.min(200, nodes.length - limit)} more`;
}

columns.forEach((column, c) => {
  const sort = () => {
    const again = sorting.column === c;
    sorting.down = again ? !sorting.down : false;
    sorting.column = c;
    paintTable();
  };
  $('thead tr', nodeTable).append(element('th', { scope: 'col' }, element('button', { type: 'button', onclick: sort }, column.name)));
});
$('#find').addEventListener('input', (event) => { query = event.target.value; limit = PAGE; paintTable(); });
$('#more').onclick = () => { limit += 200; paintTable(); };

const rowNode = (event) => Number(event.target.closest('tr')?.dataset.node ?? -1);
const body = $('tbody', nodeTable);
const toggle = (i) => { if (i >= 0) change({ selected: i === state.selected ? -1 : i }); };
body.addEventListener('click', (event) => toggle(rowNode(event)));
body.addEventListener('keydown', (event) => {
  const row = event.target.closest('tr');
  if (event.key === 'Enter' || event.key === ' ') toggle(rowNode(event));
  else if (event.key === 'ArrowDown') row.nextElementSibling?.focus();
  else if (event.key === 'ArrowUp') row.previousElementSibling?.focus();
  else return;
  event.preventDefault();
});
body.addEventListener('focusin', (event) => change({ hover: rowNode(event) }));
body.addEventListener('focusout', () => change({ hover: -1 }));
body.addEventListener('pointerover', (event) => change({ hover: rowNode(event) }));
body.addEventListener('pointerleave', () => change({ hover: -1 }));

painters.push((changes) => {
  if (changes.has('k') || changes.has('size')) paintTable();
  else if (changes.has('selected')) {
    [...body.children].forEach((row) => row.setAttribute('aria-selected', String(Number(row.dataset.node) === state.selected)));
  }
});
