// A process set. Part of ddl.hpp.
#ifndef DDL_PROCESS_SET_HPP
#define DDL_PROCESS_SET_HPP

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/ddl.h"
#include "ddl/error.hpp"

namespace ddl {

/// A process set of the job, made by Context::process_set() or Context::split(). Movable, not copyable; its
/// destructor leaves the set, and must run before the Context's does. A rank that is not a member gets an object too;
/// its is_member() is false.
///
/// It converts to the CallOptions and the AsyncOptions that name it: context.allreduce(values, ddl::Op::sum, set).
class ProcessSet {
 public:
  ProcessSet() = default;
  ~ProcessSet() { free(); }
  ProcessSet(ProcessSet&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), id_(std::exchange(other.id_, DDL_NO_PROCESS_SET)) {}
  ProcessSet& operator=(ProcessSet&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(id_, other.id_);
    return *this;
  }
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;

  /// For CallOptions::process_set; DDL_NO_PROCESS_SET if this rank is not a member.
  std::uint64_t id() const noexcept { return id_; }
  bool is_member() const noexcept { return id_ != DDL_NO_PROCESS_SET; }
  /// This rank's rank in the set and the number of its ranks; -1 if this rank is not a member.
  int rank() const { return is_member() ? ddl_process_set_rank(context_, id_) : -1; }
  int size() const { return is_member() ? ddl_process_set_size(context_, id_) : -1; }
  /// The rank in the job of each rank of the set; empty if this rank is not a member.
  std::vector<std::int32_t> ranks() const {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(is_member() ? size() : 0));
    if (is_member()) detail::check(ddl_process_set_ranks(context_, id_, ranks.data()));
    return ranks;
  }
  /// Leaves the set before the destructor does.
  void free() noexcept {
    if (context_ != nullptr) (void)ddl_process_set_free(context_, id_);
    context_ = nullptr;
    id_ = DDL_NO_PROCESS_SET;
  }

  CallOptions options() const {
    CallOptions options;
    options.process_set = id_;
    return options;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): so that a set is given in place of the options
  operator CallOptions() const { return options(); }
  AsyncOptions async_options() const {
    AsyncOptions options;
    options.process_set = id_;
    return options;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  operator AsyncOptions() const { return async_options(); }

 private:
  friend class Context;
  ProcessSet(ddl_context* context, std::uint64_t id) : context_(context), id_(id) {}

  ddl_context* context_ = nullptr;
  std::uint64_t id_ = DDL_NO_PROCESS_SET;
};

}  // namespace ddl

#endif  // DDL_PROCESS_SET_HPP
