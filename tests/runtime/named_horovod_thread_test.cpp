// Cases of Horovod's tests (test_torch.py), by their names there, with named tensors: every type, one to three
// dimensions of 17, one to eight ranks. Many tensors are under way at once, so small ones are executed together.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/support/conformance/types.h"
#include "runtime/support/expect.h"
#include "runtime/support/reference.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

constexpr std::array kSides{std::size_t{17}, std::size_t{17 * 17}, std::size_t{17 * 17 * 17}};
constexpr std::array kHorovodTypes{DDL_UINT8,   DDL_INT8,    DDL_UINT16, DDL_INT16,   DDL_UINT32,
                                   DDL_INT32,   DDL_UINT64,  DDL_INT64,  DDL_FLOAT16, DDL_BFLOAT16,
                                   DDL_FLOAT32, DDL_FLOAT64, DDL_BOOL};

ThreadJob job_of_horovod(int ranks, int hosts) {
  ThreadJob job;
  job.ranks = ranks;
  job.timeout_seconds = 20;
  if (hosts > 1) job.hosts.resize(static_cast<std::size_t>(std::min(hosts, ranks)));
  for (int rank = 0; rank < ranks && hosts > 1; ++rank)
    job.hosts[static_cast<std::size_t>(rank) % job.hosts.size()].push_back(rank);
  return job;
}

/// Ranks that submit tensors to each other, and what is under way.
class Party {
 public:
  Party(ddl_context* of_context, std::uint64_t of_set)
      : context(of_context),
        set(of_set),
        rank(ddl_process_set_rank(of_context, of_set)),
        size(ddl_process_set_size(of_context, of_set)),
        random_(static_cast<unsigned>(rank)) {}

  ddl_async_options options() const {
    ddl_async_options made = DDL_ASYNC_OPTIONS_INIT;
    made.process_set = set;
    return made;
  }

  /// A tensor that submit() describes to libddl, with its result in recv or *result.
  struct Tensor {
    std::string name;
    std::vector<std::byte> send, recv, wanted;
    std::vector<std::uint64_t> counts, came, wanted_counts;
    void* result = nullptr;
    ddl_handle* handle = nullptr;
    std::function<ddl_status(Tensor&)> submit;
  };
  Tensor& add(const std::string& name) {
    tensors_.push_back(std::make_unique<Tensor>());
    tensors_.back()->name = name;
    tensors_.back()->came.resize(static_cast<std::size_t>(size));
    return *tensors_.back();
  }

  /// Submits all that was added, in an order of this rank's own, waits, and compares.
  void run() {
    std::shuffle(tensors_.begin(), tensors_.end(), random_);
    for (const auto& tensor : tensors_) expect_ok(tensor->submit(*tensor), tensor->name);
    for (const auto& tensor : tensors_) {
      expect_ok(ddl_wait(tensor->handle), tensor->name);
      const std::byte* own = tensor->recv.data();
      if (tensor->result != nullptr) own = static_cast<const std::byte*>(tensor->result);
      expect(std::equal(tensor->wanted.begin(), tensor->wanted.end(), own), tensor->name + ": wrong values");
      expect(tensor->wanted_counts.empty() || tensor->came == tensor->wanted_counts,
             tensor->name + ": wrong counts");
      if (tensor->result != nullptr) expect_ok(ddl_free(context, tensor->result), "free");
    }
    tensors_.clear();
  }

  ddl_context* context;
  std::uint64_t set;
  int rank, size;

 private:
  std::mt19937 random_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
};

template <class T>
std::vector<std::byte> elements_as_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// An operation with its scales, as Horovod's tests of allreduce vary them.
struct Variant {
  const char* name;
  ddl_op op;
  double prescale = 1.0, postscale = 1.0;
  bool is_in_place = false;
};
constexpr std::array kVariants{Variant{"sum", DDL_SUM},
                               Variant{"average", DDL_AVERAGE},
                               Variant{"min", DDL_MIN},
                               Variant{"max", DDL_MAX},
                               Variant{"product", DDL_PRODUCT},
                               Variant{"inplace", DDL_SUM, 1.0, 1.0, true},
                               Variant{"prescale", DDL_SUM, 0.5},
                               Variant{"postscale", DDL_SUM, 1.0, 0.25},
                               Variant{"product_inplace", DDL_PRODUCT, 1.0, 1.0, true}};

