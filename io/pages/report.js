// The report's data and its charts; experiments.js is the table of all.
'use strict';
const report = (() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  document.documentElement.classList.add('scripted');

  function bytes(text) {
    const raw = atob(text), made = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; ++i) made[i] = raw.charCodeAt(i);
    return made.buffer;
  }

  // Columns by name, each with at(row): a number (NaN where there is none) or text.
  const columns = new Map();
  for (const column of data.columns) {
    if (column.codes !== undefined) {
      const codes = column.values.length <= 256 ? new Uint8Array(bytes(column.codes)) : new Uint16Array(bytes(column.codes));
      const values = column.text ? column.values : column.values.map(value => value === null ? NaN : value);
      column.at = row => values[codes[row]];
    } else if (column.singles !== undefined) {
      const singles = new Float32Array(bytes(column.singles));
      column.at = row => singles[row];
    } else {
      column.at = row => column.texts[row];
    }
    delete column.codes;
    delete column.singles;
    columns.set(column.name, column);
  }
  const order = new Uint32Array(bytes(data.order));

  const layout = (row, axes = data.axes) => axes.map(axis => `${axis.short}=${columns.get(axis.name).at(row)}`).join(' ');
  // Ids are there to be copied.
  const show = (column, row) => column.text || column.name === 'id' ? column.at(row) : page.figure(column.at(row), column.unit, column.share);
  const number = name => row => columns.has(name) ? columns.get(name).at(row) : NaN;
  const canvas = id => document.getElementById(id);
  const tall = (id, rows) => { canvas(id).parentElement.style.height = `${6 + 1.5 * rows}rem`; };
  // Of long text what is in the middle goes: layouts differ at their ends too.
  const brief = text => text.length > 60 ? `${text.slice(0, 37)}…${text.slice(-22)}` : text;

  // Words over as many lines as they need, of at most so many characters where a word is not longer.
  const wrapped = (text, most = 48) => text.split(' ').reduce((lines, word) => {
    const last = lines.length - 1;
    if (last >= 0 && lines[last].length + 1 + word.length <= most) lines[last] += ` ${word}`; else lines.push(word);
    return lines;
  }, []).map(brief);

  function drawBreakdown() {
    const rows = data.top, step = number('step_time_s');
    if (!canvas('breakdown') || !rows.some(row => step(row) > 0)) return;
    // What all have in common would only push aside what they differ in.
    const apart = data.axes.filter(axis => new Set(rows.map(columns.get(axis.name).at)).size > 1);
    const narrow = innerWidth < 700, longest = Math.max(...rows.map(step).filter(value => value > 0));
    const labels = rows.map((row, i) => narrow ? [`#${i + 1}`] : wrapped(`#${i + 1}  ${layout(row, apart)}`));
    tall('breakdown', rows.length * Math.max(1, 0.75 * Math.max(...labels.map(lines => lines.length))));
    page.stackedBars(canvas('breakdown'), {
      labels,
      parts: data.parts.map((name, i) => ({name: name.slice(0, -2), values: rows.map(number(name)), colour: data.colours[i]}))
        .filter(part => part.values.some(value => value > 0)),
      xTitle: 'step time', tick: value => page.si(value, 's'), xTick: page.ticks('s', longest)});
  }

  function drawFronts(onpick) {
    const speed = number('tokens_per_s_per_gpu');
    for (const front of data.fronts) {
      const column = columns.get(front.cost), points = [], [scale, unit] = page.scaleOf(column.unit, column.share);
      for (let row = 0; row < data.rows; ++row)
        if (columns.get('status').at(row) === 'ran' && speed(row) > 0) points.push({x: scale * column.at(row), y: speed(row), row});
      const largest = of => points.reduce((most, point) => Math.max(most, point[of]), 0);
      const named = point => ({...point, get label() { return `${columns.get('id').at(point.row)}: ${layout(point.row)}`; }});
      page.scatter(canvas(`pareto-${front.cost}`), {
        cloud: page.thinned(points).map(named),
        front: front.rows.map(row => named({x: scale * column.at(row), y: speed(row), row})),
        xTitle: front.title + unit, yTitle: 'tokens/s/GPU',
        xTick: page.ticks('', largest('x')), yTick: page.ticks('', largest('y')),
        onpick: point => onpick(point.row)});
    }
  }

  function drawEffects() {
    const by = columns.get(data.by), [scale, unit] = page.scaleOf(by.unit, by.share);
    const tick = value => page.figure(value / scale, by.unit, by.share);
    for (const effect of data.effects) {
      const values = effect.values.filter(value => value.best !== null).slice(0, 12).map(value => ({value: value.value,
        lower: scale * value.lower, median: scale * value.median, upper: scale * value.upper, best: scale * value.best}));
      const id = `axis-${effect.axis}`;
      tall(id, values.length);
      const all = values.flatMap(value => [value.lower, value.best, value.upper]);
      const least = Math.min(...all), most = Math.max(...all), margin = 0.05 * (most - least || most);
      const points = (name, style) => ({type: 'scatter', label: name, pointRadius: 5, pointHoverRadius: 7, pointStyle: style,
        data: values.map(value => ({x: value[name], y: brief(value.value)}))});
      page.draw(canvas(id), () => ({
        type: 'bar',
        data: {labels: values.map(value => brief(value.value)), datasets: [
          {...points('best', 'rectRot'), backgroundColor: page.colour('bad'), borderColor: page.colour('bad')},
          {...points('median', 'circle'), backgroundColor: page.colour('ink'), borderColor: page.colour('ink')},
          {label: 'middle half', data: values.map(value => [value.lower, value.upper]), barPercentage: 0.6,
            minBarLength: 2, backgroundColor: `${page.colour('accent')}90`}]},
        options: {indexAxis: 'y',
          scales: {x: {min: least - margin, max: most + margin, title: {display: true, text: by.name + unit},
            ticks: {callback: page.ticks(by.unit === 's' ? 's' : '', most)}}, y: {ticks: {autoSkip: false}}},
          plugins: {tooltip: {callbacks: {label: item => Array.isArray(item.raw) ?
            `middle half: ${tick(item.raw[0])} … ${tick(item.raw[1])}` : `${item.dataset.label}: ${tick(item.raw.x)}`}}}}}));
    }
  }

  function drawAccuracy() {
    if (!canvas('accuracy')) return;
    const families = data.accuracy;
    tall('accuracy', families.length);
    const percent = value => `${(100 * value).toFixed(1)} %`;
    page.draw(canvas('accuracy'), () => ({
      type: 'bar',
      data: {labels: families.map(family => brief(family.family)), datasets: [
        {type: 'scatter', label: 'steps', pointRadius: 3, backgroundColor: page.colour('ink'),
          data: families.flatMap(family => family.steps.map(x => ({x, y: brief(family.family)})))},
        {label: 'from … to', backgroundColor: `${page.colour('accent')}60`, barPercentage: 0.5, minBarLength: 2,
          data: families.map(family => [family.steps[0], family.steps[family.steps.length - 1]])}]},
      options: {indexAxis: 'y',
        scales: {x: {title: {display: true, text: 'measured over predicted step time, less 1'}, ticks: {callback: percent}},
          y: {ticks: {autoSkip: false}}},
        plugins: {tooltip: {callbacks: {label: item => Array.isArray(item.raw) ?
          `${percent(item.raw[0])} … ${percent(item.raw[1])}` : percent(item.raw.x)}}}}}));
  }

  function drawProof() {
    if (!canvas('proof-gap') || !data.proof) return;
    const {best, known, open} = data.proof, by = columns.get(data.proof.by), [scale, unit] = page.scaleOf(by.unit, by.share);
    const points = values => values.map((value, x) => ({x, y: value === null ? NaN : scale * value}));
    const largest = Math.max(...[...known, ...open].filter(value => value !== null).map(value => Math.abs(scale * value)));
    const tick = value => page.figure(value / scale, by.unit, by.share);
    const curve = (label, values, colour) => ({label, data: points(values), stepped: true, showLine: true, pointRadius: 0,
      pointHitRadius: 6, borderWidth: 1.5, borderColor: page.colour(colour), backgroundColor: page.colour(colour)});
    page.draw(canvas('proof-gap'), () => ({
      type: 'scatter',
      data: {datasets: [curve(`the last of the best ${best} known`, known, 'bad'),
        curve('the best bound of all others', open, 'accent')]},
      options: {
        scales: {x: {title: {display: true, text: 'experiments simulated, the best bound first'}, ticks: {precision: 0}},
          y: {title: {display: true, text: by.name + unit}, ticks: {callback: page.ticks(by.unit === 's' ? 's' : '', largest)}}},
        plugins: {tooltip: {callbacks: {label: item => `${item.dataset.label} after ${item.raw.x}: ${tick(item.raw.y)}`}}}}}));
  }

  return {data, columns, order, layout, show, drawBreakdown, drawFronts, drawEffects, drawAccuracy, drawProof};
})();
