// Where events are on the picture, and how they are drawn: only those that are visible, and what is narrower than a
// pixel as one.

const GUTTER = 190, SCALE = 26, ROW = 19, HEAD = 24, GAP = 3;
const THIN_ROWS = 8, THIN_HEIGHT = 96, UNFOLDED_RANKS = 16, LABEL_HEIGHT = 12;

// The palette of Okabe and Ito, which people with any colour vision tell apart; each kind also has a pattern, a form,
// or a lane of its own.
const KINDS = {
  program: {label: 'program', fill: '#56b4e9', ink: '#10161c'},
  call: {label: 'call', fill: '#0072b2', ink: '#ffffff'},
  wait: {label: 'wait', fill: '#e69f00', ink: '#10161c', pattern: 'slash'},
  waiting: {label: 'tensor that waits', fill: '#a6dcc9', ink: '#10161c', pattern: 'slash'},
  tensor: {label: 'tensor in its call', fill: '#009e73', ink: '#10161c'},
  engine: {label: 'engine', fill: '#cc79a7', ink: '#10161c', pattern: 'dots'},
  wire: {label: 'data between hosts', fill: '#d55e00', ink: '#10161c', pattern: 'bars'},
  moment: {label: 'mark', fill: '#59636e', ink: '#ffffff'},
  unknown: {label: 'other', fill: '#999999', ink: '#10161c'},
};
// Ranges of the program have one of these by their names, without digits.
const TINTS = ['#56b4e9', '#93d0f3', '#6f9fd8'];

function tintOf(name) {
  let hash = 7;
  for (const letter of name.replace(/\d+/g, '')) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return TINTS[hash % TINTS.length];
}

/** For each title of the timeline: how events of that name are drawn. */
function looksOf(titles) {
  return titles.map((title) => {
    if (title.moment) return KINDS.moment;
    const kind = Object.hasOwn(KINDS, title.category) ? KINDS[title.category] : KINDS.unknown;
    return title.category === 'program' ? {...kind, fill: tintOf(title.name)} : kind;
  });
}

function makePattern(context, kind) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const pen = tile.getContext('2d');
  pen.strokeStyle = pen.fillStyle = 'rgb(0 0 0 / 27%)';
  pen.lineWidth = 1.6;
  pen.beginPath();
  if (kind === 'slash') {
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift - 1, 9);
      pen.lineTo(shift + 9, -1);
    }
  } else if (kind === 'bars') {
    for (const x of [2, 6]) {
      pen.moveTo(x, 0);
      pen.lineTo(x, 8);
    }
  } else {
    pen.rect(1, 1, 2, 2);
    pen.rect(5, 5, 2, 2);
    pen.fill();
  }
  if (kind !== 'dots') pen.stroke();
  return context.createPattern(tile, 'repeat');
}

/** The lanes from above: heads of ranks, and rows, each with its top and height in pixels of the whole picture. */
class Layout {
  constructor(timeline) {
    this.timeline = timeline;
    this.folded = new Set();  // ranks
    this.full = new Set();    // tracks whose rows have their full height
    if (timeline.ranks.length > UNFOLDED_RANKS) this.foldAll();
    this.place();
  }
  foldAll() { for (const rank of this.timeline.ranks) this.folded.add(rank); }
  toggleAll() {
    if (this.folded.size > 0) this.folded.clear();
    else this.foldAll();
    this.place();
  }
  toggle(set, one) {
    if (!set.delete(one)) set.add(one);
    this.place();
  }
  rowHeight(track) {
    if (track.rows.length <= THIN_ROWS || this.full.has(track)) return ROW;
    return Math.max(2, Math.floor(THIN_HEIGHT / track.rows.length));
  }
  place() {
    this.items = [];
    this.topOfRow = new Map();
    let top = 0;
    for (const rank of this.timeline.ranks) {
      const isFolded = this.folded.has(rank);
      this.items.push({top, height: HEAD, rank, isFolded});
      const headTop = top;
      top += HEAD;
      for (const track of rank.tracks) {
        const height = this.rowHeight(track);
        for (const [number, row] of track.rows.entries()) {
          if (isFolded) {
            // The ranges and calls of the program, the inner ones over the outer ones.
            const inset = Math.min(2 + 3 * number, HEAD - 8);
            this.topOfRow.set(row, {top: headTop + inset, height: HEAD - 2 - inset});
            continue;
          }
          const item = {top, height, rank, track, row, isFirst: number === 0, size: track.rows.length * height};
          this.items.push(item);
          this.topOfRow.set(row, item);
          top += height;
        }
        if (!isFolded) top += GAP;
      }
      top += isFolded ? 1 : GAP;
    }
    this.height = top;
  }
  /** The item at this height, or null. */
  itemAt(y) {
    const i = lowerBound(0, this.items.length, (n) => this.items[n].top + this.items[n].height > y);
    const item = this.items[i];
    return item && item.top <= y ? item : null;
  }
  rowsOfHead(rank) { return rank.tracks.length > 0 ? rank.tracks[0].rows.slice(0, 4) : []; }
}

