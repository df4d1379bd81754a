// Many random steps of named tensors: of all kinds and sizes, in orders of each rank's own, by several threads at once,
// in groups and process sets, with ranks that join. Beside them the program makes the ordered collectives with the same
// data, and the bits must be the same.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

using Random = std::mt19937;
using Bytes = std::vector<std::byte>;

constexpr int kThreads = 3;
constexpr int kNames = 24;

int below(Random& random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

enum class TensorKind { kAllreduce, kReduceScatter, kBroadcast, kAllgather, kAllgatherv, kAlltoallv };

/// A tensor of a step, the same on all ranks.
struct Planned {
  std::string name;
  TensorKind kind = TensorKind::kAllreduce;
  ddl_dtype dtype = DDL_FLOAT32;
  ddl_op op = DDL_SUM;
  std::size_t count = 0;
  int root = 0;
  int priority = 0;
  bool in_half = false;  ///< a tensor of the half of the ranks that this one is in
  std::string group;
  std::uint32_t group_size = 0;
  int thread = 0;
  /// The threads wait for all tensors of a section before they submit the next.
  int section = 0;
};
using Plan = std::vector<Planned>;

Planned plan_tensor(int name, Random& random) {
  constexpr std::array kTensorTypes{DDL_FLOAT32, DDL_FLOAT64, DDL_INT32, DDL_UINT8};
  constexpr std::array kTensorOps{DDL_SUM, DDL_SUM, DDL_SUM, DDL_AVERAGE, DDL_MIN, DDL_MAX};
  Planned tensor;
  tensor.name = "tensor " + std::to_string(name);
  // Allreduces of floats mostly, so that some are executed together.
  if (below(random, 3) == 0) tensor.kind = static_cast<TensorKind>(below(random, 6));
  if (below(random, 3) == 0) tensor.dtype = kTensorTypes[random() % kTensorTypes.size()];
  if (below(random, 3) == 0) tensor.op = kTensorOps[random() % kTensorOps.size()];
  tensor.count = static_cast<std::size_t>(below(random, below(random, 10) == 0 ? 20000 : 500));
  tensor.root = below(random, 2);
  tensor.priority = below(random, 8) == 0 ? below(random, 3) - 1 : 0;
  tensor.in_half = below(random, 5) == 0;
  tensor.thread = below(random, kThreads);
  tensor.section = below(random, 4) == 0 ? 1 : 0;
  return tensor;
}

Plan plan_step(Random& random) {
  std::vector<int> names(kNames);
  for (int i = 0; i < kNames; ++i) names[static_cast<std::size_t>(i)] = i;
  std::shuffle(names.begin(), names.end(), random);
  Plan plan;
  const int tensors = 1 + below(random, kNames);
  for (int i = 0; i < tensors; ++i) plan.push_back(plan_tensor(names[static_cast<std::size_t>(i)], random));
  if (tensors > 3 && below(random, 3) == 0) {
    for (std::size_t i = 0; i < 3; ++i) {
      plan[i].group = "group";
      plan[i].group_size = 3;
      plan[i].in_half = false;
      // Members of a group wait for each other.
      plan[i].section = 0;
    }
  }
  return plan;
}

/// The buffers of one call, and what it needs beside them.
struct TensorBuffers {
  Bytes send, recv;
  std::vector<std::uint64_t> counts;  ///< of each rank, or for each rank
  std::vector<std::uint64_t> recv_counts;
  void* result = nullptr;
};

/// The root's rank in a process set of this number of ranks.
int root_of(const Planned& tensor, int ranks) { return tensor.root % ranks; }

/// What a rank gives of a tensor in a step; any bytes but for floats that are not numbers.
TensorBuffers buffers_of(const Planned& tensor, int step, int rank, int ranks) {
  TensorBuffers buffers;
  const std::size_t element = ddl_dtype_size(tensor.dtype);
  const auto size = static_cast<std::size_t>(ranks);
  std::size_t count = tensor.count, received = tensor.count;
  for (int of = 0; of < ranks; ++of) {
    const auto at = static_cast<std::size_t>(of);
    switch (tensor.kind) {
      case TensorKind::kReduceScatter: buffers.counts.push_back(tensor.count / size + at); break;
      case TensorKind::kAllgatherv: buffers.counts.push_back((tensor.count + 3 * at) / size); break;
      case TensorKind::kAlltoallv:
        buffers.counts.push_back((tensor.count + 3 * at * (rank + 1u)) / size);
        break;
      default: break;
    }
  }
  std::size_t all = 0;
  for (const std::uint64_t part : buffers.counts) all += part;
  if (tensor.kind == TensorKind::kReduceScatter || tensor.kind == TensorKind::kAlltoallv) count = all;
  if (tensor.kind == TensorKind::kReduceScatter) received = buffers.counts[static_cast<std::size_t>(rank)];
  if (tensor.kind == TensorKind::kAllgather) received = count * size;
  if (tensor.kind == TensorKind::kAllgatherv) {
    count = buffers.counts[static_cast<std::size_t>(rank)];
    received = all;
  }
  if (tensor.kind == TensorKind::kAlltoallv) received = tensor.count + 100;
  Random random(static_cast<unsigned>(step * 1000 + rank) + static_cast<unsigned>(tensor.name.back()));
  buffers.send.resize(count * element);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const at = buffers.send.data() + i * element;
    const auto bits = static_cast<std::uint32_t>(random());
    const float single = static_cast<float>(bits) / 7e8f - 2.0f;
    const double twice = static_cast<double>(bits) / 3e8 - 5.0;
    switch (tensor.dtype) {
      case DDL_FLOAT32: std::memcpy(at, &single, element); break;
      case DDL_FLOAT64: std::memcpy(at, &twice, element); break;
      default: std::memcpy(at, &bits, element);
    }
  }
  buffers.recv.resize(received * element);
  buffers.recv_counts.resize(size);
  return buffers;
}

