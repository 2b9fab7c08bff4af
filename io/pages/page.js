// What every page shares: figures as people read them, and charts in the page's own colours. Text that came with the
// data is only ever put into the page as text.
'use strict';
const page = (() => {
  const kDark = matchMedia('(prefers-color-scheme: dark)');
  const drawn = [];  // charts and how to make them again

  // Four digits and a prefix: 1.234 m, 12.34 k.
  function si(value, unit = '') {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    const prefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'u'], [1e-9, 'n'],
      [1e-12, 'p']];
    const size = Math.abs(value);
    const [scale, name] = size === 0 ? [1, ''] :
      prefixes.find(([least]) => size >= least * 0.99995) || prefixes[prefixes.length - 1];
    const scaled = value / scale, digits = Math.abs(scaled) * 1.00005;
    const text = scaled.toFixed(digits < 10 ? 3 : digits < 100 ? 2 : digits < 1000 ? 1 : 0);
    return name + unit ? `${text} ${name}${unit}` : text;
  }

  // As the unit wants it: memory in GiB, shares in per cent, whole numbers whole.
  function figure(value, unit = '', share = false) {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    if (unit === 'bytes') return `${(value / 2 ** 30).toFixed(1)} GiB`;
    if (share) return `${(100 * value).toFixed(1)} %`;
    if (unit === 's' || unit === 'J/token') return si(value, unit);
    if (unit === 'USD') return `${Number(value.toPrecision(3))} USD`;
    if (Number.isInteger(value)) return value.toLocaleString('en-US');
    return Math.abs(value) >= 1000 ? si(value) : String(Number(value.toPrecision(4)));
  }

  // What a column's figures are multiplied with for an axis with round numbers, and what is then said behind its title.
  const scaleOf = (unit, share) => unit === 'bytes' ? [2 ** -30, ', GiB'] : share ? [100, ', %'] :
    [1, unit === 'J/token' || unit === 'USD' ? `, ${unit}` : ''];

  // Figures of an axis, all with the prefix of the largest: 0.5 s beside 2 s.
  function ticks(unit, largest) {
    if (unit !== 's' && largest < 1 && largest >= 1e-3) return value => String(Number(value.toPrecision(4)));
    const parts = (unit === 's' ? si(largest, 's') : si(largest)).split(' ');
    const name = parts[1] || '', scale = name && name !== 's' ? {T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, u: 1e-6, n: 1e-9,
      p: 1e-12}[name[0]] : 1;
    return value => `${Number((value / scale).toPrecision(4))}${name && ` ${name}`}`;
  }

  // An element with text and children; attributes by name.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    for (const child of children) made.append(child);
    return made;
  }

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function options(more) {
    Chart.defaults.color = colour('ink');
    Chart.defaults.borderColor = colour('line');
    Chart.defaults.font.family = 'system-ui, sans-serif';
    return {animation: false, responsive: true, maintainAspectRatio: false, ...more};
  }

  // Draws what `make()` describes on a canvas, and again whenever the reader's system turns dark or light.
  function draw(canvas, make) {
    const entry = {canvas, make, chart: null};
    const again = () => {
      if (entry.chart) entry.chart.destroy();
      const made = make();
      entry.chart = new Chart(canvas, {...made, options: options(made.options)});
    };
    again();
    entry.again = again;
    drawn.push(entry);
    return entry;
  }
  const redraw = () => drawn.forEach(entry => entry.again());
  kDark.addEventListener('change', redraw);
  addEventListener('beforeprint', () => drawn.forEach(entry => entry.chart.resize()));

  // One point of all that would be drawn on the same spot: a hundred thousand look as they would, and cost a tenth.
  function thinned(points, columns = 400, rows = 300) {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const {x, y} of points) {
      left = Math.min(left, x); right = Math.max(right, x); low = Math.min(low, y); high = Math.max(high, y);
    }
    const taken = new Set();
    return points.filter(({x, y}) => {
      const cell = Math.floor((x - left) / (right - left || 1) * columns) * (rows + 1) +
        Math.floor((y - low) / (high - low || 1) * rows);
      return !taken.has(cell) && taken.add(cell);
    });
  }

  // What ran as a cloud and what nothing else beats as a line. Points are {x, y, label}; `onpick` is told of a point.
  function scatter(canvas, {cloud, front, xTitle, yTitle, xTick = figure, yTick = figure, onpick = null}) {
    return draw(canvas, () => ({
      type: 'scatter',
      data: {datasets: [
        {label: 'Pareto front', data: front, showLine: true, borderColor: colour('bad'), borderWidth: 1.5,
          backgroundColor: colour('bad'), pointRadius: 4, pointHoverRadius: 6, order: 0},
        {label: 'other', data: thinned(cloud), borderColor: 'transparent', backgroundColor: `${colour('accent')}90`,
          pointRadius: 2, pointHoverRadius: 4, order: 1}]},
      options: {
        parsing: false, normalized: true,
        onClick: (event, found) => {
          if (onpick && found.length) onpick(found[0].datasetIndex === 0 ? front[found[0].index] :
            event.chart.data.datasets[1].data[found[0].index]);
        },
        scales: {
          x: {title: {display: true, text: xTitle}, ticks: {callback: value => xTick(value), maxTicksLimit: 8}},
          y: {title: {display: true, text: yTitle}, ticks: {callback: value => yTick(value)}}},
        plugins: {tooltip: {callbacks: {label: item =>
          [item.raw.label, `${xTitle}: ${xTick(item.raw.x)}`, `${yTitle}: ${yTick(item.raw.y)}`]}}},
      },
    }));
  }

  // Lying bars made of parts: `parts` are {name, values, colour}, a value for each label; a label may be several lines.
  function stackedBars(canvas, {labels, parts, xTitle, tick = figure, xTick = tick}) {
    return draw(canvas, () => ({
      type: 'bar',
      data: {labels, datasets: parts.map(part =>
        ({label: part.name, data: part.values, backgroundColor: part.colour}))},
      options: {
        indexAxis: 'y',
        scales: {x: {stacked: true, title: {display: true, text: xTitle}, ticks: {callback: value => xTick(value)}},
          y: {stacked: true, ticks: {autoSkip: false}}},
        plugins: {tooltip: {callbacks: {title: items => [labels[items[0].dataIndex]].flat(),
          label: item => `${item.dataset.label}: ${tick(item.raw)}`}}},
      },
    }));
  }

  return {si, figure, scaleOf, ticks, element, colour, draw, redraw, scatter, stackedBars, thinned};
})();