/** Draws on one canvas. view: the state of the page (timeline_view.js). */
class Painter {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    this.context = canvas.getContext('2d');
    this.looks = looksOf(view.timeline.titles);
    this.patterns = {};
    for (const kind of ['slash', 'bars', 'dots']) this.patterns[kind] = makePattern(this.context, kind);
    this.widths = [];  // of the names, by title
    this.setColours();
  }

  setColours() {
    const style = getComputedStyle(document.documentElement);
    this.colours = {};
    for (const name of ['text', 'faint', 'back', 'card', 'grid', 'line', 'mark', 'find', 'band'])
      this.colours[name] = style.getPropertyValue('--' + name).trim();
    this.font = '12px ' + getComputedStyle(document.body).fontFamily;
  }

  /** Gives the canvas as many pixels as the screen has there. Returns its size in CSS pixels. */
  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = this.font;
    this.context.textBaseline = 'middle';
  }

  rectangle(colour, x, y, width, height) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  /** The text, or as much of it as fits. Returns how wide it is. */
  text(text, x, y, room, width = this.context.measureText(text).width) {
    if (width > room) {
      let fitting = Math.ceil(text.length * room / width);
      const shortened = () => text.slice(0, fitting).trimEnd() + '…';
      while (fitting > 2 && this.context.measureText(shortened()).width > room) --fitting;
      if (fitting < 3) return 0;
      text = shortened();
      width = room;
    }
    this.context.fillText(text, x, y);
    return width;
  }

  drawLanes(width, height) {
    const {view, context, colours} = this;
    this.resize(width, height);
    this.rectangle(colours.back, 0, 0, width, height);
    this.drawScale(width, height);
    context.save();
    context.beginPath();
    context.rect(0, SCALE, width, height - SCALE);
    context.clip();
    const {items} = view.layout;
    const from = lowerBound(0, items.length, (n) => items[n].top + items[n].height > view.top);
    for (let n = from; n < items.length; ++n) {
      const item = items[n], y = SCALE + item.top - view.top;
      if (y > height) break;
      if (item.row) this.drawRow(item.row, y, item.height - (item.height > 6 ? 2 : 0), width);
      else this.drawHead(item, y, width);
    }
    this.drawNames(items, from, height);
    for (const event of view.peers) this.outline(event, colours.text, [3, 2], width);
    if (view.selected >= 0) this.outline(view.selected, colours.text, [], width);
    context.restore();
    this.drawSelection(height);
  }

  drawScale(width, height) {
    const {view, context, colours} = this;
    const span = view.to - view.from, least = span * 120 / (width - GUTTER);
    let step = 10 ** Math.ceil(Math.log10(least));
    for (const part of [5, 2]) if (step / part >= least) { step /= part; break; }
    this.rectangle(colours.card, 0, 0, width, SCALE);
    context.textAlign = 'left';
    for (let n = Math.ceil(view.from / step); n * step <= view.to; ++n) {
      const x = Math.round(view.x(n * step)) + 0.5;
      this.rectangle(colours.grid, x, SCALE, 1, height);
      this.rectangle(colours.faint, x, SCALE - 6, 1, 6);
      context.fillStyle = colours.faint;
      context.fillText(timeText(n * step + 0, step), x + 4, SCALE / 2 - 1);
    }
    this.rectangle(colours.line, 0, SCALE - 1, width, 1);
    this.rectangle(colours.card, 0, 0, GUTTER, SCALE - 1);
    context.fillStyle = colours.text;
    context.fillText(durationText(span) + ' in view', 12, SCALE / 2 - 1);
  }

  drawHead(item, y, width) {
    const {view, colours} = this;
    this.rectangle(colours.band, 0, y, width, item.height - 1);
    if (!item.isFolded) return;
    for (const [number, row] of view.layout.rowsOfHead(item.rank).entries()) {
      const inset = 2 + 3 * number;
      this.drawRow(row, y + inset, item.height - 3 - inset, width);
    }
  }

  /** The names at the left, over what has begun before. */
  drawNames(items, from, height) {
    const {view, context, colours} = this;
    this.rectangle(colours.back, 0, SCALE, GUTTER, height);
    context.textAlign = 'left';
    for (let n = from; n < items.length; ++n) {
      const item = items[n], y = SCALE + item.top - view.top;
      if (y > height) break;
      if (!item.row) {
        this.rectangle(colours.band, 0, y, GUTTER, item.height - 1);
        // "rank 3 (node1, pid 4711)"
        const [, name, host] = /^(.*?)(?: \(([^,)]*).*)?$/.exec(item.rank.name);
        context.fillStyle = colours.text;
        context.font = 'bold ' + this.font;
        const used = 14 + this.text((item.isFolded ? '▸ ' : '▾ ') + name, 8, y + item.height / 2, GUTTER - 14);
        context.font = this.font;
        context.fillStyle = colours.faint;
        if (host) this.text(host, used, y + item.height / 2, GUTTER - used - 6);
      } else if (item.isFirst) {
        context.fillStyle = colours.faint;
        const rows = item.track.rows.length;
        const name = item.track.name + (rows > THIN_ROWS ? ` (${rows} lanes)` : '');
        this.text(name, 24, y + Math.min(item.size, ROW) / 2, GUTTER - 30);
      }
    }
    this.rectangle(colours.line, GUTTER - 1, SCALE, 1, height);
  }

  drawRow(row, y, height, width) {
    const {view} = this, {timeline, search} = view;
    const [first, last] = timeline.between(row, view.from, view.to);
    const scale = (width - GUTTER) / (view.to - view.from);
    const {begin, end, busy} = timeline;
    const moments = [];  // over the boxes beside them
    for (let i = first; i < last;) {
      const x = GUTTER + (begin[i] - view.from) * scale;
      const right = GUTTER + (end[i] - view.from) * scale;
      if (right - x >= 2) {
        this.drawEvent(i, Math.max(x, GUTTER), Math.min(right, width), y, height);
        ++i;
        continue;
      }
      // All that begin in this pixel, but not the last one if it is wide.
      const pixel = Math.floor(x);
      const beyond = view.from + (pixel + 1 - GUTTER) / scale;
      let next = lowerBound(i + 1, last, (n) => begin[n] >= beyond);
      if (next > i + 1 && (end[next - 1] - begin[next - 1]) * scale >= 2) --next;
      const isFound = search && search.isBetween(i, next);
      if (next === i + 1 && timeline.isMoment(i)) {
        moments.push([i, x, isFound]);
      } else {
        const share = Math.min(1, (busy[next] - busy[i]) * scale);
        this.context.globalAlpha = search && !isFound ? 0.15 : 0.35 + 0.65 * share;
        this.rectangle(isFound ? this.colours.find : this.fillOf(i), pixel, y, 1, height);
        this.context.globalAlpha = 1;
      }
      i = next;
    }
    // Where there are many, lines remain apart.
    let before = -Infinity;
    for (const [event, at, isFound] of moments) {
      const isDense = at - before < 12;
      before = at;
      this.drawMoment(event, at, y, height, isFound, isDense);
    }
  }

  fillOf(event) { return this.looks[this.view.timeline.title[event]].fill; }

  drawMoment(event, x, y, height, isFound, isDense) {
    const {context, view, colours} = this;
    const half = isDense ? 1 : Math.min(height, 11) / 2, middle = y + height / 2;
    context.globalAlpha = view.search && !isFound ? 0.2 : 1;
    context.fillStyle = isFound ? colours.find : colours.faint;
    context.beginPath();
    const above = isDense ? height / 2 : half;
    context.moveTo(x, middle - above);
    context.lineTo(x + half, middle);
    context.lineTo(x, middle + above);
    context.lineTo(x - half, middle);
    context.fill();
    context.globalAlpha = 1;
  }

  drawEvent(event, left, right, y, height) {
    const {view, context, colours} = this, {timeline, search} = view;
    const isFound = search && search.matches(event);
    context.globalAlpha = search && !isFound ? 0.2 : 1;
    const gap = right - left > 4 ? 1 : 0;
    const look = this.looks[timeline.title[event]];
    if (look === KINDS.tensor) {
      const called = Math.min(right, Math.max(left, view.x(timeline.begin[event] + timeline.waited[event])));
      this.box(KINDS.waiting, left, y, called - left, height);
      this.box(KINDS.tensor, called, y, right - gap - called, height);
    } else {
      this.box(look, left, y, right - gap - left, height);
    }
    if (height >= LABEL_HEIGHT && right - left > 30 && (!search || isFound))
      this.drawLabel(event, look, left + 4, y + height / 2, right - left - 8);
    context.globalAlpha = 1;
    if (isFound) {
      context.strokeStyle = colours.find;
      context.lineWidth = 2;
      context.strokeRect(left + 1, y + 1, right - gap - left - 2, height - 2);
    }
    if (right - left > 3 && timeline.isUnfinished(event)) this.drawTornEdge(right, y, height);
  }

  box(look, x, y, width, height) {
    if (width <= 0) return;
    this.rectangle(look.fill, x, y, width, height);
    if (look.pattern && width > 3) this.rectangle(this.patterns[look.pattern], x, y, width, height);
  }

  drawLabel(event, look, x, y, room) {
    const {context, view} = this, {timeline} = view;
    const title = timeline.title[event], name = timeline.titles[title].name;
    this.widths[title] ??= context.measureText(name).width;
    context.fillStyle = look.ink;
    context.textAlign = 'left';
    const used = this.text(name, x, y, room, this.widths[title]);
    if (used === 0 || used > room - 60) return;
    context.globalAlpha *= 0.75;
    context.fillText(durationText(timeline.end[event] - timeline.begin[event]), x + used + 8, y);
  }

  /** What has not ended: its end is where it was last known. */
  drawTornEdge(x, y, height) {
    const {context, colours} = this;
    context.fillStyle = colours.mark;
    context.beginPath();
    const teeth = Math.max(2, Math.round(height / 5));
    context.moveTo(x, y);
    for (let n = 0; n < teeth; ++n) {
      context.lineTo(x - 5, y + (n + 0.5) * height / teeth);
      context.lineTo(x, y + (n + 1) * height / teeth);
    }
    context.fill();
  }

  outline(event, colour, dash, width) {
    const {view, context, colours} = this, {timeline} = view;
    const place = view.layout.topOfRow.get(timeline.rowOf(event));
    const x = view.x(timeline.begin[event]), right = view.x(timeline.end[event]);
    if (!place || right < GUTTER || x > width) return;
    const left = Math.max(x, GUTTER) - 2, y = SCALE + place.top - view.top - 1;
    const box = [left, y, Math.max(Math.min(right, width) - left + 1, 5), Math.max(place.height, 6)];
    context.save();
    context.beginPath();
    context.rect(GUTTER, SCALE, width, 1e6);
    context.clip();
    context.lineWidth = 4;
    context.strokeStyle = colours.back;
    context.strokeRect(...box);
    context.lineWidth = 2;
    context.strokeStyle = colour;
    context.setLineDash(dash);
    context.strokeRect(...box);
    context.restore();
  }

  /** The span that the mouse is selecting. */
  drawSelection(height) {
    const {view, context, colours} = this;
    if (!view.span) return;
    const [left, right] = [Math.min(...view.span), Math.max(...view.span)];
    context.globalAlpha = 0.18;
    this.rectangle(colours.text, left, SCALE, right - left, height);
    context.globalAlpha = 1;
    this.rectangle(colours.text, left, SCALE, 1, height);
    this.rectangle(colours.text, right, SCALE, 1, height);
    context.fillStyle = colours.text;
    context.textAlign = 'center';
    context.fillText(durationText(view.timeAt(right) - view.timeAt(left)), (left + right) / 2, SCALE + 12);
  }

  /** Which share of the ranks was in calls and waits, over the whole time; and which part of it is in view. */
  drawOverview(width, height) {
    const {view, context, colours} = this;
    this.resize(width, height);
    this.rectangle(colours.back, 0, 0, width, height);
    const columns = Math.floor(width - GUTTER);
    if (this.shares?.length !== columns) this.shares = sharesOfRanks(view.timeline, columns);
    const room = height - 8;
    context.fillStyle = KINDS.call.fill;
    for (let n = 0; n < columns; ++n) {
      const part = Math.min(1, this.shares[n]) * room;
      if (part > 0) context.fillRect(GUTTER + n, height - 2 - part, 1, part);
    }
    context.fillStyle = colours.faint;
    context.textAlign = 'left';
    this.text('ranks in calls and waits', 12, height / 2 - 8, GUTTER - 20);
    this.text(durationText(view.timeline.last - view.timeline.first) + ' in all', 12, height / 2 + 8, GUTTER - 20);
    const scale = columns / (view.timeline.last - view.timeline.first);
    const left = GUTTER + (view.from - view.timeline.first) * scale;
    const right = GUTTER + (view.to - view.timeline.first) * scale;
    context.globalAlpha = 0.72;
    this.rectangle(colours.back, GUTTER, 0, left - GUTTER, height);
    this.rectangle(colours.back, right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.text;
    context.lineWidth = 1.5;
    const shown = [Math.max(left, GUTTER), Math.min(right, width)];
    context.strokeRect(shown[0] + 0.5, 1.5, Math.max(3, shown[1] - shown[0] - 2), height - 3);
    this.rectangle(colours.line, GUTTER - 1, 0, 1, height);
  }
}

/** For each of so many parts of the time: which share of the ranks was in calls and waits, 0 to 1. */
function sharesOfRanks(timeline, parts) {
  const shares = new Float64Array(parts + 1);
  const scale = parts / (timeline.last - timeline.first);
  const weight = 1 / timeline.ranks.length;
  const isCounted = timeline.titles.map((title) => title.category === 'call' || title.category === 'wait');
  for (const row of timeline.rows) {
    if (row.track !== row.track.rank.tracks[0]) continue;
    for (let i = row.first; i < row.last; ++i) {
      if (!isCounted[timeline.title[i]]) continue;
      const from = (timeline.begin[i] - timeline.first) * scale, to = (timeline.end[i] - timeline.first) * scale;
      const first = Math.floor(from), last = Math.floor(to);
      if (first === last) {
        shares[first] += (to - from) * weight;
        continue;
      }
      shares[first] += (first + 1 - from) * weight;
      for (let n = first + 1; n < last; ++n) shares[n] += weight;
      shares[last] += (to - last) * weight;
    }
  }
  return shares.subarray(0, parts);
}
