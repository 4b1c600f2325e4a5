'use strict';
// Draws what Chart.java describes. Texts of result files reach the canvas as text only.
(() => {
  const specs = JSON.parse(document.getElementById('charts').textContent);
  const figures = [...document.querySelectorAll('figure[data-chart]')];
  const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star', 'rectRounded', 'cross'];
  const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [5, 5], [1, 4], [12, 4], [3, 6]];
  const slots = {direct: 0, cufile: 1, pinned: 2, mmap: 3, auto: 4, ink: 0};
  let drawn = [];

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const slot = color => slots[color] ?? Number(color) % 8;
  const ink = color => css('--c-' + (color in slots ? color : slot(color)));

  function short(value) {
    return String(Number(value.toPrecision(3)));
  }

  function scaled(value, steps) {
    for (const [size, name] of steps) {
      if (value >= size) return short(value / (size || 1)) + name;
    }
    return short(value);
  }

  function number(value, unit) {
    if (unit === 'ns') {
      return scaled(value, [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs'], [0, ' ns']]);
    }
    return scaled(value, [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']]);
  }

  const axisUnit = unit => (unit === 'ns' ? '' : unit);
  const withUnit = (value, unit) => number(value, unit) + (unit === 'ns' ? '' : ' ' + unit);
  const cut = text => (text.length > 30 ? text.slice(0, 29) + '…' : text);

  function stripes(color) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const pen = tile.getContext('2d');
    pen.strokeStyle = color;
    pen.lineWidth = 2;
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift, 8);
      pen.lineTo(shift + 8, 0);
    }
    pen.stroke();
    return pen.createPattern(tile, 'repeat');
  }

  // What is drawn on top of Chart.js: whiskers (below points, above bars), limits, peers, values.
  const marks = {
    id: 'marks',
    beforeDatasetsDraw(chart) {
      if (!isBars(chart.options.plugins.marks.spec)) each(chart, whisker);
    },
    afterDatasetsDraw(chart) {
      const spec = chart.options.plugins.marks.spec;
      if (isBars(spec)) each(chart, whisker);
      if (spec.kind === 'LINE') return;
      each(chart, compare);
      const taken = [];
      each(chart, context => value(context, taken));
    },
  };

  const isBars = spec => spec.kind === 'BAR' || spec.kind === 'ROWS';

  function each(chart, paint) {
    const spec = chart.options.plugins.marks.spec;
    const rows = chart.options.indexAxis === 'y';
    const axis = chart.scales[rows ? 'x' : 'y'];
    const pen = chart.ctx;
    pen.save();
    chart.data.datasets.forEach((dataset, index) => {
      chart.getDatasetMeta(index).data.forEach((element, i) => {
        const point = spec.series[index].points[i];
        if (point.value === undefined || element.skip) return;
        const half = isBars(spec) ? (rows ? element.height : element.width) / 2 : 8;
        const at = rows ? element.y : element.x;
        paint({chart, spec, pen, rows, point, element, at, half, place: v => axis.getPixelForValue(v)});
      });
    });
    pen.restore();
  }

  function segment({pen, rows}, a, b, c, d) {
    pen.beginPath();
    if (rows) { pen.moveTo(b, a); pen.lineTo(d, c); } else { pen.moveTo(a, b); pen.lineTo(c, d); }
    pen.stroke();
  }

  function whisker(context) {
    const {spec, pen, point, at, half, place} = context;
    if (point.max <= point.min || (spec.log && point.min <= 0)) return;
    pen.strokeStyle = css('--ink');
    pen.lineWidth = 1.2;
    const cap = Math.min(half * 0.5, 5);
    segment(context, at, place(point.min), at, place(point.max));
    segment(context, at - cap, place(point.min), at + cap, place(point.min));
    segment(context, at - cap, place(point.max), at + cap, place(point.max));
  }

  function compare(context) {
    const {pen, rows, point, at, half, place} = context;
    pen.strokeStyle = css('--ink');
    if (point.limit > 0) {
      pen.lineWidth = 3;
      segment(context, at - half, place(point.limit), at + half, place(point.limit));
    }
    if (point.peer > 0) {
      pen.fillStyle = css('--card');
      pen.lineWidth = 1.5;
      const x = rows ? place(point.peer) : at;
      const y = rows ? at : place(point.peer);
      pen.beginPath();
      pen.moveTo(x, y - 5); pen.lineTo(x + 5, y); pen.lineTo(x, y + 5); pen.lineTo(x - 5, y);
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
  }

  // Beside its value, clear of the marks and of other values; left out where there is no room.
  function value(context, taken) {
    const {chart, spec, pen, rows, point, element, at, place} = context;
    const text = number(point.value, spec.unit);
    pen.font = '600 11px system-ui, sans-serif';
    pen.fillStyle = css('--ink');
    const width = pen.measureText(text).width;
    const others = [point.limit, point.peer].filter(v => v > 0).map(place);
    if (rows) {
      let x = place(point.max) + 7;
      others.sort((a, b) => a - b).forEach(o => { if (o > x - 10 && o < x + width + 8) x = o + 9; });
      pen.textAlign = 'left';
      pen.textBaseline = 'middle';
      if (element.height >= 9) pen.fillText(text, x, at);
      return;
    }
    const bar = spec.kind === 'BAR';
    const box = bar
      ? {left: at - width / 2, right: at + width / 2, y: place(point.max) - 10}
      : {left: at + 10, right: at + 10 + width, y: element.y};
    if (bar) {
      others.sort((a, b) => b - a).forEach(o => { if (Math.abs(o - box.y) < 12) box.y = o - 13; });
    }
    const hits = b => box.left < b.right + 3 && box.right > b.left - 3 && Math.abs(box.y - b.y) < 12;
    const room = chart.chartArea.width / spec.places.length - 22;
    if ((!bar && width > room) || box.right > chart.width || taken.some(hits)) return;
    taken.push(box);
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillText(text, box.left, box.y);
  }

  function dataset(spec, series, numeric) {
    const style = slot(series.color);
    const single = ink(series.color);
    const colors = spec.places.map(place => (place.color ? ink(place.color) : single));
    const data = series.points.map((point, i) => {
      const value = point.value === undefined || (spec.log && point.value <= 0) ? null : point.value;
      return numeric ? {x: spec.places[i].value, y: value} : value;
    });
    if (spec.kind === 'LINE') {
      return {
        type: 'line', label: series.name, data, spanGaps: true, clip: false, borderColor: single,
        backgroundColor: single, borderWidth: 2.2, borderDash: dashes[style], pointStyle: shapes[style],
        pointRadius: 4.5, pointHoverRadius: 7, pointBorderWidth: 2,
      };
    }
    if (spec.kind === 'DOTS') {
      return {
        type: 'line', label: series.name, data, showLine: false, clip: false, pointBorderColor: colors,
        pointBackgroundColor: colors, pointBorderWidth: 2.5, pointRadius: 6, pointHoverRadius: 8,
        pointStyle: shapes[style],
      };
    }
    return {
      type: 'bar', label: series.name, data, borderColor: colors, borderWidth: 1.5, borderRadius: 2,
      backgroundColor: (series.hatched && spec.series.length > 1) ? colors.map(stripes) : colors,
      maxBarThickness: spec.kind === 'ROWS' ? 16 : 46, categoryPercentage: 0.78, barPercentage: 0.92,
    };
  }

  // A list before the plot: it wraps on a phone, and a screen reader reads it.
  function legend(spec) {
    const list = document.createElement('ul');
    list.className = 'legend';
    for (const series of spec.series) {
      const item = document.createElement('li');
      item.append(sample(spec, series), series.name);
      list.append(item);
    }
    return list;
  }

  // A piece of the line with its dashes and its point, a point alone, or the fill of a bar.
  function sample(spec, series) {
    const line = spec.kind === 'LINE';
    const width = line ? 34 : 14;
    const image = document.createElement('canvas');
    image.width = width * 3;
    image.height = 14 * 3;
    image.style.width = width + 'px';
    image.style.height = '14px';
    const pen = image.getContext('2d');
    pen.scale(3, 3);
    const color = ink(series.color);
    pen.strokeStyle = color;
    pen.fillStyle = color;
    if (spec.kind === 'BAR') {
      if (series.hatched) pen.fillStyle = stripes(color);
      pen.fillRect(1, 1, 12, 12);
      pen.strokeRect(1, 1, 12, 12);
      return image;
    }
    if (line) {
      pen.lineWidth = 2.2;
      pen.setLineDash(dashes[slot(series.color)]);
      pen.beginPath();
      pen.moveTo(0, 7);
      pen.lineTo(width, 7);
      pen.stroke();
      pen.setLineDash([]);
    }
    pen.lineWidth = 2;
    const style = {pointStyle: shapes[slot(series.color)], radius: 4, borderWidth: 2};
    Chart.helpers.drawPoint(pen, style, width / 2, 7);
    return image;
  }

  function valueAxis(spec) {
    const points = spec.series.flatMap(s => s.points).filter(p => p.value !== undefined);
    const all = points.flatMap(p => (spec.kind === 'LINE' ? [p.max] : [p.max, p.limit, p.peer])).filter(v => v > 0);
    const low = points.flatMap(p => [p.value, p.min, spec.kind === 'LINE' ? undefined : p.limit]).filter(v => v > 0);
    const axis = {
      type: spec.log ? 'logarithmic' : 'linear',
      title: {display: axisUnit(spec.unit) !== '', text: axisUnit(spec.unit), color: css('--soft')},
      grid: {color: css('--grid')},
      border: {display: false},
      ticks: {color: css('--soft'), maxRotation: 0, callback: value => number(value, spec.unit)},
    };
    if (all.length === 0) return axis;
    const most = Math.max(...all);
    if (spec.log) {
      // Whole decades, and the 2 and 5 between them where there are few.
      const first = Math.floor(Math.log10(Math.min(...low)));
      const last = Math.ceil(Math.log10(most * 1.05));
      axis.min = 10 ** first;
      axis.max = 10 ** last;
      axis.afterBuildTicks = scale => {
        const steps = last - first <= 2 ? [1, 2, 5] : [1];
        const ticks = [];
        for (let e = first; e <= last; e++) {
          steps.forEach(s => { if (s * 10 ** e <= axis.max) ticks.push({value: s * 10 ** e}); });
        }
        scale.ticks = ticks;
      };
    } else {
      axis.beginAtZero = true;
      axis.suggestedMax = most * (spec.kind === 'LINE' ? 1.05 : 1.15);
    }
    return axis;
  }

  function placeAxis(spec, numeric) {
    const axis = {
      title: {display: spec.axis !== '', text: spec.axis, color: css('--soft')},
      grid: {display: false},
      border: {color: css('--line')},
      ticks: {color: css('--ink'), autoSkip: false, maxRotation: 50},
    };
    if (numeric) {
      const values = spec.places.map(place => place.value);
      axis.type = 'logarithmic';
      axis.min = Math.min(...values) / 1.12;
      axis.max = Math.max(...values) * 1.12;
      axis.afterBuildTicks = scale => { scale.ticks = values.map(value => ({value})); };
      axis.ticks.callback = (value, index) => spec.places[index].name;
    } else {
      axis.type = 'category';
      axis.ticks.callback = (value, index) => cut(spec.places[index].name);
    }
    return axis;
  }

  function tooltip(spec) {
    return {
      backgroundColor: css('--ink'), titleColor: css('--paper'), bodyColor: css('--paper'), padding: 10,
      displayColors: false, caretPadding: 8,
      callbacks: {
        title: items => items.map(item => spec.places[item.dataIndex].name)[0],
        label: item => {
          const series = spec.series[item.datasetIndex];
          const point = series.points[item.dataIndex];
          const lines = [series.name + ': ' + withUnit(point.value, spec.unit)];
          if (point.max > point.min) lines.push(number(point.min, spec.unit) + ' – ' + withUnit(point.max, spec.unit));
          if (point.limit > 0) lines.push(short(100 * point.value / point.limit) + ' % of the limit');
          if (point.peer > 0) lines.push(short(point.value / point.peer) + '× the best peer');
          return lines;
        },
      },
    };
  }

  function draw(figure, printing) {
    const spec = specs[Number(figure.dataset.chart)];
    const box = figure.querySelector('.plot');
    const rows = spec.kind === 'ROWS';
    const numeric = spec.places.every(place => place.value > 0);
    if (rows) box.style.height = Math.max(120, 70 + spec.places.length * 27) + 'px';
    const canvas = document.createElement('canvas');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', spec.title + ' in ' + spec.unit + '; the table below has the numbers');
    if (printing) {
      // The style sheet scales it to the column, whatever the screen was.
      canvas.width = rows ? 800 : 400;
      canvas.height = rows ? parseInt(box.style.height, 10) : 260;
    }
    box.replaceChildren(canvas);
    figure.querySelector('.legend')?.remove();
    if (spec.series.length > 1) box.before(legend(spec));
    const value = valueAxis(spec);
    const place = placeAxis(spec, numeric);
    drawn.push(new Chart(canvas, {
      data: {
        labels: numeric ? undefined : spec.places.map(p => p.name),
        datasets: spec.series.map(series => dataset(spec, series, numeric)),
      },
      options: {
        animation: false, responsive: !printing, maintainAspectRatio: false, devicePixelRatio: printing ? 3 : undefined,
        indexAxis: rows ? 'y' : 'x',
        interaction: {mode: 'nearest', intersect: false},
        layout: {padding: {right: rows ? 60 : 12, top: 4}},
        scales: rows ? {x: value, y: place} : {x: {...place, offset: !numeric}, y: value},
        plugins: {legend: {display: false}, tooltip: tooltip(spec), marks: {spec}},
      },
      plugins: [marks],
    }));
  }

  function drawAll(printing) {
    drawn.forEach(chart => chart.destroy());
    drawn = [];
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12;
    figures.forEach(figure => draw(figure, printing));
  }

  // Paper is white, and nothing can be opened on it.
  let closed = [];
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'light';
    closed = [...document.querySelectorAll('details.table:not([open])')];
    closed.forEach(details => { details.open = true; });
    drawAll(true);
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.theme;
    closed.forEach(details => { details.open = false; });
    drawAll(false);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawAll(false));
  drawAll(false);
})();