/// The result of the ordered collective.
Bytes ordered(ddl_context* context, const Planned& tensor, TensorBuffers buffers, std::uint64_t set) {
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = set;
  const auto check = [&](ddl_status status) { expect_ok(status, "ordered, for " + tensor.name); };
  const void* const send = buffers.send.data();
  void* const recv = buffers.recv.data();
  switch (tensor.kind) {
    case TensorKind::kAllreduce:
      check(ddl_allreduce(context, send, recv, tensor.count, tensor.dtype, tensor.op, &options));
      return buffers.recv;
    case TensorKind::kReduceScatter:
      check(
          ddl_reduce_scatter(context, send, recv, buffers.counts.data(), tensor.dtype, tensor.op, &options));
      return buffers.recv;
    case TensorKind::kBroadcast:
      check(ddl_broadcast(context, buffers.send.data(), tensor.count, tensor.dtype,
                          root_of(tensor, ddl_process_set_size(context, set)), &options));
      return buffers.send;
    case TensorKind::kAllgather:
      check(ddl_allgather(context, send, recv, tensor.count, tensor.dtype, &options));
      return buffers.recv;
    case TensorKind::kAllgatherv:
      check(ddl_allgatherv(context, send, recv, buffers.counts.data(), tensor.dtype, &options));
      return buffers.recv;
    case TensorKind::kAlltoallv: {
      const std::size_t element = ddl_dtype_size(tensor.dtype);
      check(ddl_alltoallv(context, send, buffers.counts.data(), recv, buffers.recv.size() / element,
                          buffers.recv_counts.data(), tensor.dtype, &options));
      std::size_t all = 0;
      for (const std::uint64_t part : buffers.recv_counts) all += part;
      buffers.recv.resize(all * element);
      return buffers.recv;
    }
  }
  return {};
}

/// A tensor that one thread submits.
class Named {
 public:
  Named(ddl_context* context, const Planned& tensor, TensorBuffers buffers, std::uint64_t set)
      : context_(context), tensor_(tensor), buffers_(std::move(buffers)), set_(set) {}

  void submit(bool calls_back) {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = set_;
    options.priority = tensor_.priority;
    options.group = tensor_.group.empty() ? nullptr : tensor_.group.c_str();
    options.group_size = tensor_.group_size;
    options.argument = this;
    if (calls_back)
      options.completed = [](void* self, ddl_status, const char*) { ++static_cast<Named*>(self)->calls_; };
    calls_back_ = calls_back;
    const char* const name = tensor_.name.c_str();
    const ddl_dtype dtype = tensor_.dtype;
    const void* const send = buffers_.send.data();
    void* const recv = buffers_.recv.data();
    const std::uint64_t* const counts = buffers_.counts.data();
    std::uint64_t* const received = buffers_.recv_counts.data();
    const auto check = [&](ddl_status status) { expect_ok(status, tensor_.name); };
    switch (tensor_.kind) {
      case TensorKind::kAllreduce:
        check(ddl_allreduce_async(context_, name, send, recv, tensor_.count, dtype, tensor_.op, &options,
                                  &handle_));
        break;
      case TensorKind::kReduceScatter:
        check(ddl_reduce_scatter_async(context_, name, send, recv, counts, dtype, tensor_.op, &options,
                                       &handle_));
        break;
      case TensorKind::kBroadcast:
        check(ddl_broadcast_async(context_, name, buffers_.send.data(), tensor_.count, dtype,
                                  root_of(tensor_, ddl_process_set_size(context_, set_)), &options,
                                  &handle_));
        break;
      case TensorKind::kAllgather:
        check(ddl_allgather_async(context_, name, send, recv, tensor_.count, dtype, &options, &handle_));
        break;
      case TensorKind::kAllgatherv:
        check(ddl_allgatherv_async(context_, name, send, buffers_.send.size() / ddl_dtype_size(dtype),
                                   &buffers_.result, received, dtype, &options, &handle_));
        break;
      case TensorKind::kAlltoallv:
        check(ddl_alltoallv_async(context_, name, send, counts, &buffers_.result, received, dtype, &options,
                                  &handle_));
        break;
    }
  }

