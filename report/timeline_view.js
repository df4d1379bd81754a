// The state of the page, and what the mouse, the keyboard and the address do with it. The address may have, after "#",
// from=SECONDS&to=SECONDS&search=NAME&match=NUMBER&theme=light|dark. The element <html> has as data what is shown, for
// programs that read the page: state, visible (events of all ranks at this time), matches, problems.

const SHORTEST = 20;  // ns in view

const byId = (id) => document.getElementById(id);

// Before anything else, so that none is missed.
const problems = [];
function report(problem) {
  problems.push(problem);
  document.documentElement.dataset.problems = problems.join('; ');
}
addEventListener('error', (event) => report(event.message));
addEventListener('unhandledrejection', (event) => report(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => report('policy: ' + event.violatedDirective));

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

class View {
  constructor(timeline) {
    this.timeline = timeline;
    this.layout = new Layout(timeline);
    this.from = timeline.first;
    this.to = timeline.last;
    this.top = 0;
    this.selected = -1;
    this.peers = [];     // the same call on other ranks
    this.search = null;
    this.span = null;    // pixels, while the mouse selects
    this.width = 1;
    this.stage = byId('stage');
    this.lanes = byId('lanes');
    this.painter = new Painter(this.lanes, this);
    this.overview = new Painter(byId('overview'), this);
    this.isDue = false;
    this.showAll();
  }

  x(time) { return GUTTER + (time - this.from) / (this.to - this.from) * (this.width - GUTTER); }
  timeAt(x) { return this.from + (x - GUTTER) / (this.width - GUTTER) * (this.to - this.from); }

  /** Draws soon, once for all changes until then. */
  changed() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.isDue = false;
    const height = this.stage.clientHeight;
    this.width = this.stage.clientWidth;
    this.top = this.stage.scrollTop;
    this.lanes.style.height = height + 'px';
    byId('spacer').style.height = Math.max(0, this.layout.height + SCALE - height) + 'px';
    this.painter.drawLanes(this.width, height);
    this.overview.drawOverview(byId('overview').clientWidth, byId('overview').clientHeight);
    const visible = this.timeline.countBetween(this.from, this.to);
    const text = `${countText(visible, 'event')} at this time`;
    byId('status').textContent = text;
    this.lanes.setAttribute('aria-label', `Timeline from ${stamp(this.from)} to ${stamp(this.to)}: ${text}`);
    const data = document.documentElement.dataset;
    data.visible = visible;
    data.state = 'drawn';
    data.milliseconds ??= Math.round(performance.now());
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => this.writeAddress(), 400);
  }

  setTimes(from, to) {
    const {first, last} = this.timeline, margin = (last - first) * 0.02;
    const span = Math.min(Math.max(to - from, SHORTEST), (last - first) + 2 * margin);
    from = from + (to - from - span) / 2;
    this.from = Math.min(Math.max(from, first - margin), last + margin - span);
    this.to = this.from + span;
    this.changed();
  }
  showAll() {
    const {first, last} = this.timeline, margin = (last - first) * 0.01;
    this.setTimes(first - margin, last + margin);
  }
  zoom(factor, time = (this.from + this.to) / 2) {
    this.setTimes(time - (time - this.from) * factor, time + (this.to - time) * factor);
  }
  move(share) {
    const shift = (this.to - this.from) * share;
    this.setTimes(this.from + shift, this.to + shift);
  }

  eventAt(x, y) {
    const {layout, timeline} = this;
    if (x < GUTTER || y < SCALE) return -1;
    const item = layout.itemAt(y - SCALE + this.top);
    if (!item || (!item.row && !item.isFolded)) return -1;
    const rows = item.row ? [item.row] : layout.rowsOfHead(item.rank).reverse();
    const time = this.timeAt(x), reach = (this.to - this.from) / (this.width - GUTTER) * 4;
    for (const row of rows) {
      const [first, last] = timeline.between(row, time - reach, time + reach);
      let best = -1, distance = Infinity;
      for (let i = first; i < Math.min(last, first + 2000); ++i) {
        const away = Math.max(timeline.begin[i] - time, time - timeline.end[i], 0);
        if (away <= distance) { best = i; distance = away; }
      }
      if (best >= 0) return best;
    }
    return -1;
  }

  select(event) {
    this.selected = event;
    this.peers = event < 0 ? [] : this.timeline.sameCall(event);
    showDetails(this, event);
    this.changed();
  }

  /** Selects the event, and moves so far that it is seen. */
  reveal(event) {
    const {timeline, layout} = this;
    const row = timeline.rowOf(event), rank = row.track.rank;
    if (layout.folded.has(rank) && !layout.rowsOfHead(rank).includes(row)) layout.toggle(layout.folded, rank);
    this.select(event);
    const begin = timeline.begin[event], end = timeline.end[event], length = end - begin, span = this.to - this.from;
    const isSmall = length < span / 400 || length > span;
    if (begin < this.from || end > this.to || (isSmall && !timeline.isMoment(event))) {
      const wanted = isSmall && length > 0 ? Math.max(length * 12, SHORTEST) : span;
      const middle = (begin + end) / 2;
      this.setTimes(middle - wanted / 2, middle + wanted / 2);
    }
    const place = layout.topOfRow.get(row), room = this.stage.clientHeight - SCALE;
    byId('spacer').style.height = Math.max(0, layout.height - room) + 'px';
    if (place.top < this.stage.scrollTop || place.top + place.height > this.stage.scrollTop + room)
      this.stage.scrollTop = place.top - room / 2;
  }

  fit(event) {
    const length = Math.max(this.timeline.end[event] - this.timeline.begin[event], SHORTEST);
    this.setTimes(this.timeline.begin[event] - length * 0.1, this.timeline.end[event] + length * 0.1);
  }

  find(text) {
    this.search = text === '' ? null : new Search(this.timeline, text);
    this.showMatches();
    this.changed();
  }
  showMatches() {
    const {search, selected} = this;
    const isMatch = search && selected >= 0 && search.matches(selected);
    byId('matches').textContent = !search ? ''
        : isMatch ? `${search.numberOf(selected).toLocaleString('en')} of ${search.count.toLocaleString('en')}`
        : countText(search.count, 'match').replace('matchs', 'matches');
    document.documentElement.dataset.matches = search ? search.count : '';
  }
  nextMatch(direction) {
    if (!this.search || this.search.count === 0) return;
    const {selected, timeline} = this;
    const time = selected >= 0 ? timeline.begin[selected] : direction > 0 ? this.from : this.to;
    this.reveal(this.search.neighbour(selected, time, direction));
    this.showMatches();
  }

  /** The event after or before the selected one in its row. */
  step(direction) {
    if (this.selected < 0) return;
    const row = this.timeline.rowOf(this.selected), event = this.selected + direction;
    if (event >= row.first && event < row.last) this.reveal(event);
  }

  readAddress() {
    const words = new URLSearchParams(location.hash.slice(1));
    const seconds = (name, otherwise) => {
      const value = Number(words.get(name) ?? NaN);
      return Number.isFinite(value) ? value * NS.s : otherwise;
    };
    if (words.has('from') || words.has('to'))
      this.setTimes(seconds('from', this.timeline.first), seconds('to', this.timeline.last));
    if (words.has('theme')) setTheme(words.get('theme'));
    byId('search').value = words.get('search') ?? '';
    this.find(byId('search').value);
    const match = this.search ? this.search.numbered(Number(words.get('match'))) : -1;
    if (match >= 0) this.reveal(match);
    this.showMatches();
  }
  writeAddress() {
    const words = new URLSearchParams();
    words.set('from', (this.from / NS.s).toFixed(9));
    words.set('to', (this.to / NS.s).toFixed(9));
    if (this.search) words.set('search', this.search.text);
    if (this.search && this.selected >= 0 && this.search.matches(this.selected))
      words.set('match', this.search.numberOf(this.selected));
    const theme = document.documentElement.dataset.chosen;
    if (theme) words.set('theme', theme);
    // Some viewers of files do not allow it.
    try { history.replaceState(null, '', '#' + words); } catch { /* The page works without it. */ }
  }
}

