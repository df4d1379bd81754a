// Calls of a framework's program as named tensors of libddl, in the context that Python has made: frameworks call
// kernels on threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <string>
#include <vector>

#include <ddl/ddl.h>

namespace ddl::kernels {

/// While it lives, the context is not left.
struct Joined {
  std::shared_lock<std::shared_mutex> lock;
  ddl_context* context;  ///< null: none; kNotJoined says what to do
};
Joined joined();
inline constexpr const char* kNotJoined =
    "this process has not joined the job, or has left it; call init() before the computation runs";

enum class Kind { kAllreduce, kAllgather, kBroadcast, kAlltoall, kReduceScatter };

/// A tensor that goes in, and the memory that its result goes to.
struct Part {
  const void* send = nullptr;  ///< of a broadcast not used: the elements lie in recv
  void* recv = nullptr;        ///< of kAllgather and kAlltoall not used: libddl allocates their results
  std::uint64_t count = 0;     ///< elements of what goes in
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<std::uint64_t> shape{};
  std::vector<std::uint64_t> rank_counts{};  ///< of kAlltoall and kReduceScatter: the elements for each rank
};

struct Request {
  Kind kind = Kind::kAllreduce;
  std::string name;  ///< of the call, the same on all ranks
  ddl_op op = DDL_SUM;
  std::int32_t root = 0;
  std::uint64_t process_set = DDL_WORLD;
  double prescale = 1.0;
  double postscale = 1.0;
  bool fails_if_joined = false;  ///< as in ddl_async_options
  std::vector<Part> parts;       ///< several: a group, which is executed together
};

/// What libddl has allocated for a part of kAllgather or kAlltoall, and how many elements came from each rank.
struct Gathered {
  void* memory = nullptr;
  std::vector<std::uint64_t> counts{};
};

struct Outcome {
  ddl_status status = DDL_OK;
  std::string sentence{};            ///< of an error
  std::vector<Gathered> gathered{};  ///< of each part
  ddl_context* context = nullptr;    ///< of the call

  /// Called by the completion before it lets the framework go on: the context may be left then.
  void free_gathered();
};
/// Called once, on the thread that has started the call or on one of libddl's, where it must not wait.
using Completion = std::function<void(Outcome&)>;

/// Whole rows of a tensor for each of these ranks, of which the first get one more: kReduceScatter's parts.
std::vector<std::uint64_t> scattered_rows(std::uint64_t rows, std::size_t ranks);

/// Submits a request. Never waits. Calls of the same name and process set are submitted one after the other, in the
/// order in which they begin. The request's memory must remain until the completion is called.
void start(Request request, Completion completion);

}  // namespace ddl::kernels
