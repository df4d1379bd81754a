#include "runtime/src/common/fault.h"

#include <signal.h>
#include <unistd.h>

#include "base/text.h"

namespace ddl::runtime {
namespace {

/// The prefix of the point's name. The call kind of making sets has a name with spaces, which is for messages only.
const char* phase_name(CallKind during) {
  if (during == CallKind::kNone) return "init";
  if (during == CallKind::kMakeSets) return "make_sets";
  if (during == CallKind::kAgree) return "agree";
  return call_kind_name(during);
}

}  // namespace

const char* fault_point_name(FaultPoint point) {
  switch (point) {
    case FaultPoint::kBeforeFence: return "before_fence";
    case FaultPoint::kAfterFence: return "after_fence";
    case FaultPoint::kAfterHello: return "after_hello";
    case FaultPoint::kBeforeWelcome: return "before_welcome";
    case FaultPoint::kAfterWelcome: return "after_welcome";
    case FaultPoint::kBeforeLinks: return "before_links";
    case FaultPoint::kAfterLinks: return "after_links";
    case FaultPoint::kBeforeWatching: return "before_watching";
    case FaultPoint::kBeforePublish: return "before_publish";
    case FaultPoint::kAfterPublish: return "after_publish";
    case FaultPoint::kBeforeDirect: return "before_direct";
    case FaultPoint::kInDirect: return "in_direct";
    case FaultPoint::kBeforeHosts: return "before_hosts";
    case FaultPoint::kInHosts: return "in_hosts";
    case FaultPoint::kAfterHosts: return "after_hosts";
    case FaultPoint::kBeforeMesh: return "before_mesh";
    case FaultPoint::kInRound: return "in_round";
    case FaultPoint::kAfterStage: return "after_stage";
    case FaultPoint::kBeforeJoining: return "before_joining";
    case FaultPoint::kAfterJoining: return "after_joining";
    case FaultPoint::kAfterMaking: return "after_making";
    case FaultPoint::kAfterSubmission: return "after_submission";
    case FaultPoint::kBeforeSleep: return "before_sleep";
    case FaultPoint::kAfterRound: return "after_round";
    case FaultPoint::kAfterBatch: return "after_batch";
  }
  return nullptr;
}

std::optional<FaultPlan> FaultPlan::parse(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 3 || parts.size() > 4 || parts[0].empty()) return std::nullopt;
  if (parts.size() == 4 && parts[3] != "stop") return std::nullopt;
  const auto rank = parse_integer(parts[1]);
  const auto passage = parse_integer(parts[2]);
  if (!rank || *rank < 0 || *rank > INT32_MAX || !passage || *passage < 1) return std::nullopt;
  return FaultPlan{std::string(parts[0]), static_cast<int>(*rank), *passage, parts.size() == 4};
}

FaultInjector::FaultInjector(const std::optional<FaultPlan>& plan, int rank, FaultWatch* watch)
    : watch_(watch) {
  if (!plan || plan->rank != rank) return;
  point_ = plan->point;
  left_ = std::make_shared<std::atomic<std::int64_t>>(plan->passage);
  stops_ = plan->stops;
}

FaultInjector FaultInjector::of_set() const {
  FaultInjector injector = *this;
  injector.is_of_set_ = true;
  if (left_) injector.left_ = std::make_shared<std::atomic<std::int64_t>>(left_->load());
  return injector;
}

void FaultInjector::count(CallKind during, FaultPoint point) {
  const std::string passed =
      std::string(is_of_set_ ? "set." : "") + phase_name(during) + "." + fault_point_name(point);
  if (watch_ != nullptr) watch_->on_pass(passed);
  if (left_ && passed == point_ && --*left_ == 0) ::kill(::getpid(), stops_ ? SIGSTOP : SIGKILL);
}

}  // namespace ddl::runtime