/** The details of the event below the lanes; event -1: none. */
function showDetails(view, event) {
  const {timeline} = view;
  byId('details').hidden = event < 0;
  const facts = byId('facts');
  facts.replaceChildren();
  if (event < 0) return;
  const row = timeline.rowOf(event), title = timeline.titleOf(event);
  const heading = element('h2', title.name);
  heading.append(element('span', `${row.track.rank.name}, ${row.track.name}`));
  facts.append(heading);
  const begin = timeline.begin[event], end = timeline.end[event];
  const times = element('dl');
  const add = (list, key, value, className) => list.append(element('dt', key), element('dd', value, className));
  add(times, 'begin', stamp(begin));
  if (!title.moment) {
    add(times, 'duration', `${durationText(end - begin)} (${Math.round(end - begin).toLocaleString('en')} ns)`);
    add(times, 'end', stamp(end));
  }
  if (row.track.tensors) {
    add(times, 'waited', durationText(timeline.waited[event]));
    add(times, 'in its call', durationText(end - begin - timeline.waited[event]));
  }
  facts.append(times);
  const more = element('dl');
  add(more, 'kind', KINDS[title.moment ? 'moment' : title.category]?.label ?? title.category);
  for (const [key, value] of timeline.detailsOf(event)) {
    const text = typeof value === 'number' ? value.toLocaleString('en') : shown(String(value));
    add(more, shown(key).replaceAll('_', ' '), text, key === 'unfinished' || key === 'status' ? 'alarm' : '');
  }
  if (timeline.call[event] > 0) add(more, 'call number', String(timeline.call[event]));
  facts.append(more);
  if (view.peers.length > 1) facts.append(peerList(view));
}

