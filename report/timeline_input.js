// What the mouse and the keyboard do, and the start of the page.

function listenToMouse(view) {
  const {lanes, stage} = view;
  let drag = null;  // {kind, x, y, from, to}
  const place = (event) => {
    const box = lanes.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  lanes.addEventListener('wheel', (event) => {
    const [x] = place(event);
    // Over the names, and with Shift, the browser scrolls; some browsers then turn the wheel's direction.
    if (x < GUTTER && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) {
      stage.scrollTop += (event.deltaY || event.deltaX) * lines;
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.move(event.deltaX * lines / view.width);
    } else {
      view.zoom(Math.exp(event.deltaY * lines * 0.002), view.timeAt(x));
    }
  }, {passive: false});
  lanes.addEventListener('pointerdown', (event) => {
    const [x, y] = place(event);
    if (event.button > 1 || x < GUTTER) return;
    const moves = event.shiftKey || event.button === 1 || y < SCALE;
    drag = {moves, x, y, from: view.from, to: view.to, scrollTop: stage.scrollTop, isClick: true};
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (!drag) return showTip(view, event, view.eventAt(x, y));
    if (drag.isClick && Math.hypot(x - drag.x, y - drag.y) < 4) return;
    drag.isClick = false;
    showTip(view, event, -1);
    if (drag.moves) {
      const shift = (drag.x - x) * (drag.to - drag.from) / (view.width - GUTTER);
      view.setTimes(drag.from + shift, drag.to + shift);
      stage.scrollTop = drag.scrollTop + drag.y - y;
    } else {
      view.span = [drag.x, Math.min(Math.max(x, GUTTER), view.width)];
      view.changed();
    }
  });
  lanes.addEventListener('pointerup', (event) => {
    const [x, y] = place(event);
    const ended = drag;
    drag = null;
    if (view.span) {
      const [a, b] = view.span.map((one) => view.timeAt(one));
      view.span = null;
      return view.setTimes(Math.min(a, b), Math.max(a, b));
    }
    if (x < GUTTER) return toggleAt(view, y);
    if (ended?.isClick && !ended.moves) {
      view.select(view.eventAt(x, y));
      view.showMatches();
    }
  });
  lanes.addEventListener('pointercancel', () => {
    drag = view.span = null;
    view.changed();
  });
  lanes.addEventListener('pointerleave', (event) => showTip(view, event, -1));
  lanes.addEventListener('dblclick', () => { if (view.selected >= 0) view.fit(view.selected); });
  stage.addEventListener('scroll', () => view.changed());
  listenToOverview(view);
}

function toggleAt(view, y) {
  const {layout} = view, item = y < SCALE ? null : layout.itemAt(y - SCALE + view.top);
  if (!item) return;
  if (item.row) layout.toggle(layout.full, item.track);
  else layout.toggle(layout.folded, item.rank);
  view.changed();
}

/** A press moves the time in view there, and goes on while the mouse moves. */
function listenToOverview(view) {
  const overview = byId('overview');
  let isDown = false;
  const go = (event) => {
    const {first, last} = view.timeline, span = view.to - view.from;
    const share = (event.clientX - overview.getBoundingClientRect().left - GUTTER) / (overview.clientWidth - GUTTER);
    const middle = first + share * (last - first);
    view.setTimes(middle - span / 2, middle + span / 2);
  };
  overview.addEventListener('pointerdown', (event) => {
    isDown = true;
    overview.setPointerCapture(event.pointerId);
    go(event);
  });
  overview.addEventListener('pointermove', (event) => { if (isDown) go(event); });
  overview.addEventListener('pointerup', () => { isDown = false; });
  overview.addEventListener('pointercancel', () => { isDown = false; });
}

function showTip(view, mouse, event) {
  const tip = byId('tip');
  tip.hidden = event < 0;
  if (event < 0) return;
  const {timeline} = view, title = timeline.titleOf(event);
  tip.replaceChildren(element('b', title.name));
  const begin = timeline.begin[event];
  const when = title.moment ? stamp(begin) : durationText(timeline.end[event] - begin);
  tip.append(element('span', when));
  const bytes = timeline.detailOf(event, 'bytes');
  if (bytes !== undefined) tip.append(element('span', countText(bytes, 'byte')));
  tip.style.left = Math.min(mouse.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
  tip.style.top = Math.min(mouse.clientY + 16, innerHeight - tip.offsetHeight - 8) + 'px';
}

function toggleFolds(view) {
  view.layout.toggleAll();
  view.changed();
}

function listenToKeys(view) {
  const scroll = (pixels) => { view.stage.scrollTop += pixels; };
  const actions = {
    w: () => view.zoom(0.7), '+': () => view.zoom(0.7), '=': () => view.zoom(0.7),
    s: () => view.zoom(1 / 0.7), '-': () => view.zoom(1 / 0.7), '_': () => view.zoom(1 / 0.7),
    a: () => view.move(-0.15), arrowleft: () => view.move(-0.15),
    d: () => view.move(0.15), arrowright: () => view.move(0.15),
    arrowup: () => scroll(-60), arrowdown: () => scroll(60),
    pageup: () => scroll(-view.stage.clientHeight * 0.8), pagedown: () => scroll(view.stage.clientHeight * 0.8),
    '0': () => view.showAll(), home: () => view.showAll(),
    '[': () => view.step(-1), ']': () => view.step(1),
    f: () => { if (view.selected >= 0) view.fit(view.selected); },
    n: () => view.nextMatch(1),
    x: () => toggleFolds(view),
    '/': () => byId('search').focus(),
    '?': () => byId('keys').showModal(),
    escape: () => view.select(-1),
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || byId('keys').open) return;
    if (event.target === byId('search')) {
      if (event.key === 'Enter') view.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') view.lanes.focus();
      return;
    }
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  });
  byId('search').addEventListener('input', () => view.find(byId('search').value));
  const clicks = {
    previous: () => view.nextMatch(-1), next: () => view.nextMatch(1),
    'zoom-out': () => view.zoom(2), 'zoom-in': () => view.zoom(0.5), 'zoom-all': () => view.showAll(),
    fold: () => toggleFolds(view), close: () => view.select(-1), help: () => byId('keys').showModal(),
    theme: () => setTheme({light: 'dark', dark: 'auto'}[document.documentElement.dataset.chosen] ?? 'light'),
  };
  for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener('click', action);
}

