// Faults at named points, for tests: DDL_FAULT=point:rank:n kills rank at the n-th passage of point, and
// DDL_FAULT=point:rank:n:stop stops it there.
//
// Points are "<collective>.<place>", such as allreduce.before_publish and allreduce.after_publish, and init.<place>.
// Without DDL_FAULT_INJECTION a point compiles to nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddl::runtime {

#ifdef DDL_FAULT_INJECTION
inline constexpr bool kFaultInjection = true;
#else
inline constexpr bool kFaultInjection = false;
#endif

struct FaultPlan {
  std::string point;
  int rank = 0;
  std::int64_t passage = 1;  ///< 1 = the first
  bool stops = false;        ///< SIGSTOP instead of SIGKILL

  /// nullopt unless text is point:rank:n or point:rank:n:stop with rank >= 0 and n >= 1.
  static std::optional<FaultPlan> parse(std::string_view text);
};

/// Counts the passages of one rank through the planned point, and kills or stops the process at the planned one.
class FaultInjector {
 public:
  FaultInjector(const std::optional<FaultPlan>& plan, int rank);

  /// Passes the point "<where>.<place>".
  void pass(std::string_view where, std::string_view place) {
    if constexpr (kFaultInjection) {
      if (left_ > 0) count(where, place);
    }
  }

 private:
  void count(std::string_view where, std::string_view place);

  std::string point_;
  std::int64_t left_ = 0;  ///< passages until then; 0 = never
  bool stops_ = false;
};

}  // namespace ddl::runtime
