#include "launcher/job/rank_history.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "timeline/event_text.h"

namespace ddl::launcher {
namespace {

using contract::Event;

/// Whether a rank is in this kind of event, and not only has it open.
bool is_work(const Event& event) {
  using enum Event::Kind;
  return event.kind == kCall || event.kind == kAgreement || event.kind == kBatch || event.kind == kWait ||
         event.kind == kRange;
}

std::string name_of(const Event& event) {
  return {event.name.data(), ::strnlen(event.name.data(), event.name.size())};
}

std::string text_of(const Event& event) {
  const char* const call = timeline::call_name(event);
  switch (event.kind) {
    case Event::Kind::kCall: return fmt::format("{} #{}", call == nullptr ? "a call" : call, event.call);
    case Event::Kind::kAgreement: return "agreeing on named tensors";
    case Event::Kind::kBatch:
      return fmt::format("{} of {}, the first of them \"{}\"", call == nullptr ? "a call" : call,
                         counted(event.tensors, "named tensor"), name_of(event));
    case Event::Kind::kWait:
      return name_of(event) == "ddl_join" ? "ddl_join" : "a wait for tensor \"" + name_of(event) + "\"";
    default: return "\"" + name_of(event) + "\"";
  }
}

double seconds_between(std::int64_t from, std::int64_t to) {
  constexpr double kNanoseconds = 1e9;
  return std::max(static_cast<double>(to) - static_cast<double>(from), 0.0) / kNanoseconds;
}

}  // namespace

std::string last_work(const RankHistory& history, double& seconds) {
  // Its events are those of a program before.
  if (history.joining_since != 0) {
    seconds = seconds_between(history.joining_since, history.now);
    return "ddl_init";
  }
  const Event* inside = nullptr;
  const Event* before = nullptr;
  for (const Event& event : history.events) {
    if (!is_work(event)) continue;
    // The innermost one began last.
    if (event.end == Event::kOpen) {
      inside = &event;
    } else if (before == nullptr || event.end >= before->end) {
      before = &event;
    }
  }
  seconds = 0;
  if (inside != nullptr) {
    seconds = seconds_between(inside->begin, history.now);
    return text_of(*inside);
  }
  if (before == nullptr) return "";
  seconds = seconds_between(before->end, history.now);
  return "user code after " + text_of(*before) + (before->status == 0 ? "" : ", which failed,");
}

std::vector<std::string> last_work_sentences(const std::vector<RankHistory>& histories) {
  struct Group {
    std::vector<int> ranks;
    double seconds = 0;
  };
  std::map<std::string, Group> groups;
  for (const RankHistory& history : histories) {
    double seconds = 0;
    const std::string work = last_work(history, seconds);
    if (work.empty()) continue;
    Group& group = groups[work];
    group.ranks.push_back(history.rank);
    group.seconds = std::max(group.seconds, seconds);
  }
  std::vector<std::pair<int, std::string>> sentences;
  for (auto& [work, group] : groups) {
    std::sort(group.ranks.begin(), group.ranks.end());
    std::vector<std::string> numbers;
    for (const int rank : group.ranks) numbers.push_back(std::to_string(rank));
    const bool is_one = numbers.size() == 1;
    sentences.emplace_back(
        group.ranks.front(),
        fmt::format("rank{} {} {} in {} for {:.{}f} s", is_one ? "" : "s", join(numbers, ", "),
                    is_one ? "was" : "were", work, group.seconds, group.seconds < 10 ? 3 : 0));
  }
  std::sort(sentences.begin(), sentences.end());
  std::vector<std::string> texts;
  for (auto& [rank, sentence] : sentences) texts.push_back(std::move(sentence));
  return texts;
}

}  // namespace ddl::launcher