/// From -100 to 100, or less where a sum of eight would not fit; of a product, 1, -1 and few twos.
template <class T>
T horovod_value(ddl_op op, int rank, std::size_t e) {
  const auto mixed = static_cast<std::int64_t>(e * 7 + static_cast<std::size_t>(rank) * 31);
  if constexpr (std::is_same_v<T, Flag>) {
    return static_cast<Flag>(mixed % 3 == 0 ? 0 : 1);
  } else {
    const std::int64_t max = sizeof(T) == 1 ? 10 : 100, least = std::is_unsigned_v<T> ? 0 : -max;
    std::int64_t value = least + mixed % (max - least + 1);
    if (op == DDL_PRODUCT) value = mixed % 4 == 0 ? 2 : std::is_unsigned_v<T> || mixed % 4 == 1 ? 1 : -1;
    return narrowed<T>(static_cast<Wide<T>>(value));
  }
}

/// The result, computed rank by rank: all terms are small whole numbers, so the order does not matter.
template <class T>
T horovod_result(const Variant& variant, int ranks, std::size_t e) {
  const auto term = [&](int rank) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): of int8 the number is meant
    const auto value = static_cast<Wide<T>>(horovod_value<T>(variant.op, rank, e));
    return scaled<T>(value, variant.prescale);
  };
  Wide<T> all = term(0);
  for (int rank = 1; rank < ranks; ++rank) all = combine<T>(variant.op, all, term(rank));
  if (variant.op == DDL_AVERAGE) all = all / static_cast<Wide<T>>(ranks);
  return taken_out<T>(all, {variant.prescale, variant.postscale});
}

template <class T>
void add_allreduce(Party& party, const Variant& variant, std::size_t count) {
  auto& tensor = party.add(std::string("allreduce_") + variant.name + " " + std::to_string(count));
  std::vector<T> own(count), wanted(count);
  for (std::size_t e = 0; e < count; ++e) {
    own[e] = horovod_value<T>(variant.op, party.rank, e);
    wanted[e] = horovod_result<T>(variant, party.size, e);
  }
  tensor.send = elements_as_bytes(own);
  tensor.recv = variant.is_in_place ? tensor.send : std::vector<std::byte>(tensor.send.size());
  tensor.wanted = elements_as_bytes(wanted);
  tensor.submit = [&party, variant, count](Party::Tensor& of) {
    ddl_async_options options = party.options();
    options.prescale = variant.prescale;
    options.postscale = variant.postscale;
    return ddl_allreduce_async(party.context, of.name.c_str(),
                               variant.is_in_place ? of.recv.data() : of.send.data(), of.recv.data(), count,
                               TypeOf<T>::value, variant.op, &options, &of.handle);
  };
}

template <class T>
void append_elements(std::vector<std::byte>& all, std::size_t count, int value) {
  const std::vector<T> more(count, narrowed<T>(static_cast<Wide<T>>(value)));
  const auto bytes = elements_as_bytes(more);
  all.insert(all.end(), bytes.begin(), bytes.end());
}

/// allgather_variable_size: the first dimension differs between the ranks.
template <class T>
void add_allgather(Party& party, int number) {
  constexpr std::array<std::size_t, 7> kSizes{17, 32, 81, 12, 15, 23, 22};
  auto& tensor = party.add("allgather_variable_size " + std::to_string(number));
  for (int rank = 0; rank < party.size; ++rank) {
    const std::size_t count = kSizes[static_cast<std::size_t>(rank + number) % kSizes.size()] * 5 * 17;
    tensor.wanted_counts.push_back(count);
    append_elements<T>(tensor.wanted, count, rank);
    if (rank == party.rank) append_elements<T>(tensor.send, count, rank);
  }
  tensor.submit = [&party](Party::Tensor& of) {
    const ddl_async_options options = party.options();
    return ddl_allgatherv_async(party.context, of.name.c_str(), of.send.data(),
                                of.send.size() / ddl_dtype_size(TypeOf<T>::value), &of.result, of.came.data(),
                                TypeOf<T>::value, &options, &of.handle);
  };
}

