// The slider and what belongs to the whole page.
const slider = $('#alpha');
slider.max = K - 1;
slider.addEventListener('input', () => change({ k: K - 1 - Number(slider.value) }));
$('.slide').hidden = K < 2;

const jumps = ['best prediction', 'clearest clusters', 'used'].filter((name) => run.places[name] >= 0 && K > 1);
jumps.forEach((name) => {
  $('#jumps').append(element('button', { type: 'button', 'data-k': run.places[name], onclick: () => change({ k: run.places[name] }) }, name));
});

if (run.crossValidated) $('#now-kind').textContent = 'CV error'; // short, so that it fits everywhere

function paintNumbers() {
  const k = state.k;
  const error = run.error[k];
  const se = run.crossValidated && known(run.se[k]) && known(error) ? ` ± ${show(run.se[k], 2)}` : '';
  slider.value = K - 1 - k;
  slider.setAttribute('aria-valuetext', `alpha ${show(run.alphas[k])}, ${count(run.counts[k], 'cluster')}, ${run.crossValidated ? 'cross-validated error' : 'held-out error'} ${known(error) ? show(error) : 'not known'}`);
  $('#now-alpha').textContent = show(run.alphas[k]);
  $('#now-clusters').textContent = run.counts[k].toLocaleString('en');
  $('#now-error').textContent = show(error);
  $('#now-error').title = `${run.crossValidated ? 'Cross-validated ' : run.byRows ? 'Mean over all held-out rows: ' : 'Mean over the nodes: '}${run.metric}${se}`;
  $('#now-gap').textContent = gapText(run.gaps[k]);
  [...$('#jumps').children].forEach((button) => button.setAttribute('aria-pressed', String(Number(button.dataset.k) === k)));
}
painters.push((changes) => { if (changes.has('k') || changes.has('size')) paintNumbers(); });

function paintAll() { painters.forEach((paint) => paint(new Set(['size']))); }

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') { change({ selected: -1, hover: -1 }); hideTip(); }
});
let width = 0;
new ResizeObserver(() => {
  if (printing || $('#pictures').clientWidth === width) return;
  width = $('#pictures').clientWidth;
  paintAll();
}).observe($('#pictures'));
darkMode.addEventListener('change', paintAll);
addEventListener('beforeprint', () => { printing = true; paintAll(); });
addEventListener('afterprint', () => { printing = false; paintAll(); });

const copy = $('#copy');
copy.hidden = !$('#command').textContent;
copy.parentElement.hidden = copy.hidden;
copy.onclick = async () => {
  const text = $('#command').textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page from a file may not reach the clipboard this way
    const range = document.createRange();
    range.selectNodeContents($('#command'));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    done = document.execCommand('copy');
  }
  copy.textContent = done ? 'Copied' : 'Press Ctrl+C';
  setTimeout(() => { copy.textContent = 'Copy'; }, 1800);
};

$('#control').hidden = false;
$('#pictures').hidden = false;
paintAll();
