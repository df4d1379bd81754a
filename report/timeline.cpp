#include "report/timeline.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <streambuf>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/text.h"
#include "timeline/json_text.h"

namespace ddl::report {
namespace {

using Event = Timeline::Event;

/// No time is later, so that sums of two do not overflow.
constexpr std::int64_t kLatest = std::int64_t{1} << 61;
constexpr std::size_t kLongestText = 500;

/// The bytes of a file for the parser. A text or number may not be longer than kLongestToken, because the parser keeps it
/// as a whole.
class Source : public std::streambuf {
 public:
  Source(const ReadSome& read_some, std::uint64_t most_bytes)
      : read_some_(read_some), most_bytes_(most_bytes) {}

  /// The parser has reached the next token.
  void reach_token() { last_token_ = read_; }
  /// Why the bytes have ended before the file has; none: they have not.
  const std::optional<Error>& error() const { return error_; }
  bool has_ended() const { return has_ended_; }
  bool is_empty() const { return read_ == 0; }

 protected:
  int_type underflow() override {
    constexpr std::uint64_t kLongestToken = std::uint64_t{1} << 20;
    if (has_ended_) return traits_type::eof();
    if (read_ - last_token_ > kLongestToken)
      return stop(Error(ErrorCode::kInvalidArgument, "it has a text of more than 1 MiB"));
    auto count = read_some_(buffer_);
    if (!count) return stop(std::move(count.error()));
    read_ += *count;
    if (read_ > most_bytes_)
      return stop(Error(ErrorCode::kInvalidArgument,
                        "it has more than " + std::to_string(most_bytes_ >> 20) + " MiB"));
    has_ended_ = *count == 0;
    if (has_ended_) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + *count);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  int_type stop(Error error) {
    error_ = std::move(error);
    has_ended_ = true;
    return traits_type::eof();
  }

  const ReadSome& read_some_;
  std::uint64_t most_bytes_;
  std::uint64_t read_ = 0;
  std::uint64_t last_token_ = 0;
  bool has_ended_ = false;
  std::optional<Error> error_;
  std::array<char, std::size_t{1} << 16> buffer_{};
};

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestText) return std::string(text);
  const std::string_view head = text.substr(0, kLongestText);
  return std::string(head.substr(0, head.size() - incomplete_utf8_tail(head))) + "\u2026";
}

/// A text, number or truth value of the file.
struct Scalar {
  std::string_view text;        ///< empty, if it is none
  std::int64_t integer = 0;     ///< the nearest one, if it is a number
  std::int64_t thousandth = 0;  ///< the greatest integer that is not above 1000 times the number
  std::string json;             ///< as JSON, only of what is a member of "args"
};

/// Texts as numbers in the order in which they come.
class Numbering {
 public:
  /// The number, and whether it is a new one.
  std::pair<std::uint32_t, bool> number_of(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(numbers_.size()));
    return {found->second, is_new};
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// Takes the tokens of the text, in the order of the file. What it does not know it skips.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(Source& source) : source_(source) {}