template <class T>
void add_broadcast(Party& party, int root, std::size_t count) {
  auto& tensor = party.add("broadcast_inplace " + std::to_string(root));
  append_elements<T>(tensor.recv, count, party.rank);
  append_elements<T>(tensor.wanted, count, root);
  tensor.submit = [&party, root, count](Party::Tensor& of) {
    const ddl_async_options options = party.options();
    return ddl_broadcast_async(party.context, of.name.c_str(), of.recv.data(), count, TypeOf<T>::value, root,
                               &options, &of.handle);
  };
}

/// splits(from, to): slices of 17 that one rank sends to another.
template <class T, class Splits>
void add_alltoall(Party& party, const char* name, Splits splits) {
  auto& tensor = party.add(std::string("alltoall_") + name);
  for (int other = 0; other < party.size; ++other) {
    tensor.counts.push_back(17 * splits(party.rank, other));
    tensor.wanted_counts.push_back(17 * splits(other, party.rank));
    append_elements<T>(tensor.send, tensor.counts.back(), party.rank);
    append_elements<T>(tensor.wanted, tensor.wanted_counts.back(), other);
  }
  tensor.submit = [&party](Party::Tensor& of) {
    const ddl_async_options options = party.options();
    return ddl_alltoallv_async(party.context, of.name.c_str(), of.send.data(), of.counts.data(), &of.result,
                               of.came.data(), TypeOf<T>::value, &options, &of.handle);
  };
}

/// The lower ranks have further elements more.
template <class T>
void add_reducescatter(Party& party, const char* name, std::size_t each, int further) {
  auto& tensor = party.add(std::string("reducescatter_") + name);
  for (int rank = 0; rank < party.size; ++rank) {
    tensor.counts.push_back(each + (rank < further ? 1 : 0));
    append_elements<T>(tensor.send, tensor.counts.back(), rank + 1);
    if (rank == party.rank) append_elements<T>(tensor.wanted, tensor.counts.back(), (rank + 1) * party.size);
  }
  tensor.recv.resize(tensor.wanted.size());
  tensor.submit = [&party](Party::Tensor& of) {
    const ddl_async_options options = party.options();
    return ddl_reduce_scatter_async(party.context, of.name.c_str(), of.send.data(), of.recv.data(),
                                    of.counts.data(), TypeOf<T>::value, DDL_SUM, &options, &of.handle);
  };
}

template <class T>
void run_all_cases(Party& party) {
  for (const Variant& variant : kVariants) {
    if (std::is_same_v<T, Flag> && variant.op != DDL_MIN && variant.op != DDL_MAX) continue;
    for (const std::size_t count : kSides) {
      // The third dimension only makes tensors longer.
      if (count == kSides.back() && TypeOf<T>::value != DDL_FLOAT32) continue;
      add_allreduce<T>(party, variant, count);
    }
  }
  for (int number = 0; number < 2; ++number) add_allgather<T>(party, number);
  for (int root = 0; root < party.size; ++root) add_broadcast<T>(party, root, 17 * 17);
  add_alltoall<T>(party, "equal_split", [](int, int) { return 1u; });
  add_alltoall<T>(party, "zero_splits", [](int, int) { return 0u; });
  add_alltoall<T>(party, "one_rank_sends_nothing", [](int from, int) { return from == 1 ? 0u : 2u; });
  add_alltoall<T>(party, "one_rank_receives_nothing", [](int, int to) { return to == 1 ? 0u : 2u; });
  if (!std::is_same_v<T, Flag>) {
    add_reducescatter<T>(party, "even", 17, 0);
    add_reducescatter<T>(party, "uneven", 17 * 17, party.size / 2);
    // One element in all: most ranks have no part of it.
    add_reducescatter<T>(party, "scalar", 0, 1);
  }
  party.run();
}