/** Which rank came first and last to the selected call, with links to their events. */
function peerList(view) {
  const {timeline, peers} = view;
  const list = element('dl');
  const rankOf = (event) => timeline.rowOf(event).track.rank;
  const link = (event, text) => {
    const button = element('button', text, 'link');
    button.addEventListener('click', () => view.reveal(event));
    const cell = element('dd');
    cell.append(button);
    return cell;
  };
  const first = peers[0], last = peers[peers.length - 1];
  const ended = Math.max(...peers.map((event) => timeline.end[event]));
  const ranks = countText(new Set(peers.map(rankOf)).size, 'rank');
  list.append(element('dt', 'the same call'), element('dd', 'on ' + ranks));
  list.append(element('dt', 'first'), link(first, rankOf(first).name));
  list.append(element('dt', 'last'),
              link(last, `${rankOf(last).name}, ${durationText(timeline.begin[last] - timeline.begin[first])} later`),
              element('dt', 'all had ended'),
              element('dd', durationText(ended - timeline.begin[last]) + ' after the last began'));
  return list;
}

function setTheme(theme) {
  const root = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') root.chosen = theme;
  else delete root.chosen;
  root.theme = root.chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  byId('theme').textContent = {light: 'Light', dark: 'Dark'}[root.chosen] ?? 'Auto';
  if (!window.view) return;
  view.painter.setColours();
  view.overview.setColours();
  view.changed();
}

function drawLegend(view) {
  const used = new Set();
  for (const title of view.timeline.titles) {
    used.add(title.moment ? 'moment' : Object.hasOwn(KINDS, title.category) ? title.category : 'unknown');
    if (title.category === 'tensor') used.add('waiting');
  }
  for (const [name, kind] of Object.entries(KINDS)) {
    if (!used.has(name)) continue;
    const entry = element('span'), canvas = element('canvas');
    canvas.width = 22;
    canvas.height = 13;
    const pen = canvas.getContext('2d');
    pen.fillStyle = kind.fill;
    if (name === 'moment') {
      pen.translate(11, 6.5);
      pen.rotate(Math.PI / 4);
      pen.fillRect(-4, -4, 8, 8);
    } else {
      pen.fillRect(0, 0, 22, 13);
      if (kind.pattern) {
        pen.fillStyle = makePattern(pen, kind.pattern);
        pen.fillRect(0, 0, 22, 13);
      }
    }
    entry.append(canvas, kind.label);
    byId('legend').append(entry);
  }
}