/** What is said of the timeline as a whole, in the head of the page. */
function describe(timeline) {
  const hosts = new Set(timeline.ranks.map((rank) => /\(([^,)]+)/.exec(rank.name)?.[1]));
  const parts = [`${countText(timeline.ranks.length, 'rank')} on ${countText(hosts.size, 'host')}`,
                 countText(timeline.count, 'event')];
  byId('about').textContent = parts.join(' · ');
  const ofRanks = timeline.ranks.filter((rank) => rank.note).map((rank) => `${rank.name}: ${rank.note}`);
  const notes = [...timeline.notes, ...ofRanks];
  if (notes.length === 0) return;
  const mark = element('span', ` · ${countText(notes.length, 'note')}`, 'alarm');
  mark.title = notes.slice(0, 20).join('\n');
  byId('about').append(mark);
}

async function start() {
  setTheme('auto');
  try {
    if (typeof DecompressionStream === 'undefined')
      throw new Error('this browser is too old; take Chrome 93, Firefox 113, Safari 16.4, or a later one');
    const text = byId('data').textContent;
    byId('data').remove();
    const timeline = new Timeline(await unpack(text));
    describe(timeline);
    window.view = new View(timeline);
    drawLegend(view);
    listenToMouse(view);
    listenToKeys(view);
    addEventListener('hashchange', () => view.readAddress());
    const isDark = matchMedia('(prefers-color-scheme: dark)');
    isDark.addEventListener('change', () => setTheme(document.documentElement.dataset.chosen));
    new ResizeObserver(() => view.changed()).observe(view.stage);
    view.readAddress();
    view.draw();
  } catch (error) {
    report(error.message);
    document.documentElement.dataset.state = 'failed';
    document.body.append(element('p', 'The timeline cannot be shown: ' + error.message, 'error'));
  }
}

start();
