#include "timeline/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "timeline/event_text.h"
#include "timeline/json_text.h"

namespace ddl::timeline {
namespace {

using contract::Event;
using Kind = Event::Kind;

/// The time or less: one that remains the same when it is written in microseconds and read as a double
/// (append_microseconds()), which has no room for the nanoseconds of more than 13 days.
std::int64_t readable(std::int64_t nanoseconds) {
  constexpr std::int64_t kExact = std::int64_t{1} << 50;
  constexpr std::int64_t kCoarse = 512'000;
  return nanoseconds < kExact ? nanoseconds : nanoseconds / kCoarse * kCoarse;
}

/// In nanoseconds since the origin.
struct Times {
  std::int64_t begin = 0;
  std::int64_t started = 0;
  std::int64_t end = 0;
};

class RankWriter {
 public:
  RankWriter(const RankTrace& rank, std::int64_t origin) : rank_(rank), origin_(origin) {}
  RankEvents write(std::size_t max_bytes);

 private:
  struct Track {
    TrackGroup group;
    std::uint32_t generation;               ///< 0: of program threads
    std::size_t number;                     ///< among those of its group and generation, from 0
    bool is_rest;                           ///< of all threads or sets for which there are no other tracks
    std::vector<std::int64_t> open_ends{};  ///< of the events that the current one is in, the innermost last
    auto order() const { return std::tuple(group, is_rest, generation, number); }
  };
  /// Of each group. Garbage may name any number of threads and sets.
  static constexpr std::size_t kMaxTracks = 64;
  static constexpr std::uint32_t kTidsOfRank = 256;

  std::int64_t time_of(std::int64_t own) const;
  void set_times();
  void assign_tracks();
  void end_before_next();
  std::size_t track_of(const Event& event);
  std::string track_name(const Track& track) const;
  /// Each rank has tids of its own: some versions of Perfetto find a thread's name by its tid alone.
  std::int64_t tid_of_rank() const { return std::int64_t{rank_.rank} * kTidsOfRank; }
  std::int64_t tid_of(std::size_t track) const {
    return tid_of_rank() + 1 + static_cast<std::int64_t>(place_[track]);
  }

  template <class Value>
  void write_metadata(std::string_view name, std::int64_t tid, std::string_view key, const Value& value);
  void write_all_metadata();
  void write_on_track(std::size_t index);
  void write_tensor(std::size_t index);
  /// Why events have not ended.
  std::string_view reason() const {
    return rank_.fate.empty() ? "it had not ended when the events were read" : std::string_view(rank_.fate);
  }
  JsonObject begin_event(const char* phase, std::int64_t time, std::int64_t tid);

  const RankTrace& rank_;
  std::int64_t origin_;
  std::vector<Times> times_;
  std::vector<std::size_t> order_;  ///< events by begin; of those that begin together, the longest first
  std::vector<Track> tracks_;       ///< in the order of their first events
  std::vector<std::size_t> track_;  ///< of each event
  std::vector<std::size_t> place_;  ///< of each track, from above
  std::map<std::tuple<TrackGroup, std::uint32_t, std::uint32_t>, std::size_t> known_tracks_;
  std::array<std::size_t, kTrackGroups> tracks_in_{};  ///< by TrackGroup
  std::uint64_t tensors_ = 0;                          ///< written so far
  std::string text_;
};

std::int64_t RankWriter::time_of(std::int64_t own) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t since = 0;
  const std::int64_t reference = rank_.clock.to_reference(own);
  if (__builtin_sub_overflow(reference, origin_, &since)) return origin_ > 0 ? 0 : readable(kMost);
  return readable(std::clamp<std::int64_t>(since, 0, kMost));
}

void RankWriter::set_times() {
  const auto& events = rank_.ring.events;
  times_.resize(events.size());
  order_.resize(events.size());
  std::int64_t last = rank_.read_at > 0 ? time_of(rank_.read_at) : 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    Times& times = times_[i];
    times.begin = time_of(event.begin);
    times.started = event.started == 0 ? times.begin : std::max(times.begin, time_of(event.started));
    times.end = event.end == Event::kOpen ? times.begin : std::max(times.begin, time_of(event.end));
    last = std::max({last, times.started, times.end});
    order_[i] = i;
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (is_unfinished(events[i])) times_[i].end = last;
    times_[i].started = std::min(times_[i].started, times_[i].end);
  }
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(times_[a].begin, -times_[a].end, a) < std::tuple(times_[b].begin, -times_[b].end, b);
  });
}

