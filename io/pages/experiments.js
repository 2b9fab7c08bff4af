// All experiments: sorted by a click on a title, filtered by what is written under it. Only the rows in view are in the
// page, so a hundred thousand are no more than thirty.
'use strict';
(() => {
  const {data, columns, order, show} = report;
  const kFirst = ['step_time_s', 'tokens_per_s_per_gpu', 'mfu', 'memory_peak_bytes', 'status'];
  const frame = document.getElementById('frame'), grid = document.getElementById('grid');
  const head = grid.tHead, body = grid.tBodies[0];
  const place = new Uint32Array(data.rows);  // of each row in the ranking
  order.forEach((row, i) => { place[row] = i; });

  const wanted = ['id', ...data.axes.map(axis => axis.name), ...kFirst];
  if (!wanted.includes(data.by)) wanted.push(data.by);
  const visible = new Set(wanted.filter(name => columns.has(name)));
  const filters = new Map();   // text by column
  let sorted = {name: null, down: false};  // null: as ranked
  let rows = order, picked = -1;

  // Whether a value fits what was written; null for what is to be a number and is none.
  function test(column, text) {
    if (column.text) {
      const part = text.toLowerCase();
      return row => column.at(row).toLowerCase().includes(part);
    }
    const scale = column.unit === 'bytes' ? 2 ** 30 : column.share ? 0.01 : 1;
    const found = /^\s*(<=|>=|<|>|=)?\s*([-+.\de]+)\s*(?:\.\.\s*([-+.\de]+))?\s*$/i.exec(text.replace(/(\d)\.\./, '$1 ..'));
    const [from, to] = found ? [Number(found[2]), found[3] === undefined ? null : Number(found[3])] : [NaN, null];
    if (Number.isNaN(from) || Number.isNaN(to)) return null;
    const a = from * scale, b = to === null ? null : to * scale;
    if (b !== null) return row => column.at(row) >= a && column.at(row) <= b;
    const near = value => Math.abs(value - a) <= Math.abs(a) * 1e-6;
    return {'<': row => column.at(row) < a, '>': row => column.at(row) > a, '<=': row => column.at(row) <= a,
      '>=': row => column.at(row) >= a}[found[1]] || (row => near(column.at(row)));
  }

  function choose() {
    const tests = [];
    for (const [name, text] of filters) {
      const made = text.trim() ? test(columns.get(name), text.trim()) : () => true;
      const input = head.querySelector(`input[data-column="${CSS.escape(name)}"]`);
      if (input) input.setAttribute('aria-invalid', made === null);
      if (input) input.style.borderColor = made === null ? page.colour('bad') : '';
      if (made) tests.push(made);
    }
    rows = tests.length ? order.filter(row => tests.every(fits => fits(row))) : order.slice();
    if (sorted.name !== null) {
      const column = columns.get(sorted.name), sign = sorted.down ? -1 : 1;
      const compare = column.text ? (a, b) => sign * (column.at(a) < column.at(b) ? -1 : column.at(a) > column.at(b) ? 1 : 0)
        : (a, b) => sign * (column.at(a) - column.at(b));
      const none = row => !column.text && Number.isNaN(column.at(row));
      rows.sort((a, b) => none(a) - none(b) || (none(a) ? 0 : compare(a, b)) || place[a] - place[b]);
    }
    document.getElementById('shown').textContent = `${rows.length.toLocaleString('en-US')} of ` +
      `${data.rows.toLocaleString('en-US')} experiments, ${sorted.name === null ? `as ranked by ${data.by}` :
        `by ${sorted.name}, ${sorted.down ? 'largest' : 'smallest'} first`}`;
    frame.scrollTop = 0;
    fill();
  }

  const title = name => (data.axes.find(axis => axis.name === name) || {short: name}).short;

  function makeHead() {
    const titles = page.element('tr'), inputs = page.element('tr');
    for (const name of visible) {
      const column = columns.get(name), down = sorted.name === name && sorted.down;
      const button = page.element('button', {title: `${name}${column.unit ? `, ${column.unit}` : ''}: ${column.description}`},
        title(name) + (sorted.name === name ? (down ? ' ▾' : ' ▴') : ''));
      button.addEventListener('click', () => {
        sorted = sorted.name !== name ? {name, down: false} : sorted.down ? {name: null, down: false} : {name, down: true};
        makeHead();
        choose();
      });
      titles.append(page.element('th', {'data-column': name, class: column.text ? '' : 'right',
        'aria-sort': sorted.name === name ? (down ? 'descending' : 'ascending') : 'none'}, button));
      const input = page.element('input', {'data-column': name, 'aria-label': `filter ${name}`, size: 4,
        placeholder: column.text ? 'text' : column.unit === 'bytes' ? 'GiB' : column.share ? '%' : ''});
      input.value = filters.get(name) || '';
      input.addEventListener('input', () => { filters.set(name, input.value); choose(); });
      inputs.append(page.element('th', {}, input));
    }
    head.replaceChildren(titles, inputs);
  }

  // The rows in view, between two rows as high as all those above and below them.
  function fill() {
    const height = 1.7 * parseFloat(getComputedStyle(document.documentElement).fontSize) + 1;
    const first = Math.max(0, Math.floor(frame.scrollTop / height) - 5);
    const last = Math.min(rows.length, first + Math.ceil(frame.clientHeight / height) + 12);
    const gap = count => {
      const cell = page.element('td', {colspan: visible.size});
      cell.style.height = `${count * height}px`;
      return page.element('tr', {'aria-hidden': 'true'}, cell);
    };
    const made = first > 0 ? [gap(first)] : [];
    for (let i = first; i < last; ++i) {
      const row = page.element('tr', rows[i] === picked ? {class: 'picked'} : {});
      for (const name of visible) {
        const column = columns.get(name), text = String(show(column, rows[i]));
        row.append(page.element('td', column.text ? {title: text} : {class: 'right'}, text));
      }
      made.push(row);
    }
    if (last < rows.length) made.push(gap(rows.length - last));
    body.replaceChildren(...made);
  }

  function makeChoice() {
    const box = document.getElementById('columns');
    for (const [name, column] of columns) {
      const tick = page.element('input', {type: 'checkbox', 'data-choice': name});
      tick.checked = visible.has(name);
      tick.addEventListener('change', () => {
        if (tick.checked) visible.add(name); else visible.delete(name);
        makeHead();
        fill();
      });
      box.append(page.element('label', {title: column.description}, tick, ` ${name}`));
    }
  }

  function showAll() {
    filters.clear();
    sorted = {name: null, down: false};
    picked = -1;
    makeHead();
    choose();
  }

  // To the row of an experiment, wherever it is.
  function pick(row) {
    showAll();
    picked = row;
    document.getElementById('all').scrollIntoView();
    frame.scrollTop = place[row] * (1.7 * parseFloat(getComputedStyle(document.documentElement).fontSize) + 1);
    fill();
  }

  document.getElementById('everything').addEventListener('click', showAll);
  frame.addEventListener('scroll', fill, {passive: true});
  addEventListener('resize', fill);
  makeChoice();
  showAll();
  report.drawBreakdown();
  report.drawFronts(pick);
  report.drawEffects();
  report.drawAccuracy();
  report.drawProof();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
