'use strict';
// The data of the page, as report/timeline_view.cpp packs them. An event is a number, its index in the columns.

// All times are in nanoseconds.
const NS = {s: 1e9, ms: 1e6, us: 1e3, ns: 1};

/** Text of the file without characters that control a terminal or the direction of writing. */
function shown(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

/** The bytes of base64 text that zlib has compressed, decompressed. */
async function unpack(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads the numbers of one column. */
class ColumnReader {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }
  next() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    // Not by bits: they are 32 in JavaScript.
    for (let factor = 0x80; byte >= 0x80; factor *= 0x80) {
      byte = bytes[this.at++];
      value += (byte & 0x7f) * factor;
    }
    return value;
  }
  nextDifference() {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** The first index in [low, high) for which isBeyond holds, or high; it holds for all after it, too. */
function lowerBound(low, high, isBeyond) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBeyond(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * All events, in columns, by rank, track and row. The events of a row do not overlap, and are in the order of time;
 * those of the row r are [r.first, r.last).
 */
class Timeline {
  constructor(bytes) {
    const headSize = new DataView(bytes.buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headSize)));
    this.version = shown(head.version);
    this.notes = head.notes.map(shown);
    this.titles = head.titles.map((title) => ({...title, name: shown(title.name)}));
    this.details = head.details;
    this.ranks = [];
    this.rows = [];
    let count = 0;
    for (const rank of head.ranks) {
      const place = {name: shown(rank.name), note: shown(rank.note), tracks: []};
      this.ranks.push(place);
      for (const track of rank.tracks) {
        const lane = {rank: place, name: shown(track.name), tensors: track.tensors, rows: []};
        place.tracks.push(lane);
        for (const size of track.rows) {
          const row = {track: lane, first: count, last: count + size};
          this.rows.push(row);
          lane.rows.push(row);
          count = row.last;
        }
      }
    }
    this.count = count;
    this.readColumns(bytes, 4 + headSize, head.sizes);
  }

  readColumns(bytes, at, sizes) {
    const readers = sizes.map((size) => {
      at += size;
      return new ColumnReader(bytes, at - size);
    });
    const [begins, durations, titles, details, calls, waits] = readers;
    this.begin = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.title = new Uint32Array(this.count);
    this.detail = new Uint32Array(this.count);
    this.call = new Float64Array(this.count);
    this.waited = new Float64Array(this.count);   // of tensors
    this.busy = new Float64Array(this.count + 1);  // the sum of all durations before
    this.first = Infinity;
    this.last = 0;
    for (const row of this.rows) {
      let begin = 0, call = 0;
      for (let i = row.first; i < row.last; ++i) {
        begin += begins.next();
        call += calls.nextDifference();
        const duration = durations.next();
        this.begin[i] = begin;
        this.end[i] = begin + duration;
        this.title[i] = titles.next();
        this.detail[i] = details.next();
        this.call[i] = call;
        this.busy[i + 1] = this.busy[i] + duration;
        if (row.track.tensors) this.waited[i] = waits.next();
        if (this.end[i] > this.last) this.last = this.end[i];
      }
      this.first = Math.min(this.first, this.begin[row.first]);
    }
    if (this.last <= this.first) this.last = this.first + 1000;
  }

  titleOf(event) { return this.titles[this.title[event]]; }
  isMoment(event) { return this.titles[this.title[event]].moment; }
  detailsOf(event) { return this.details[this.detail[event]]; }
  detailOf(event, key) { return this.detailsOf(event).find((pair) => pair[0] === key)?.[1]; }
  isUnfinished(event) { return this.detailOf(event, 'unfinished') !== undefined; }

  rowOf(event) {
    return this.rows[lowerBound(0, this.rows.length, (r) => this.rows[r].last > event)];
  }

  /** The events of the row that are at least in part between the times, as [first, last). */
  between(row, from, to) {
    return [lowerBound(row.first, row.last, (i) => this.end[i] >= from),
            lowerBound(row.first, row.last, (i) => this.begin[i] > to)];
  }

  /** The number of events of all ranks that are at least in part between the times. */
  countBetween(from, to) {
    let count = 0;
    for (const row of this.rows) {
      const [first, last] = this.between(row, from, to);
      count += last - first;
    }
    return count;
  }

  /** The same call on all ranks, this one included, by their begins; [] if the event has no number. */
  sameCall(event) {
    const {call, title} = this;
    if (!(call[event] > 0)) return [];
    const category = this.titleOf(event).category;
    const set = this.detailOf(event, 'set');
    const found = [];
    for (let i = 0; i < this.count; ++i) {
      if (call[i] !== call[event] || this.titles[title[i]].category !== category) continue;
      if (this.detailOf(i, 'set') === set) found.push(i);
    }
    return found.sort((a, b) => this.begin[a] - this.begin[b]);
  }
}

/** The events whose names contain a text, in the order of time. */
class Search {
  constructor(timeline, text) {
    this.timeline = timeline;
    this.text = text;
    const wanted = text.toLowerCase();
    this.hasTitle = timeline.titles.map((title) => title.name.toLowerCase().includes(wanted));
    this.before = new Uint32Array(timeline.count + 1);  // matches before an event
    for (let i = 0; i < timeline.count; ++i)
      this.before[i + 1] = this.before[i] + (this.hasTitle[timeline.title[i]] ? 1 : 0);
    this.count = this.before[timeline.count];
  }
  matches(event) { return this.hasTitle[this.timeline.title[event]]; }
  isBetween(first, last) { return this.before[last] > this.before[first]; }

  /** The match after (direction 1) or before (-1) the event and the time in it; the first or last one, if none is. */
  neighbour(event, time, direction) {
    const {begin, count} = this.timeline;
    let best = -1, wrapped = -1;
    const isBefore = (a, b) => begin[a] !== begin[b] ? begin[a] < begin[b] : a < b;
    for (let i = 0; i < count; ++i) {
      if (!this.matches(i) || i === event) continue;
      const isLater = begin[i] !== time ? begin[i] > time : i > event;
      if (direction > 0 ? isLater : !isLater) {
        if (best < 0 || isBefore(i, best) === (direction > 0)) best = i;
      } else if (wrapped < 0 || isBefore(i, wrapped) === (direction > 0)) {
        wrapped = i;
      }
    }
    return best >= 0 ? best : wrapped >= 0 ? wrapped : this.matches(event) ? event : -1;
  }
  /** 1 for the first match. */
  numberOf(event) {
    const {begin, count} = this.timeline;
    let number = 1;
    for (let i = 0; i < count; ++i) {
      if (this.matches(i) && (begin[i] < begin[event] || (begin[i] === begin[event] && i < event))) ++number;
    }
    return number;
  }
  /** The match of this number, from 1, or -1. */
  numbered(number) {
    const {begin, count} = this.timeline;
    if (!(number >= 1 && number <= this.count)) return -1;
    const all = new Float64Array(this.count);
    let size = 0;
    for (let i = 0; i < count; ++i) if (this.matches(i)) all[size++] = i;
    return all.sort((a, b) => begin[a] - begin[b] || a - b)[number - 1];
  }
}

/** "1.234 ms". */
function durationText(ns) {
  const unit = ns >= NS.s ? 's' : ns >= NS.ms ? 'ms' : ns >= NS.us ? 'us' : 'ns';
  const value = ns / NS[unit];
  const digits = unit === 'ns' ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return value.toFixed(digits) + ' ' + (unit === 'us' ? 'µs' : unit);
}

/** "1,234.5 ms": the time, exact to the step. */
function timeText(ns, step) {
  const unit = step >= NS.s / 10 ? 's' : step >= NS.ms / 10 ? 'ms' : 'us';
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / NS[unit]) - 1e-9)));
  const number = (ns / NS[unit]).toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  return number + ' ' + (unit === 'us' ? 'µs' : unit);
}

/** "1.234567890 s": the time, exact to the nanosecond. */
function stamp(ns) {
  return ns >= NS.s ? (ns / NS.s).toFixed(9) + ' s' : (ns / NS.ms).toFixed(6) + ' ms';
}

function countText(count, noun) {
  return count.toLocaleString('en') + ' ' + noun + (count === 1 ? '' : 's');
}
