// A process set. Part of ddl.hpp.
#ifndef DDL_PROCESS_SET_HPP
#define DDL_PROCESS_SET_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/ddl.h"
#include "ddl/error.hpp"

namespace ddl {

/// A key-value store of the program, through which the members of a new process set find each other; see ddl_store.
/// What a function throws ends the making of the set, on the other members with an Error.
class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Stores the value, in place of an earlier one.
  virtual void put(const std::string& key, const std::string& value) = 0;
  /// Waits up to this number of seconds for a value; nullopt: none has come.
  virtual std::optional<std::string> get(const std::string& key, double seconds) = 0;
};

namespace detail {

/// A Store as ddl.h takes it.
class StoreFunctions {
 public:
  StoreFunctions(Store& store, double timeout_seconds) : store_(store) {
    functions_.put = [](void* self, const char* key, const void* value, std::uint64_t bytes) noexcept {
      return static_cast<StoreFunctions*>(self)->put(key, value, bytes);
    };
    functions_.get = [](void* self, const char* key, double seconds, void* value,
                        std::uint64_t capacity) noexcept {
      return static_cast<StoreFunctions*>(self)->get(key, seconds, value, capacity);
    };
    functions_.argument = this;
    functions_.timeout_seconds = timeout_seconds;
  }
  StoreFunctions(const StoreFunctions&) = delete;
  StoreFunctions& operator=(const StoreFunctions&) = delete;

  const ddl_store* functions() const { return &functions_; }
  /// Throws what the store has thrown.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static constexpr int kThrown = -2;

  std::int32_t put(const char* key, const void* value, std::uint64_t bytes) noexcept try {
    store_.put(key, std::string(static_cast<const char*>(value), static_cast<std::size_t>(bytes)));
    return 0;
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
    return kThrown;
  }
  std::int64_t get(const char* key, double seconds, void* value, std::uint64_t capacity) noexcept try {
    const std::optional<std::string> got = store_.get(key, seconds);
    if (!got) return -1;
    std::memcpy(value, got->data(), std::min<std::size_t>(got->size(), static_cast<std::size_t>(capacity)));
    return static_cast<std::int64_t>(got->size());
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
    return kThrown;
  }

  Store& store_;
  ddl_store functions_ = DDL_STORE_INIT;
  std::exception_ptr thrown_;
};

}  // namespace detail

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