void run_all_types(ddl_context* context, std::uint64_t set) {
  Party party(context, set);
  for (const ddl_dtype dtype : kHorovodTypes) with_type(dtype, [&]<class T>() { run_all_cases<T>(party); });
}

}  // namespace

TEST_CASE("Horovod's cases pass with named tensors, and again after a new start") {
  const int ranks = GENERATE(range(1, 9)), hosts = GENERATE(1, 2);
  if (hosts > ranks) return;
#ifdef DDL_TEST_SANITIZED
  if (ranks != 2 && ranks != 5) return;
#endif
  const ThreadJob job = job_of_horovod(ranks, hosts);
  job.run([](ddl_context*& context) { run_all_types(context, DDL_WORLD); });
  if (ranks == 3) job.run([](ddl_context*& context) { run_all_types(context, DDL_WORLD); });
}

TEST_CASE("Horovod's cases pass with named tensors in the process sets of even and odd ranks") {
  job_of_horovod(GENERATE(2, 5, 8), GENERATE(1, 2)).run([](ddl_context*& context) {
    std::uint64_t set = DDL_NO_PROCESS_SET;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, ddl_rank(context) % 2, 0, &set), "split");
    run_all_types(context, set);
    expect_ok(ddl_process_set_free(context, set), "free");
  });
}

