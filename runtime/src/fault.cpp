#include "runtime/src/fault.h"

#include <signal.h>
#include <unistd.h>

#include "base/text.h"

namespace ddl::runtime {

std::optional<FaultPlan> FaultPlan::parse(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 3 || parts.size() > 4 || parts[0].empty()) return std::nullopt;
  if (parts.size() == 4 && parts[3] != "stop") return std::nullopt;
  const auto rank = parse_integer(parts[1]);
  const auto passage = parse_integer(parts[2]);
  if (!rank || *rank < 0 || *rank > INT32_MAX || !passage || *passage < 1) return std::nullopt;
  return FaultPlan{std::string(parts[0]), static_cast<int>(*rank), *passage, parts.size() == 4};
}

FaultInjector::FaultInjector(const std::optional<FaultPlan>& plan, int rank) {
  if (!plan || plan->rank != rank) return;
  point_ = plan->point;
  left_ = plan->passage;
  stops_ = plan->stops;
}

void FaultInjector::count(std::string_view where, std::string_view place) {
  const std::string_view point = point_;
  if (point.size() != where.size() + 1 + place.size() || !point.starts_with(where) || !point.ends_with(place))
    return;
  if (--left_ == 0) ::kill(::getpid(), stops_ ? SIGSTOP : SIGKILL);
}

}  // namespace ddl::runtime
