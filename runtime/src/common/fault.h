// Faults at named points, for tests: DDL_FAULT=point:rank:n kills rank at the n-th passage of point, and
// DDL_FAULT=point:rank:n:stop stops it there.
//
// Points are "<collective>.<place>", such as allreduce.before_publish, and "init.<place>" while ranks are connected, also
// those of a new process set. Calls of a process set other than the world pass "set.<collective>.<place>", and are counted
// set by set. Without DDL_FAULT_INJECTION a point compiles to nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/src/common/call.h"

namespace ddl::runtime {

#ifdef DDL_FAULT_INJECTION
inline constexpr bool kFaultInjection = true;
#else
inline constexpr bool kFaultInjection = false;
#endif

/// Moments that the others can tell from each other, in the order in which a rank comes to them. The test of all of them
/// (tests/runtime/fault_matrix_test.cpp) finds out by itself which call passes which.
enum class FaultPoint : std::uint8_t {
  // While ranks are connected.
  kBeforeFence,     ///< what the others need to find this rank has been put
  kAfterFence,      ///< everybody has put it
  kAfterHello,      ///< this rank has told its host's leader that it is there
  kBeforeWelcome,   ///< the leader: all have
  kAfterWelcome,    ///< this rank maps the memory, and has not said so
  kBeforeLinks,     ///< it knows whom to call on other hosts
  kAfterLinks,      ///< it has its connections
  kBeforeWatching,  ///< all is there, but it does not look after the others yet
  // In a call.
  kBeforePublish,  ///< of an exchange: this rank has staged its part, and not shown it
  kAfterPublish,   ///< it has shown it, and not seen that of all others
  kBeforeDirect,   ///< the ranks know each other's buffers in the shared heap
  kInDirect,       ///< a block of them has been worked on
  kBeforeHosts,    ///< the ranks of this host have exchanged; other hosts have not heard of the call
  kInHosts,        ///< a step of the comparison between hosts has been made
  kAfterHosts,     ///< all steps have been
  kBeforeMesh,     ///< connections to further hosts are needed
  kInRound,        ///< chunks are on their way between hosts
  kAfterStage,     ///< a chunk has come a stage further
  // In the making of a process set, between its calls.
  kBeforeJoining,  ///< this rank knows who is in it
  kAfterJoining,   ///< it has joined, and knows of no other that has
  kAfterMaking,    ///< all have
};

/// "before_publish"; null for what is none.
const char* fault_point_name(FaultPoint point);

struct FaultPlan {
  std::string point;
  int rank = 0;
  std::int64_t passage = 1;  ///< 1 = the first
  bool stops = false;        ///< SIGSTOP instead of SIGKILL

  /// nullopt unless text is point:rank:n or point:rank:n:stop with rank >= 0 and n >= 1.
  static std::optional<FaultPlan> parse(std::string_view text);
};

/// Sees every passage, for a test that looks which there are.
class FaultWatch {
 public:
  FaultWatch() = default;
  virtual ~FaultWatch() = default;
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

  virtual void on_pass(const std::string& point) = 0;
};

/// Counts the passages of one rank through the planned point, and kills or stops the process at the planned one.
class FaultInjector {
 public:
  /// watch outlives the injector and its copies, if there is one.
  FaultInjector(const std::optional<FaultPlan>& plan, int rank, FaultWatch* watch = nullptr);

  /// Of a process set other than the world, for what it does once it has been made.
  FaultInjector of_set() const;

  /// In a call. kNone stands for connecting.
  void pass(CallKind during, FaultPoint point) {
    if constexpr (kFaultInjection) {
      if (left_ || watch_ != nullptr) count(during, point);
    }
  }
  void pass(FaultPoint point) { pass(CallKind::kNone, point); }

 private:
  void count(CallKind during, FaultPoint point);

  std::string point_;
  /// Passages until then, which copies count together: a process set and its pairs. Null = never.
  std::shared_ptr<std::atomic<std::int64_t>> left_;
  bool stops_ = false;
  bool is_of_set_ = false;
  FaultWatch* watch_;
};

}  // namespace ddl::runtime