std::size_t RankWriter::track_of(const Event& event) {
  const TrackGroup group = traits_of(event.kind).group;
  // An ordered call and one for named tensors may move data for one set at the same time, in two threads.
  const std::uint32_t generation = group == TrackGroup::kProgram ? 0 : event.generation;
  const std::uint32_t thread = group == TrackGroup::kEngine ? 0 : event.thread;
  const auto [found, is_new] = known_tracks_.try_emplace({group, generation, thread}, tracks_.size());
  if (!is_new) return found->second;
  std::size_t& count = tracks_in_[static_cast<std::size_t>(group)];
  const bool is_full = count == kMaxTracks;
  if (is_full) {
    // The last one that was made takes the rest.
    const auto rest = std::find_if(tracks_.rbegin(), tracks_.rend(),
                                   [&](const Track& track) { return track.group == group; });
    return found->second = static_cast<std::size_t>(tracks_.rend() - rest) - 1;
  }
  ++count;
  const auto alike = std::count_if(tracks_.begin(), tracks_.end(), [&](const Track& track) {
    return track.group == group && track.generation == generation;
  });
  tracks_.push_back({group, generation, static_cast<std::size_t>(alike), count == kMaxTracks});
  return found->second;
}

void RankWriter::assign_tracks() {
  track_.resize(rank_.ring.events.size());
  for (const std::size_t index : order_) {
    const Event& event = rank_.ring.events[index];
    if (event.kind != Kind::kTensor) track_[index] = track_of(event);
  }
  std::vector<std::size_t> sorted(tracks_.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(),
            [&](std::size_t a, std::size_t b) { return tracks_[a].order() < tracks_[b].order(); });
  place_.resize(tracks_.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) place_[sorted[i]] = i;
}

/// A ddl::Range that is assigned to another ends the other one when it has begun itself. Of two events of a track that
/// overlap by the lesser part of both, the first one ends when the second one begins; others are nested by cutting the
/// second one, when it is written.
void RankWriter::end_before_next() {
  std::vector<std::vector<std::size_t>> open(tracks_.size());  // the innermost last
  for (const std::size_t index : order_) {
    if (rank_.ring.events[index].kind == Kind::kTensor) continue;
    const Times& times = times_[index];
    auto& outer = open[track_[index]];
    while (!outer.empty()) {
      Times& before = times_[outer.back()];
      const std::int64_t overlap = before.end - times.begin;
      const bool is_lesser_part =
          overlap < (before.end - before.begin) / 2 && overlap < (times.end - times.begin) / 2;
      if (overlap > 0 && (times.end <= before.end || !is_lesser_part)) break;
      before.end = std::min(before.end, times.begin);
      outer.pop_back();
    }
    outer.push_back(index);
  }
}

std::string RankWriter::track_name(const Track& track) const {
  const std::string thread = "thread " + std::to_string(track.number + 1);
  if (track.group == TrackGroup::kProgram) {
    if (track.is_rest) return "other threads";
    return track.number == 0 ? "program" : thread;
  }
  const std::string which = track.group == TrackGroup::kEngine ? "engine (" : "wire (";
  if (track.is_rest) return which + "other sets)";
  return which + set_name(track.generation) + (track.number == 0 ? ")" : ", " + thread + ")");
}

template <class Value>
void RankWriter::write_metadata(std::string_view name, std::int64_t tid, std::string_view key,
                                const Value& value) {
  if (!text_.empty()) text_ += ",\n";
  JsonObject event(text_);
  event.add("ph", "M").add("pid", std::int64_t{rank_.rank}).add("tid", tid).add("name", name);
  event.begin_member("args");
  JsonObject(text_).add(key, value).close();
  event.close();
}

void RankWriter::write_all_metadata() {
  std::string name = rank_.name.empty() ? "rank " + std::to_string(rank_.rank) : rank_.name;
  name += " (" + rank_.host;
  if (rank_.pid != 0) name += ", pid " + std::to_string(rank_.pid);
  name += ")";
  if (!rank_.missing.empty()) name += ": no events";
  write_metadata("process_name", tid_of_rank(), "name", name);
  write_metadata("process_sort_index", tid_of_rank(), "sort_index", std::int64_t{rank_.rank});
  std::string labels = rank_.missing;
  if (!rank_.clock.is_aligned())
    labels += (labels.empty() ? "" : "; ") + ("clock not aligned: " + rank_.clock.reason());
  if (!labels.empty()) write_metadata("process_labels", tid_of_rank(), "labels", labels);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    write_metadata("thread_name", tid_of(i), "name", track_name(tracks_[i]));
    write_metadata("thread_sort_index", tid_of(i), "sort_index", static_cast<std::int64_t>(place_[i]));
  }
}