TEST_CASE("Horovod's mistakes are errors of named tensors on every rank, by names of ranks") {
  const int ranks = GENERATE(range(2, 9));
  job_of_horovod(ranks, GENERATE(1, 2)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context), last = ranks - 1;
    const bool differs = rank == last;
    std::vector<double> values(40, 1.0), all(40, 1.0);
    const auto expect_mismatch = [&](const std::string& name, const std::string& first,
                                     const std::string& other, auto submit) {
      ddl_handle* handle = nullptr;
      expect_ok(submit(name.c_str(), &handle), name);
      expect_status(ddl_wait(handle), DDL_ERROR_MISMATCH, name);
      expect_contains(ddl_last_error(), "\"" + name + "\": rank 0 on host0 called " + first + ", rank " +
                                            std::to_string(last) + " on host" + std::to_string(last) +
                                            " called " + other);
      expect(values == std::vector<double>(40, 1.0), name + ": something was written");
    };
    const auto allreduce = [&](std::uint64_t count, ddl_dtype dtype, ddl_op op,
                               const ddl_async_options* options) {
      return [=, &context, &values](const char* name, ddl_handle** handle) {
        return ddl_allreduce_async(context, name, values.data(), values.data(), count, dtype, op, options,
                                   handle);
      };
    };
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    const std::array<std::uint64_t, 2> shape{17, 2}, turned{2, 17};
    options.shape = differs ? turned.data() : shape.data();
    options.dimensions = 2;
    expect_mismatch("allreduce_error", "allreduce(sum, float64, shape [17, 2])",
                    "allreduce(sum, float64, shape [2, 17])", allreduce(34, DDL_FLOAT64, DDL_SUM, &options));
    expect_mismatch("allreduce_type_error", "allreduce(sum, float32, 34 elements)",
                    "allreduce(sum, int32, 34 elements)",
                    allreduce(34, differs ? DDL_INT32 : DDL_FLOAT32, DDL_SUM, nullptr));
    expect_mismatch("allreduce_op_error", "allreduce(min, float64, 3 elements)",
                    "allreduce(max, float64, 3 elements)",
                    allreduce(3, DDL_FLOAT64, differs ? DDL_MAX : DDL_MIN, nullptr));
    ddl_async_options halves = DDL_ASYNC_OPTIONS_INIT;
    halves.prescale = differs ? 0.5 : 0.25;
    expect_mismatch("allreduce_prescale_error", "allreduce(sum, float64, 3 elements, prescale 0.25)",
                    "allreduce(sum, float64, 3 elements, prescale 0.5)",
                    allreduce(3, DDL_FLOAT64, DDL_SUM, &halves));
    const auto broadcast_of = [&](int root) {
      return [&, root](const char* name, ddl_handle** handle) {
        return ddl_broadcast_async(context, name, values.data(), 4, DDL_FLOAT64, root, nullptr, handle);
      };
    };
    expect_mismatch("broadcast_error", "broadcast(root 0, float64, 4 elements)",
                    "broadcast(root 1, float64, 4 elements)", broadcast_of(differs ? 1 : 0));
    // The dimensions behind the first, and the type.
    void* result = nullptr;
    ddl_async_options rows = DDL_ASYNC_OPTIONS_INIT;
    rows.shape = differs ? turned.data() : shape.data();
    rows.dimensions = 1;
    const auto allgather = [&](ddl_dtype dtype, const ddl_async_options* given) {
      return [&, dtype, given](const char* name, ddl_handle** handle) {
        return ddl_allgatherv_async(context, name, values.data(), 34, &result, nullptr, dtype, given, handle);
      };
    };
    expect_mismatch("allgather_error", "allgatherv(float64, shape [17])", "allgatherv(float64, shape [2])",
                    allgather(DDL_FLOAT64, &rows));
    expect_mismatch("allgather_type_error", "allgatherv(float64)", "allgatherv(int64)",
                    allgather(differs ? DDL_INT64 : DDL_FLOAT64, nullptr));
    // Another kind of call altogether.
    if (differs) {
      expect_mismatch("kind_error", "allreduce(sum, float64, 4 elements)",
                      "broadcast(root 0, float64, 4 elements)", broadcast_of(0));
    } else {
      expect_mismatch("kind_error", "allreduce(sum, float64, 4 elements)",
                      "broadcast(root 0, float64, 4 elements)", allreduce(4, DDL_FLOAT64, DDL_SUM, nullptr));
    }
    // What one rank sees alone.
    ddl_handle* none = nullptr;
    expect_status(broadcast_of(ranks)("broadcast_rank_error", &none), DDL_ERROR_INVALID_ARGUMENT, "root");
    expect_status(ddl_alltoallv_async(context, "alltoall_splits_error", values.data(), nullptr, &result,
                                      nullptr, DDL_FLOAT64, nullptr, &none),
                  DDL_ERROR_INVALID_ARGUMENT, "splits");
    expect_status(ddl_reduce_scatter_async(context, "reducescatter_error", values.data(), all.data(), nullptr,
                                           DDL_FLOAT64, DDL_SUM, nullptr, &none),
                  DDL_ERROR_INVALID_ARGUMENT, "counts");
    // A group fails as a whole, and nothing of it is written.
    ddl_async_options group = DDL_ASYNC_OPTIONS_INIT;
    group.group = "group";
    group.group_size = 2;
    const std::array<ddl_tensor, 2> tensors{
        {{"first", values.data(), values.data(), 3}, {"second", all.data(), all.data(), differs ? 5u : 4u}}};
    std::array<ddl_handle*, 2> handles{};
    expect_ok(
        ddl_grouped_allreduce_async(context, tensors.data(), 2, DDL_FLOAT64, DDL_SUM, &group, handles.data()),
        "grouped_allreduce");
    for (ddl_handle* const handle : handles) expect_status(ddl_wait(handle), DDL_ERROR_MISMATCH, "grouped");
    expect(values == std::vector<double>(40, 1.0) && all == values, "a group that failed was written");
    // And all goes on.
    ddl_handle* good = nullptr;
    expect_ok(allreduce(40, DDL_FLOAT64, DDL_SUM, nullptr)("allreduce_error", &good), "after errors");
    expect_ok(ddl_wait(good), "after errors");
    expect(values == std::vector<double>(40, ranks), "after errors");
  });
}
