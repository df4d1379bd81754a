// Faults at named points, for tests: DDL_FAULT=point:rank:n kills rank at the n-th passage of point, and
// DDL_FAULT=point:rank:n:stop stops it there.
//
// Points are "<collective>.<place>", such as allreduce.before_publish, and "init.<place>" while ranks are connected,
// also those of a new process set. Those of named tensors are "agree.<place>", except that batches are named after
// what they execute: allreduce.after_batch. Calls of a process set other than the world pass
// "set.<collective>.<place>", and are counted set by set. Without DDL_FAULT_INJECTION a point compiles to nothing.
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

/// Points that differ for the other ranks, in the order in which a rank passes them. The test of all of them
/// (tests/runtime/fault_matrix_test.cpp) finds out by itself which call passes which point.
enum class FaultPoint : std::uint8_t {
  // While ranks are connected.
  kBeforeFence,     ///< this rank has put the data by which the others find it
  kAfterFence,      ///< all ranks have put theirs
  kAfterHello,      ///< this rank has sent its hello to its host's leader
  kBeforeWelcome,   ///< the leader has received all hellos
  kAfterWelcome,    ///< this rank has mapped the memory and not confirmed it
  kBeforeLinks,     ///< it knows which ranks of other hosts to connect to
  kAfterLinks,      ///< it has its connections
  kBeforeWatching,  ///< everything is connected, but this rank does not watch the others yet
  // In a call.
  kBeforePublish,  ///< of an exchange: this rank has staged its part and not published it
  kAfterPublish,   ///< it has published it, and not seen the parts of all others
  kBeforeDirect,   ///< the ranks know each other's buffers in the shared heap
  kInDirect,       ///< a block of these buffers has been processed
  kBeforeHosts,    ///< the ranks of this host have exchanged; nothing about the call was sent to other hosts
  kInHosts,        ///< a step of the comparison between hosts has been made
  kAfterHosts,     ///< all steps of it have been made
  kBeforeMesh,     ///< connections to further hosts are needed
  kInRound,        ///< chunks are being sent between hosts
  kAfterStage,     ///< a chunk has completed a stage of its route
  // In the making of a process set, between its calls.
  kBeforeJoining,  ///< this rank knows the members of the set
  kAfterJoining,   ///< it has joined, and does not know whether the others have
  kAfterMaking,    ///< all have joined
  // Of named tensors, between their calls.
  kAfterSubmission,  ///< the program has submitted tensors, of which nobody else knows yet
  kBeforeSleep,      ///< there is nothing to do until another rank or the program wakes this one
  kAfterRound,       ///< the ranks have agreed on what to execute, and nothing of it has been executed
  kAfterBatch,       ///< a batch has been executed, and the program does not know it yet
};

/// "before_publish"; null for a value that is not a point.
const char* fault_point_name(FaultPoint point);

struct FaultPlan {
  std::string point;
  int rank = 0;
  std::int64_t passage = 1;  ///< 1 = the first
  bool stops = false;        ///< SIGSTOP instead of SIGKILL

  /// nullopt unless text is point:rank:n or point:rank:n:stop with rank >= 0 and n >= 1.
  static std::optional<FaultPlan> parse(std::string_view text);
};

/// Is called at every passage, for a test that lists the points.
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

  /// For a process set other than the world, once the set has been made.
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
  /// Passages left until the fault, counted together with copies: a process set and its pairs. Null = never.
  std::shared_ptr<std::atomic<std::int64_t>> left_;
  bool stops_ = false;
  bool is_of_set_ = false;
  FaultWatch* watch_;
};

}  // namespace ddl::runtime
