#include "timeline/trace_checker.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

namespace ddl::test {
namespace {

using CheckedJson = nlohmann::ordered_json;

/// As Perfetto reads a number of microseconds.
std::int64_t as_nanoseconds(const CheckedJson& value) {
  return static_cast<std::int64_t>(value.get<double>() * 1000);
}

class TraceChecker {
 public:
  void check(const CheckedJson& trace) {
    expect(trace.is_object(), "the text is an object");
    if (!trace.is_object()) return;
    if (trace.contains("displayTimeUnit"))
      expect(trace["displayTimeUnit"] == "ms" || trace["displayTimeUnit"] == "ns",
             "displayTimeUnit is ms or ns");
    if (trace.contains("otherData")) expect(trace["otherData"].is_object(), "otherData is an object");
    const bool has_events = trace.contains("traceEvents") && trace["traceEvents"].is_array();
    expect(has_events, "traceEvents is an array");
    if (!has_events) return;
    for (const CheckedJson& event : trace["traceEvents"]) {
      current_ = &event;
      check_event(event);
    }
    current_ = nullptr;
    for (const auto& [id, names] : open_) expect(names.empty(), "asynchronous event " + id.second + " ends");
    for (const auto& track : used_tracks_) expect(named_tracks_.contains(track), "every track has a name");
    for (const std::int64_t pid : used_pids_) expect(named_pids_.contains(pid), "every process has a name");
  }
  std::vector<std::string> errors;

 private:
  using Track = std::pair<std::int64_t, std::int64_t>;
  using Id = std::pair<std::string, std::string>;

  bool expect(bool is_true, const std::string& what) {
    if (!is_true && errors.size() < 10)
      errors.push_back("not true: " + what + (current_ == nullptr ? "" : ": " + current_->dump()));
    return is_true;
  }
  bool has_text(const CheckedJson& event, const char* key) {
    return expect(event.contains(key) && event[key].is_string() && !event[key].get<std::string>().empty(),
                  std::string(key) + " is text");
  }
  bool has_time(const CheckedJson& event, const char* key) {
    if (!expect(event.contains(key) && event[key].is_number(), std::string(key) + " is a number"))
      return false;
    const auto value = event[key].get<double>();
    return expect(std::isfinite(value) && value >= 0 && value < 9.2e15, std::string(key) + " is in range");
  }

  void check_event(const CheckedJson& event) {
    if (!expect(event.is_object(), "an event is an object")) return;
    for (const char* key : {"pid", "tid"}) {
      if (!expect(event.contains(key) && event[key].is_number_unsigned() &&
                      event[key].get<std::uint64_t>() <= UINT32_MAX,
                  std::string(key) + " is a number of 32 bits"))
        return;
    }
    if (!has_text(event, "ph") || !has_text(event, "name")) return;
    expect(event.contains("args") && event["args"].is_object(), "args is an object");
    for (const auto& [key, value] : event.items()) expect(!value.is_array(), key + " is not an array");
    const Track track(event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>());
    used_pids_.insert(track.first);
    const auto phase = event["ph"].get<std::string>();
    if (phase == "M") {
      check_metadata(event, track);
      return;
    }
    if (!has_time(event, "ts") || !has_text(event, "cat")) return;
    expect(event.begin().key() == "ph" && std::next(event.begin()).key() == "ts",
           "ph and ts are before any text that may have escapes");
    const std::int64_t time = as_nanoseconds(event["ts"]);
    if (phase == "X") {
      if (!has_time(event, "dur")) return;
      check_on_track(track, time, as_nanoseconds(event["dur"]));
    } else if (phase == "i") {
      expect(event.contains("s") && (event["s"] == "g" || event["s"] == "p" || event["s"] == "t"),
             "an instant has a scope");
      used_tracks_.insert(track);
    } else if (phase == "b" || phase == "e") {
      check_async(event, time, phase == "b");
    } else {
      expect(false, "the phase is known");
    }
  }

  void check_metadata(const CheckedJson& event, const Track& track) {
    const auto name = event["name"].get<std::string>();
    const auto& args = event["args"];
    if (name == "process_name" || name == "thread_name") {
      expect(args.contains("name") && args["name"].is_string(), "a name is text");
      if (name == "process_name") expect(named_pids_.insert(track.first).second, "a process has one name");
      if (name == "thread_name") {
        expect(named_tracks_.insert(track).second, "a track has one name");
        expect(tids_.insert(track.second).second, "tids are not used twice");
      }
    } else if (name == "process_sort_index" || name == "thread_sort_index") {
      expect(args.contains("sort_index") && args["sort_index"].is_number_integer(), "an index is a number");
    } else if (name == "process_labels") {
      expect(args.contains("labels") && args["labels"].is_string(), "labels are text");
    } else {
      expect(false, "the metadata is known");
    }
  }

  void check_on_track(const Track& track, std::int64_t begin, std::int64_t duration) {
    used_tracks_.insert(track);
    auto& [latest, ends] = on_track_[track];
    expect(begin >= latest, "events of a track are in order");
    latest = begin;
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    expect(ends.empty() || begin + duration <= ends.back(), "events of a track are nested or disjoint");
    ends.push_back(begin + duration);
  }

  void check_async(const CheckedJson& event, std::int64_t time, bool is_begin) {
    if (!has_text(event, "id")) return;
    const Id id(event["cat"].get<std::string>(), event["id"].get<std::string>());
    auto& names = open_[id];
    auto& latest = latest_of_[id];
    expect(time >= latest, "asynchronous events of an id are in order");
    latest = time;
    const auto name = event["name"].get<std::string>();
    if (is_begin) {
      expect(!names.empty() || ended_.count(id) == 0, "an id is used once");
      names.push_back(name);
    } else if (expect(!names.empty() && names.back() == name, "what ends has begun")) {
      names.pop_back();
      if (names.empty()) ended_.insert(id);
    }
  }

  const CheckedJson* current_ = nullptr;
  std::set<std::int64_t> used_pids_, named_pids_, tids_;
  std::set<Track> used_tracks_, named_tracks_;
  std::map<Track, std::pair<std::int64_t, std::vector<std::int64_t>>> on_track_;  ///< last begin; open ends
  std::map<Id, std::vector<std::string>> open_;
  std::map<Id, std::int64_t> latest_of_;
  std::set<Id> ended_;
};

}  // namespace

std::vector<std::string> trace_errors(const std::string& text) {
  const auto trace = CheckedJson::parse(text, nullptr, false);
  if (trace.is_discarded()) return {"the text is not JSON in UTF-8"};
  TraceChecker checker;
  checker.check(trace);
  return checker.errors;
}

std::vector<std::string> event_errors(const std::string& events) {
  return trace_errors("{\"traceEvents\":[" + events + "]}");
}

}  // namespace ddl::test