  bool null() override { return take({}); }
  bool boolean(bool value) override { return take({{}, 0, 0, value ? "true" : "false"}); }
  bool number_integer(std::int64_t value) override { return take_number(value, static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) override {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return take_number(static_cast<std::int64_t>(std::min(value, kMost)), static_cast<double>(value));
  }
  bool number_float(double value, const std::string& digits) override;
  bool string(std::string& text) override;
  bool binary(binary_t& /*bytes*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return enter(false); }
  bool start_array(std::size_t /*size*/) override { return enter(true); }
  bool key(std::string& text) override {
    source_.reach_token();
    key_ = text;
    return true;
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    position_ = position;
    return false;
  }

  /// After the last token.
  Result<Timeline> finish(bool is_valid);

 private:
  /// What the innermost object or list is.
  enum class Place {
    kTop,
    kEvents,
    kEvent,
    kArguments,
    kOther,
    kHosts,
    kHost,
    kIncomplete,
    kMissing,
    kRank,
    kSkipped
  };
  static constexpr std::size_t kDeepest = 32;

  /// What the file says about one event.
  struct Draft {
    char phase = '\0';
    std::int64_t time = 0, duration = 0;
    std::int64_t rank = 0, track = 0;
    std::string name, category, id;
    std::string details;  ///< JSON
    std::uint64_t call_number = 0;
    std::string text;        ///< "name" or "labels" of "args"
    std::int64_t index = 0;  ///< "sort_index" of "args"
  };
  struct TrackDraft {
    std::string name;
    std::int64_t index = 0;
    std::vector<Event> events;
  };
  struct RankDraft {
    std::string name, note;
    std::map<std::int64_t, TrackDraft> tracks;
    std::vector<Event> tensors;
  };
  /// A named tensor whose end has not come.
  struct OpenTensor {
    Event event;
    std::size_t open = 1;      ///< begins without an end: the tensor's, and of phases in it
    bool has_started = false;  ///< its call has begun, or its wait is over
  };

  Place place_of(bool is_list) const;
  bool enter(bool is_list);
  bool leave();
  bool take(const Scalar& value);
  bool take_number(std::int64_t integer, double value);
  bool is_argument() const { return !places_.empty() && places_.back() == Place::kArguments; }
  void take_member(const Scalar& value);
  void take_argument(const Scalar& value);
  void take_other(const Scalar& value);
  void add_event();
  void add_metadata(RankDraft& rank);
  void add_tensor(RankDraft& rank);
  void add_note_of_entry(Place place);
  std::uint32_t title();
  std::uint32_t details();
  std::vector<std::string> notes() const;

  Source& source_;
  std::vector<Place> places_;
  std::string key_;
  std::size_t position_ = 0;  // of what is not JSON
  bool is_too_deep_ = false;
  Draft draft_;
  Timeline timeline_;
  Numbering titles_, details_;
  std::map<std::int64_t, RankDraft> ranks_;
  std::unordered_map<std::string, OpenTensor> open_tensors_;
  bool has_events_ = false, has_origin_ = false;
  // Of the entry of otherData that is read, and of all.
  std::string entry_name_, entry_reason_;
  bool entry_is_aligned_ = true;
  std::int64_t entry_lost_ = 0;
  std::int64_t lost_events_ = 0, incomplete_ranks_ = 0, missing_ranks_ = 0;
  std::string unaligned_;
};

Reader::Place Reader::place_of(bool is_list) const {
  if (places_.empty()) return is_list ? Place::kSkipped : Place::kTop;
  switch (places_.back()) {
    case Place::kTop:
      if (is_list) return key_ == "traceEvents" ? Place::kEvents : Place::kSkipped;
      return key_ == "otherData" ? Place::kOther : Place::kSkipped;
    case Place::kEvents: return is_list ? Place::kSkipped : Place::kEvent;
    case Place::kEvent: return !is_list && key_ == "args" ? Place::kArguments : Place::kSkipped;
    case Place::kOther:
      if (is_list && key_ == "hosts") return Place::kHosts;
      if (is_list && key_ == "incomplete_ranks") return Place::kIncomplete;
      return is_list && key_ == "missing_ranks" ? Place::kMissing : Place::kSkipped;
    case Place::kHosts: return is_list ? Place::kSkipped : Place::kHost;
    case Place::kIncomplete:
    case Place::kMissing: return is_list ? Place::kSkipped : Place::kRank;
    default: return Place::kSkipped;
  }
}

bool Reader::enter(bool is_list) {
  source_.reach_token();
  is_too_deep_ = places_.size() == kDeepest;
  if (is_too_deep_) return false;
  const Place place = place_of(is_list);
  if (place == Place::kRank && places_.back() == Place::kMissing) ++missing_ranks_;
  places_.push_back(place);
  if (place == Place::kEvents) has_events_ = true;
  if (place == Place::kEvent) draft_ = {};
  if (place == Place::kHost || place == Place::kRank) {
    entry_name_.clear();
    entry_reason_.clear();
    entry_is_aligned_ = true;
    entry_lost_ = 0;
  }
  return true;
}

bool Reader::leave() {
  source_.reach_token();
  const Place place = places_.back();
  places_.pop_back();
  if (place == Place::kEvent) add_event();
  if (place == Place::kHost || place == Place::kRank) add_note_of_entry(place);
  return true;
}

bool Reader::number_float(double value, const std::string& /*digits*/) {
  return take_number(static_cast<std::int64_t>(std::clamp(value, -0x1p61, 0x1p61)), value);
}

bool Reader::take_number(std::int64_t integer, double value) {
  Scalar scalar;
  scalar.integer = integer;
  // As Perfetto reads it: timeline::append_microseconds() writes numbers for which this is exact.
  scalar.thousandth = static_cast<std::int64_t>(std::clamp(value * 1000, 0.0, static_cast<double>(kLatest)));
  if (is_argument()) {
    std::array<char, 40> digits{};
    const bool is_exact = static_cast<double>(integer) == value;
    const auto end = is_exact ? std::to_chars(digits.data(), digits.data() + digits.size(), integer)
                              : std::to_chars(digits.data(), digits.data() + digits.size(), value);
    scalar.json.assign(digits.data(), end.ptr);
  }
  return take(scalar);
}

bool Reader::string(std::string& text) {
  Scalar scalar;
  scalar.text = text;
  if (is_argument()) timeline::append_quoted(scalar.json, shortened(text));
  return take(scalar);
}

bool Reader::take(const Scalar& value) {
  source_.reach_token();
  if (places_.empty()) return true;  // the whole text is one value
  switch (places_.back()) {
    case Place::kEvent: take_member(value); break;
    case Place::kArguments: take_argument(value); break;
    case Place::kOther:
    case Place::kHost:
    case Place::kRank: take_other(value); break;
    default: break;
  }
  return true;
}

void Reader::take_member(const Scalar& value) {
  if (key_ == "ph") {
    draft_.phase = value.text.empty() ? '\0' : value.text.front();
  } else if (key_ == "ts") {
    draft_.time = value.thousandth;
  } else if (key_ == "dur") {
    draft_.duration = value.thousandth;
  } else if (key_ == "pid") {
    draft_.rank = value.integer;
  } else if (key_ == "tid") {
    draft_.track = value.integer;
  } else if (key_ == "name") {
    draft_.name = shortened(value.text);
  } else if (key_ == "cat") {
    draft_.category = shortened(value.text);
  } else if (key_ == "id") {
    draft_.id = shortened(value.text);
  }
}

void Reader::take_argument(const Scalar& value) {
  if (key_ == "call_number" && value.integer > 0) {
    draft_.call_number = static_cast<std::uint64_t>(value.integer);
    return;
  }
  if (key_ == "name" || key_ == "labels") draft_.text = shortened(value.text);
  if (key_ == "sort_index") draft_.index = value.integer;
  if (value.json.empty()) return;
  draft_.details += draft_.details.empty() ? "[" : ",[";
  timeline::append_quoted(draft_.details, shortened(key_));
  draft_.details += ',' + value.json + ']';
}

void Reader::take_other(const Scalar& value) {
  if (key_ == "origin_ns") has_origin_ = true;
  if (key_ == "version") timeline_.version = shortened(value.text);
  if (key_ == "name") entry_name_ = shortened(value.text);
  if (key_ == "reason") entry_reason_ = shortened(value.text);
  if (key_ == "is_aligned") entry_is_aligned_ = value.json != "false";
  if (key_ == "overwritten" || key_ == "dropped")
    entry_lost_ += std::clamp<std::int64_t>(value.integer, 0, kLatest / 4);
}

void Reader::add_note_of_entry(Place place) {
  if (entry_lost_ > 0) {
    ++incomplete_ranks_;
    lost_events_ = std::min(lost_events_ + entry_lost_, kLatest);
  }
  if (place != Place::kHost || entry_is_aligned_) return;
  unaligned_ = unaligned_.empty() ? "the times of " + entry_name_ +
                                        " cannot be compared with those of other hosts: " + entry_reason_
                                  : unaligned_;
}

std::uint32_t Reader::title() {
  const bool is_moment = draft_.phase == 'i';
  const auto [number, is_new] =
      titles_.number_of(draft_.name + '\0' + draft_.category + (is_moment ? '1' : '0'));
  if (is_new) timeline_.titles.push_back({draft_.name, draft_.category, is_moment});
  return number;
}

std::uint32_t Reader::details() {
  std::string list = "[" + draft_.details + "]";
  const auto [number, is_new] = details_.number_of(list);
  if (is_new) timeline_.details.push_back(std::move(list));
  return number;
}

void Reader::add_event() {
  constexpr std::string_view kKnown = "MXibe";
  if (draft_.phase == '\0' || kKnown.find(draft_.phase) == std::string_view::npos) return;
  RankDraft& rank = ranks_[draft_.rank];
  if (draft_.phase == 'M') return add_metadata(rank);
  if (draft_.phase == 'b' || draft_.phase == 'e') return add_tensor(rank);
  const std::int64_t duration = draft_.phase == 'i' ? 0 : draft_.duration;
  rank.tracks[draft_.track].events.push_back(
      {draft_.time, duration, 0, draft_.call_number, title(), details()});
}

void Reader::add_metadata(RankDraft& rank) {
  if (draft_.name == "process_name") rank.name = draft_.text;
  if (draft_.name == "process_labels") rank.note = draft_.text;
  if (draft_.name == "thread_name") rank.tracks[draft_.track].name = draft_.text;
  if (draft_.name == "thread_sort_index") rank.tracks[draft_.track].index = draft_.index;
}

/// A tensor begins and ends with its own name; in between, "waiting" and the call begin and end (timeline/trace.cpp).
void Reader::add_tensor(RankDraft& rank) {
  const auto found = open_tensors_.find(draft_.id);
  if (draft_.phase == 'b') {
    if (found == open_tensors_.end()) {
      open_tensors_[draft_.id].event = {draft_.time, 0, 0, draft_.call_number, title(), details()};
      return;
    }
    OpenTensor& tensor = found->second;
    ++tensor.open;
    if (draft_.name != "waiting" && !tensor.has_started) {
      tensor.has_started = true;
      tensor.event.waited = draft_.time - tensor.event.begin;
    }
    return;
  }
  if (found == open_tensors_.end()) return;
  OpenTensor& tensor = found->second;
  if (--tensor.open != 0) return;
  Event event = tensor.event;
  const bool has_started = tensor.has_started;
  open_tensors_.erase(found);
  event.duration = std::max<std::int64_t>(draft_.time - event.begin, 0);
  event.waited = has_started ? std::clamp<std::int64_t>(event.waited, 0, event.duration) : event.duration;
  if (!draft_.details.empty()) {
    // Of its end: why there is none.
    const std::string& first = timeline_.details[event.details];
    draft_.details.insert(0, first.substr(1, first.size() - 2) + (first.size() > 2 ? "," : ""));
    event.details = details();
  }
  rank.tensors.push_back(event);
}

std::vector<std::string> Reader::notes() const {
  std::vector<std::string> list;
  if (lost_events_ > 0)
    list.push_back("the oldest " + counted(lost_events_, "event") + " of " +
                   counted(incomplete_ranks_, "rank") + " are not in the timeline");
  if (missing_ranks_ > 0)
    list.push_back("the events of " + counted(missing_ranks_, "rank") + " are not known");
  if (!unaligned_.empty()) list.push_back(unaligned_);
  return list;
}

void sort(std::vector<Event>& events) {
  const auto is_before = [](const Event& a, const Event& b) {
    return std::pair(a.begin, -a.duration) < std::pair(b.begin, -b.duration);
  };
  if (!std::is_sorted(events.begin(), events.end(), is_before))
    std::stable_sort(events.begin(), events.end(), is_before);
}

Result<Timeline> Reader::finish(bool is_valid) {
  if (source_.error()) return fail(*source_.error());
  if (source_.is_empty()) return refuse("it is empty");
  if (is_too_deep_) return refuse("it has lists in lists, more than 32 of them, and is no timeline");
  if (!is_valid && source_.has_ended())
    return refuse("it ends too early, after " + counted(static_cast<std::int64_t>(position_) - 1, "byte"));
  if (!is_valid) return refuse("it is not valid JSON at byte " + std::to_string(position_));
  if (!has_events_ || !has_origin_) return refuse("it is JSON, but no timeline of ddlrun or libddl");
  timeline_.notes = notes();
  for (auto& [number, draft] : ranks_) {
    Timeline::Rank rank;
    rank.name = draft.name.empty() ? "rank " + std::to_string(number) : std::move(draft.name);
    rank.note = std::move(draft.note);
    std::vector<std::pair<std::int64_t, Timeline::Track>> tracks;
    for (auto& [id, track] : draft.tracks) {
      if (track.events.empty()) continue;
      tracks.push_back({track.index,
                        {track.name.empty() ? "track " + std::to_string(id) : std::move(track.name), false,
                         std::move(track.events)}});
    }
    std::stable_sort(tracks.begin(), tracks.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!draft.tensors.empty()) tracks.push_back({0, {"tensors", true, std::move(draft.tensors)}});
    for (auto& [index, track] : tracks) {
      sort(track.events);
      rank.tracks.push_back(std::move(track));
    }
    timeline_.ranks.push_back(std::move(rank));
  }
  if (timeline_.count() == 0) return refuse("it has no events");
  return std::move(timeline_);
}

}  // namespace

std::size_t Timeline::count() const {
  std::size_t sum = 0;
  for (const Rank& rank : ranks)
    for (const Track& track : rank.tracks) sum += track.events.size();
  return sum;
}

Result<Timeline> read_timeline(const ReadSome& read_some, std::uint64_t most_bytes) {
  const auto source = std::make_unique<Source>(read_some, most_bytes);
  std::istream stream(source.get());
  Reader reader(*source);
  const bool is_valid = nlohmann::json::sax_parse(stream, &reader);
  return reader.finish(is_valid);
}

}  // namespace ddl::report
