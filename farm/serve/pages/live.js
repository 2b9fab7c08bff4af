// The live page: the newest state of a run, as the server streams it. All that came with the data is put in as text.
'use strict';
(() => {
  const {element, figure, si} = page;
  const at = id => document.getElementById(id);
  const kListedRanks = 64;
  const kSilence = 30000;  // ms
  const kOver = ['complete', 'drained', 'interrupted', 'failed'];
  const kApart = {best: '', indistinguishable: 'within model error', distinguishable_intervals_overlap: 'probably slower',
    distinguishable: 'slower', unknown: '–'};
  const cloud = [], front = [];
  let chart = null, source = null, last = null, heard = 0, connected = false;

  function duration(seconds) {
    if (seconds === null || seconds === undefined) return '–';
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60 % 60)} min`;
  }

  const count = value => value.toLocaleString('en-US');
  const cell = (text, right) => element('td', right ? {class: 'right'} : {}, String(text));

  function rows(table, made) {
    table.hidden = made.length === 0;
    table.tBodies[0].replaceChildren(...made);
  }

  function meter(name, share, text, lost) {
    const bar = element('div', lost ? {class: 'lost'} : {});
    bar.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
    return element('div', {class: 'meter'}, element('span', {}, name), element('div', {class: 'track'}, bar),
      element('span', {class: 'quiet'}, text));
  }

  function showState(status) {
    const over = kOver.includes(status.state);
    at('state').textContent = status.state;
    at('state').className = status.state === 'complete' ? 'good' : over && status.state !== 'drained' ? 'wrong' : '';
    at('name').textContent = status.name || 'Manyworlds';
    at('reason').hidden = !status.reason;
    at('reason').textContent = status.reason || '';
    at('go-on').hidden = !over || status.state === 'complete' || !status.resume;
    at('go-on').querySelector('code').textContent = status.resume || '';
    const percent = status.total ? Math.floor(100 * status.done / status.total) : null;
    document.title = `${percent === null ? '' : `${percent} % · `}${status.name || status.state} – Manyworlds`;
  }

  function showProgress(status) {
    const tile = (value, name) => element('div', {class: 'tile'}, element('b', {}, value), element('span', {}, name));
    const tiles = [tile(`${count(status.done)} / ${count(status.total)}`, 'tasks settled'),
      tile(si(status.rate_per_s, '/s'), 'tasks computed'), tile(duration(status.time_left_s), 'left'),
      tile(duration(status.elapsed_s), 'so far'),
      tile(status.sharing === null ? '–' : `${figure(Number(status.sharing.toPrecision(3)))}×`,
        'CPU one by one, over the run’s'),
      tile(count(status.known_before), 'known before')];
    const of = status.experiments;
    if (of) {
      tiles.push(tile(`${count(of.ran)} / ${count(of.total)}`, 'experiments ran'));
      for (const [name, words] of [['out_of_memory', 'do not fit into memory'], ['too_large', 'exceed their limit'],
        ['bounded', 'have lower bounds behind the best'],
        ['failed', 'failed'], ['excluded', 'left out as invalid']])
        if (of[name] > 0) tiles.push(tile(count(of[name]), words));
    }
    at('tiles').replaceChildren(...tiles);
    at('kinds').replaceChildren(...status.kinds.map(kind => meter(kind.name, kind.total ? kind.done / kind.total : 1,
      `${count(kind.done)} / ${count(kind.total)}${kind.failed ? `, ${count(kind.failed)} failed` : ''}`)));
  }

  function showRanking(ranking) {
    const some = ranking && ranking.rows.length > 0;
    if (some) at('ranked').textContent = `The best ${ranking.rows.length} of ${count(ranking.ranked)} that ran, by ` +
      `${ranking.by} (${ranking.descending ? 'largest' : 'least'} first).`;
    rows(at('ranking'), !some ? [] : ranking.rows.map((row, i) => {
      const sure = row.step_time_low_s !== null && row.step_time_low_s !== undefined;
      return element('tr', {}, cell(i + 1, true), cell(row.id, true), element('td', {class: 'wraps'}, row.layout),
        cell(figure(row.step_time_s, 's'), true),
        cell(sure ? `${figure(row.step_time_low_s, 's')} – ${figure(row.step_time_high_s, 's')}` : '–', true),
        cell(si(row.tokens_per_s_per_gpu), true), cell(figure(row.memory_peak_bytes, 'bytes'), true),
        cell(row.largest_loss ? `${row.largest_loss} ${(100 * row.largest_loss_share).toFixed(0)} %` : '–'),
        cell(kApart[row.from_best] ?? '–'));
    }));
  }

  function showPareto(pareto) {
    if (!pareto || pareto.cloud.id.length === 0) return;
    const points = (of, label) => of.id.map((id, i) => ({x: of.memory_peak_bytes[i] / 2 ** 30, y: of.tokens_per_s_per_gpu[i],
      label: label(id, i)})).sort((a, b) => a.x - b.x);
    cloud.splice(0, cloud.length, ...points(pareto.cloud, id => `experiment ${id}`));
    front.splice(0, front.length,
      ...points(pareto.front, (id, i) => `experiment ${id}${pareto.front.layout[i] ? ` ${pareto.front.layout[i]}` : ''}`));
    at('front-size').textContent = `${count(pareto.front_size)} ${pareto.front_size === 1 ? 'layout is' : 'layouts are'} ` +
      'beaten by none in one without losing in the other.';
    at('pareto-box').hidden = false;
    if (chart === null) {
      chart = page.scatter(at('pareto'), {cloud, front, xTitle: 'peak memory, GiB', yTitle: 'tokens/s/GPU',
        xTick: value => figure(value), yTick: value => si(value)});
      return;
    }
    chart.chart.data.datasets[0].data = front;
    chart.chart.data.datasets[1].data = page.thinned(cloud);
    chart.chart.update('none');
  }

  function showLoad(status) {
    const {rank, alive, busy, done, held} = status.load;
    const mean = busy.length ? busy.reduce((sum, one) => sum + one, 0) / busy.length : 0;
    at('ranks').textContent = `${count(status.ranks)} ranks on ${status.host}` +
      (busy.length ? `, busy ${(100 * mean).toFixed(0)} % of the time in the mean` : '') +
      (status.ranks_lost ? `, ${count(status.ranks_lost)} lost` : '');
    const many = rank.length > kListedRanks;
    at('load').className = many ? 'many' : '';
    at('load').replaceChildren(...rank.map((number, i) => {
      const words = `${(100 * busy[i]).toFixed(0)} %, ${count(done[i])} done, ${count(held[i])} held`;
      if (!many) return meter(`rank ${number}${alive[i] ? '' : ' (lost)'}`, busy[i], words, !alive[i]);
      const square = element('div', {title: `rank ${number}: ${words}`, ...(alive[i] ? {} : {class: 'lost'})});
      square.style.opacity = 0.15 + 0.85 * busy[i];
      return square;
    }));
  }

  function showFailures(failures) {
    at('no-failures').hidden = failures.length > 0;
    rows(at('failures'), [...failures].reverse().map(failure => element('tr', {}, cell(failure.task, true),
      cell(failure.kind), cell(failure.experiment, true), cell(failure.class),
      element('td', {class: 'wraps'}, failure.reason))));
  }

  function show(status) {
    last = status;
    showState(status);
    if (status.kinds) showProgress(status);
    showRanking(status.ranking);
    showPareto(status.pareto);
    if (status.load) showLoad(status);
    showFailures(status.failures || []);
  }

  function sayLink() {
    const silent = Date.now() - heard;
    let text = '';
    if (last && last.state === 'complete') text = '';
    else if (!connected) text = 'not connected: trying again until the run is served here';
    else if (last && last.state === 'running' && silent > kSilence) text = `silent for ${duration(silent / 1000)}`;
    at('link').textContent = text;
    document.body.dataset.connected = connected;
  }

  function connect() {
    source = new EventSource('events');
    source.addEventListener('status', event => {
      heard = Date.now();
      connected = true;
      show(JSON.parse(event.data));
      sayLink();
      if (last.state === 'complete') source.close();  // nothing more will come
    });
    source.addEventListener('error', () => {
      connected = false;
      sayLink();
      // A browser gives up where it was refused in words, as while a server has too many watchers.
      if (source.readyState === EventSource.CLOSED && !(last && last.state === 'complete')) setTimeout(connect, 3000);
    });
  }

  // The cookie has taken the token's place: it need not stay where it is seen and copied.
  if (location.search) history.replaceState(null, '', location.pathname);
  setInterval(sayLink, 5000);
  connect();
})();