  void wait(Random& random) {
    std::int32_t done = 0;
    // Tests for it sometimes, and waits then.
    for (int tests = below(random, 4) == 0 ? 200 : 0; tests > 0 && done == 0; --tests)
      expect_ok(ddl_test(handle_, &done), "test");
    expect_ok(ddl_wait(handle_), tensor_.name);
    expect(calls_ == (calls_back_ ? 1 : 0), tensor_.name + " was not called back once");
  }

  /// After wait().
  void compare(const Bytes& wanted) {
    const std::byte* own =
        tensor_.kind == TensorKind::kBroadcast ? buffers_.send.data() : buffers_.recv.data();
    if (buffers_.result != nullptr) own = static_cast<const std::byte*>(buffers_.result);
    expect(wanted.empty() || std::memcmp(own, wanted.data(), wanted.size()) == 0,
           tensor_.name + " differs from the ordered collective");
    if (buffers_.result != nullptr) expect_ok(ddl_free(context_, buffers_.result), "free");
  }

  const Planned& tensor() const { return tensor_; }

 private:
  ddl_context* context_;
  const Planned& tensor_;
  TensorBuffers buffers_;
  std::uint64_t set_;
  ddl_handle* handle_ = nullptr;
  bool calls_back_ = false;
  std::atomic<int> calls_{0};
};

/// Those of one thread: in an order of its own, section by section.
void run_thread(std::deque<Named>& tensors, int thread, unsigned seed) {
  Random random(seed);
  for (const int section : {0, 1}) {
    std::vector<Named*> own;
    for (Named& named : tensors) {
      if (named.tensor().thread == thread && named.tensor().section == section) own.push_back(&named);
    }
    if (below(random, 2) == 0) std::shuffle(own.begin(), own.end(), random);
    for (Named* const named : own) named->submit(below(random, 4) == 0);
    for (Named* const named : own) named->wait(random);
  }
}

void run_step(ddl_context* context, const Plan& plan, int step, std::uint64_t half, Random& own_random) {
  std::deque<Named> tensors;
  std::vector<Bytes> wanted;
  const auto set_of = [&](const Planned& tensor) { return tensor.in_half ? half : DDL_WORLD; };
  const auto buffers = [&](const Planned& tensor) {
    return buffers_of(tensor, step, ddl_process_set_rank(context, set_of(tensor)),
                      ddl_process_set_size(context, set_of(tensor)));
  };
  for (const Planned& tensor : plan) tensors.emplace_back(context, tensor, buffers(tensor), set_of(tensor));
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, run_thread, std::ref(tensors), thread,
                                 static_cast<unsigned>(own_random())));
  }
  for (const Planned& tensor : plan)
    wanted.push_back(ordered(context, tensor, buffers(tensor), set_of(tensor)));
  for (auto& thread : threads) thread.get();
  for (std::size_t i = 0; i < wanted.size(); ++i) tensors[i].compare(wanted[i]);
}

/// Rank r has data for a random number of steps, which all ranks know.
void run_until_joined(ddl_context* context, Random& random) {
  const int rank = ddl_rank(context), ranks = ddl_size(context);
  std::vector<int> steps(static_cast<std::size_t>(ranks));
  for (int& number : steps) number = below(random, 4);
  for (int step = 0; step < steps[static_cast<std::size_t>(rank)]; ++step) {
    std::int64_t own = rank + 1, sum = 0, wanted = 0;
    for (int from = 0; from < ranks; ++from)
      wanted += steps[static_cast<std::size_t>(from)] > step ? from + 1 : 0;
    ddl_handle* handle = nullptr;
    expect_ok(ddl_allreduce_async(context, "of some", &own, &sum, 1, DDL_INT64, DDL_SUM, nullptr, &handle),
              "of some");
    expect_ok(ddl_wait(handle), "of some");
    expect(sum == wanted, "the sum of the ranks that have not joined");
  }
  expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
}

}  // namespace

void check_named_tensors(ddl_context* context, std::uint64_t seed, int steps) {
  const int rank = ddl_rank(context);
  const auto first = static_cast<unsigned>(seed);
  Random common(first), own(first + 1 + static_cast<unsigned>(rank));
  std::uint64_t half = 0;
  expect_ok(ddl_process_set_split(context, DDL_WORLD, rank / 2, 0, &half), "split");
  Plan plan;
  for (int step = 0; step < steps; ++step) {
    // Most steps are like the one before.
    if (plan.empty() || below(common, 5) == 0) plan = plan_step(common);
    run_step(context, plan, step, half, own);
    if (below(common, 20) == 0) run_until_joined(context, common);
    if (below(common, 10) == 0) expect_ok(ddl_step(context, DDL_WORLD), "step");
  }
  run_until_joined(context, common);
  expect_ok(ddl_process_set_free(context, half), "free");
}

}  // namespace ddl::conformance