JsonObject RankWriter::begin_event(const char* phase, std::int64_t time, std::int64_t tid) {
  text_ += ",\n";
  JsonObject event(text_);
  // These two come first: some versions of Perfetto search for them, and do not know all escapes of earlier texts.
  event.add("ph", phase).add_microseconds("ts", time);
  event.add("pid", std::int64_t{rank_.rank}).add("tid", tid);
  return event;
}

void RankWriter::write_on_track(std::size_t index) {
  const Event& event = rank_.ring.events[index];
  const KindTraits traits = traits_of(event.kind);
  const Times& times = times_[index];
  JsonObject object = begin_event(traits.is_moment ? "i" : "X", times.begin, tid_of(track_[index]));
  if (traits.is_moment) {
    object.add("s", "t");
  } else {
    auto& ends = tracks_[track_[index]].open_ends;
    while (!ends.empty() && ends.back() <= times.begin) ends.pop_back();
    const std::int64_t end = ends.empty() ? times.end : std::min(times.end, ends.back());
    const std::int64_t duration = readable(end - times.begin);
    ends.push_back(times.begin + duration);
    object.add_microseconds("dur", duration);
  }
  object.add("cat", traits.category).add("name", title_of(event));
  object.begin_member("args");
  append_arguments(text_, event, is_unfinished(event) ? reason() : "");
  object.close();
}

void RankWriter::write_tensor(std::size_t index) {
  const Event& event = rank_.ring.events[index];
  const Times& times = times_[index];
  const std::string_view title = title_of(event);
  // One number for all ranks: viewers match events of all processes by it.
  constexpr int kBitsOfTensors = 32;
  const std::uint64_t number = (static_cast<std::uint64_t>(rank_.rank) + 1) << kBitsOfTensors | tensors_++;
  std::array<char, 20> id{'0', 'x'};
  const char* const id_end = std::to_chars(id.data() + 2, id.data() + id.size(), number, 16).ptr;
  const std::string_view id_text(id.data(), static_cast<std::size_t>(id_end - id.data()));
  const auto begin = [&](const char* phase, std::int64_t time, std::string_view name) {
    JsonObject object = begin_event(phase, time, tid_of_rank());
    object.add("cat", "tensor").add("id", id_text).add("name", name);
    object.begin_member("args");
    return object;
  };
  const auto write_phase = [&](std::string_view name, std::int64_t from, std::int64_t to) {
    if (from == to) return;
    for (const bool is_begin : {true, false}) {
      JsonObject object = begin(is_begin ? "b" : "e", is_begin ? from : to, name);
      JsonObject(text_).close();
      object.close();
    }
  };
  JsonObject first = begin("b", times.begin, title);
  append_arguments(text_, event, "");
  first.close();
  if (event.started != 0) {
    const char* const call = call_name(event);
    write_phase("waiting", times.begin, times.started);
    write_phase(call != nullptr ? call : "call", times.started, times.end);
  }
  JsonObject last = begin("e", times.end, title);
  JsonObject arguments(text_);
  if (is_unfinished(event)) arguments.add("unfinished", reason());
  arguments.close();
  last.close();
}

RankEvents RankWriter::write(std::size_t max_bytes) {
  set_times();
  assign_tracks();
  end_before_next();
  text_.reserve(4096 + order_.size() * 256);
  write_all_metadata();
  const std::size_t events_begin = text_.size();
  std::vector<std::size_t> begins;  // of each event, in text_
  begins.reserve(order_.size());
  for (const std::size_t index : order_) {
    begins.push_back(text_.size());
    if (rank_.ring.events[index].kind == Kind::kTensor) {
      write_tensor(index);
    } else {
      write_on_track(index);
    }
  }
  // Events that are nested or disjoint remain so when some are omitted.
  RankEvents events;
  events.written = order_.size();
  if (text_.size() > max_bytes) {
    const std::size_t excess = text_.size() - max_bytes;
    const auto first = std::lower_bound(begins.begin(), begins.end(), events_begin + excess);
    events.dropped = static_cast<std::size_t>(first - begins.begin());
    events.written -= events.dropped;
    text_.erase(events_begin, (first == begins.end() ? text_.size() : *first) - events_begin);
  }
  events.text = std::move(text_);
  return events;
}

}  // namespace

RankEvents trace_events(const RankTrace& rank, std::int64_t origin, std::size_t max_bytes) {
  return RankWriter(rank, origin).write(max_bytes);
}

}  // namespace ddl::timeline
