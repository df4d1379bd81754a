// An allreduce of several tensors as one, and reductions to which some ranks give no data. The C functions offer
// neither, so these requests go to the context.
#include "runtime/src/collective/parts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/types.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::job_on;
using ddl::runtime::test::MpiThreads;
using ddl::runtime::test::ThreadJob;

namespace {

using ddl::conformance::Communicator;

/// Elements of the longest tensor: several chunks with the slots used here.
#ifdef DDL_TEST_SANITIZED
constexpr std::uint64_t kLongest = 700;
#else
constexpr std::uint64_t kLongest = 2500;
#endif

const std::vector<int> kOneHost[] = {{1}, {2}, {3}, {4}, {5}};
const std::vector<int> kHosts[] = {{1, 1}, {2, 1}, {1, 1, 1}, {2, 1, 2}, {2, 2, 1}, {1, 1, 1, 1, 1}};

ThreadJob job_of(const std::vector<int>& hosts, std::size_t slot_bytes, const std::string& algorithm) {
  ThreadJob job = job_on(hosts_of_sizes(hosts));
  job.slot_bytes = slot_bytes;
  if (algorithm == "mpi") {
    job.mpi = MpiThreads::kMultiple;
    // Every step takes a few threads a while.
    job.slot_bytes = std::max<std::size_t>(slot_bytes, 512);
    return job;
  }
  auto parsed = AlgorithmOverrides::parse("allreduce=" + algorithm);
  REQUIRE(parsed.has_value());
  job.algorithms = *parsed;
  return job;
}

/// An operation, and scales that its type allows; number: which.
struct Operation {
  ddl_op op;
  Scales scales;
};
std::vector<Operation> operations_of(ddl_dtype dtype) {
  std::vector<ddl_op> ops = further_ops_of(dtype);
  if (dtype != DDL_BOOL) ops.insert(ops.end(), std::begin(kArithmetic), std::end(kArithmetic));
  std::vector<Operation> operations;
  for (const ddl_op op : ops) {
    operations.push_back({op, {}});
    if (dtype != DDL_BOOL) operations.push_back({op, {0.5, op == DDL_SUM ? 3.0 : 1.0}});
  }
  return operations;
}

std::string describe(ddl_dtype dtype, const Operation& operation) {
  return std::string(op_name(operation.op)) + " of " + dtype_name(dtype) + ", prescale " +
         std::to_string(operation.scales.before);
}

template <class T>
Request request_of(CallKind kind, const Operation& operation, std::uint64_t count) {
  Request request;
  request.call = make_call(kind, count, TypeOf<T>::value);
  request.call.op = operation.op;
  request.call.prescale = operation.scales.before;
  request.call.postscale = operation.scales.after;
  request.element_size = sizeof(T);
  return request;
}

/// Makes the call on the world.
void run(ddl_context* context, Request request, const std::string& what) {
  const auto world = context->context->set(DDL_WORLD);
  request.job_ranks = world->job_ranks();
  const Outcome outcome = context->context->run(*world, request, 0.0);
  expect(outcome.has_value(), what + (outcome ? "" : ": " + outcome.error().message));
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// One rank's buffers of several tensors. Each is in place or not, and shifted from its alignment or not, as drawn.
template <class T>
class Tensors {
 public:
  Tensors(int rank, const std::vector<std::uint64_t>& counts, std::uint64_t seed) {
    std::mt19937 random(static_cast<unsigned>(seed * 100 + static_cast<std::uint64_t>(rank)));
    for (const std::uint64_t count : counts) {
      inputs_.push_back(input_of<T>(rank, count, seed + inputs_.size()));
      sends_.push_back(std::make_unique<Fenced<T>>(inputs_.back(), random() % 4));
      if (random() % 2 == 0) {
        recvs_.push_back(nullptr);
      } else {
        recvs_.push_back(std::make_unique<Fenced<T>>(count, random() % 4));
      }
      T* const recv = recvs_.back() ? recvs_.back()->data() : sends_.back()->data();
      parts_.push_back({reinterpret_cast<const std::byte*>(sends_.back()->data()),
                        reinterpret_cast<std::byte*>(recv), count});
    }
  }

  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<T>& input(std::size_t i) const { return inputs_[i]; }
  void expect_result(std::size_t i, const std::vector<T>& wanted, const std::string& what) {
    expect_bits(recvs_[i] ? *recvs_[i] : *sends_[i], wanted, what);
    if (recvs_[i]) expect_bits(*sends_[i], inputs_[i], what + ": changed its input");
  }

 private:
  std::vector<std::vector<T>> inputs_;
  std::vector<std::unique_ptr<Fenced<T>>> sends_, recvs_;
  std::vector<Part> parts_;
};

/// All tensors as one, and each alone.
template <class T>
void check_parts(const Communicator& world, const std::vector<std::uint64_t>& counts,
                 const Operation& operation, std::uint64_t seed) {
  const std::string what = std::to_string(counts.size()) + " parts, " + describe(TypeOf<T>::value, operation);
  Tensors<T> tensors(world.rank, counts, seed);
  Request request = request_of<T>(CallKind::kAllreduce, operation, sum_of(counts));
  request.parts = tensors.parts();
  run(world.context, request, what);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::vector<T> wanted = tensors.input(i);
    ddl_call_options options = world.options();
    options.prescale = operation.scales.before;
    options.postscale = operation.scales.after;
    expect_ok(ddl_allreduce(world.context, wanted.data(), wanted.data(), counts[i], TypeOf<T>::value,
                            operation.op, &options),
              what);
    tensors.expect_result(i, wanted, what + ", part " + std::to_string(i));
  }
}

/// Lists of counts of several kinds.
std::vector<std::vector<std::uint64_t>> lists_of_counts(std::mt19937& random) {
  std::vector<std::uint64_t> small(30), mixed(6);
  for (std::uint64_t& count : small) count = random() % 3 == 0 ? 0 : random() % 20;
  for (std::uint64_t& count : mixed) count = random() % 4 == 0 ? 0 : random() % (kLongest / 4);
  return {small, mixed, {kLongest}, {0, 3, kLongest, 0, 1, 600, 0}, {0, 0, 0}, {1, 1}};
}

/// Every list for one type, and one list for every type.
void check_lists_of_parts(ddl_context* context) {
  const auto world = world_of(context);
  std::mt19937 random(7);
  std::uint64_t seed = 1;
  for (const auto& counts : lists_of_counts(random)) check_parts<float>(world, counts, {DDL_SUM, {}}, seed++);
  std::size_t number = 0;
  for (const ddl_dtype dtype : kDtypes) {
    const auto operations = operations_of(dtype);
    for (const std::size_t list : {number % 2, number % 4}) {
      with_type(dtype, [&]<class T>() {
        check_parts<T>(world, lists_of_counts(random)[list], operations[number % operations.size()], seed);
      });
      number += 3;
      ++seed;
    }
  }
}

/// The result along the canonical tree of all ranks, where the ranks that give nothing are left out.
template <class T>
T element_of_contributors(const Operation& operation, const Groups& groups,
                          const std::vector<std::uint8_t>& contributes, std::uint64_t e, std::uint64_t seed) {
  using Value = std::optional<Wide<T>>;
  const auto combined = [&](const Value& a, const Value& b) {
    return a && b ? Value(combine<T>(operation.op, *a, *b)) : a ? a : b;
  };
  std::vector<Value> values;
  for (const std::vector<int>& group : groups) {
    Value value;
    for (const int rank : group) {
      if (contributes[static_cast<std::size_t>(rank)] == 0) continue;
      value = combined(value, brought_in<T>(operation.op, rank, e, seed, operation.scales));
    }
    values.push_back(value);
  }
  std::size_t power = 1;
  while (power * 2 <= values.size()) power *= 2;
  for (std::size_t pairs = values.size() - power; values.size() > 1; pairs = values.size() / 2) {
    if (pairs == 0) pairs = values.size() / 2;
    std::vector<Value> next;
    for (std::size_t i = 0; i < pairs; ++i) next.push_back(combined(values[2 * i], values[2 * i + 1]));
    next.insert(next.end(), values.begin() + static_cast<std::ptrdiff_t>(2 * pairs), values.end());
    values = next;
  }
  const auto contributors = static_cast<Wide<T>>(std::count(contributes.begin(), contributes.end(), 1));
  ddl::conformance::expect(contributors > 0, "nobody contributes data");
  return taken_out<T>(operation.op == DDL_AVERAGE ? *values[0] / contributors : *values[0], operation.scales);
}

template <class T>
std::vector<T> result_of_contributors(const Operation& operation, const Groups& groups,
                                      const std::vector<std::uint8_t>& contributes, ElementRange range,
                                      std::uint64_t seed) {
  std::vector<T> result(range.count);
  for (std::uint64_t e = 0; e < range.count; ++e)
    result[e] = element_of_contributors<T>(operation, groups, contributes, range.first + e, seed);
  return result;
}

struct Case {
  const Communicator& world;
  const std::vector<std::uint8_t>& contributes;
  Operation operation;
  std::uint64_t seed;

  bool own_gives() const { return contributes[static_cast<std::size_t>(world.rank)] != 0; }
  template <class T>
  Request request(CallKind kind, std::uint64_t count) const {
    Request request = request_of<T>(kind, operation, count);
    request.contributes = contributes;
    return request;
  }
};

template <class T>
void check_allreduce_of_contributors(const Case& given, std::uint64_t count) {
  const auto& [world, contributes, operation, seed] = given;
  const std::string what = "allreduce of contributors: " + describe(TypeOf<T>::value, operation);
  for (const bool is_in_place : {false, true}) {
    Request request = given.request<T>(CallKind::kAllreduce, count);
    const std::vector<T> input = input_of<T>(world.rank, count, seed);
    Fenced<T> send(input), recv(count);
    if (given.own_gives()) {
      request.send = reinterpret_cast<const std::byte*>(send.data());
      request.recv = reinterpret_cast<std::byte*>(is_in_place ? send.data() : recv.data());
    }
    run(world.context, request, what);
    if (given.own_gives()) {
      expect_bits(is_in_place ? send : recv,
                  result_of_contributors<T>(operation, world.groups, contributes, {0, count}, seed), what);
    }
    if (!given.own_gives() || !is_in_place) expect_bits(send, input, what + ": changed its input");
  }
}

template <class T>
void check_parts_of_contributors(const Case& given, const std::vector<std::uint64_t>& counts) {
  const std::string what = "parts of contributors: " + describe(TypeOf<T>::value, given.operation);
  Request request = given.request<T>(CallKind::kAllreduce, sum_of(counts));
  Tensors<T> tensors(given.world.rank, counts, given.seed);
  if (given.own_gives()) request.parts = tensors.parts();
  run(given.world.context, request, what);
  if (!given.own_gives()) return;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    tensors.expect_result(i,
                          result_of_contributors<T>(given.operation, given.world.groups, given.contributes,
                                                    {0, counts[i]}, given.seed + i),
                          what);
  }
}

template <class T>
void check_reduce_scatter_of_contributors(const Case& given, const std::vector<std::uint64_t>& counts) {
  const auto& [world, contributes, operation, seed] = given;
  const std::string what = "reduce_scatter of contributors: " + describe(TypeOf<T>::value, operation);
  const auto own = static_cast<std::ptrdiff_t>(world.rank);
  const std::uint64_t first = sum_of({counts.begin(), counts.begin() + own});
  const std::uint64_t count = counts[static_cast<std::size_t>(own)];
  for (const bool is_in_place : {false, true}) {
    Request request = given.request<T>(CallKind::kReduceScatter, sum_of(counts));
    request.counts = counts;
    std::vector<T> input = input_of<T>(world.rank, sum_of(counts), seed);
    Fenced<T> send(input), recv(count);
    if (given.own_gives()) {
      request.send = reinterpret_cast<const std::byte*>(send.data());
      request.recv = reinterpret_cast<std::byte*>(is_in_place ? send.data() + first : recv.data());
    }
    run(world.context, request, what);
    const auto wanted = result_of_contributors<T>(operation, world.groups, contributes, {first, count}, seed);
    if (given.own_gives() && is_in_place)
      std::copy(wanted.begin(), wanted.end(), input.begin() + static_cast<std::ptrdiff_t>(first));
    if (given.own_gives() && !is_in_place) expect_bits(recv, wanted, what);
    expect_bits(send, input, what + (is_in_place ? ", in place" : ": changed its input"));
  }
}

/// All choices of ranks that give data, on up to three ranks; on more: some, among them every host without data.
std::vector<std::vector<std::uint8_t>> choices_of_contributors(const Groups& groups) {
  std::size_t ranks = 0;
  for (const auto& group : groups) ranks += group.size();
  std::vector<std::vector<std::uint8_t>> choices;
  if (ranks <= 3) {
    for (std::size_t mask = 1; mask < (std::size_t{1} << ranks); ++mask) {
      auto& contributes = choices.emplace_back(ranks);
      for (std::size_t rank = 0; rank < ranks; ++rank) contributes[rank] = mask >> rank & 1;
    }
    return choices;
  }
  for (const auto& group : groups) {
    auto& without = choices.emplace_back(ranks, 1);
    for (const int rank : group) without[static_cast<std::size_t>(rank)] = 0;
    auto& alone = choices.emplace_back(ranks, 0);
    for (const int rank : group) alone[static_cast<std::size_t>(rank)] = 1;
    if (groups.size() == 1) choices.erase(choices.end() - 2);  // somebody must give
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    choices.emplace_back(ranks, 1)[rank] = 0;
    choices.emplace_back(ranks, 0)[rank] = 1;
  }
  auto& every_second = choices.emplace_back(ranks, 0);
  for (std::size_t rank = 1; rank < ranks; rank += 2) every_second[rank] = 1;
  return choices;
}

/// Every choice of ranks with one type, and every type and operation with some choice.
void check_choices_of_contributors(ddl_context* context) {
  const auto world = world_of(context);
  const auto choices = choices_of_contributors(world.groups);
  std::mt19937 random(5);
  std::uint64_t seed = 1;
  const auto check = [&]<class T>(const std::vector<std::uint8_t>& contributes, const Operation& operation,
                                  std::uint64_t count) {
    const Case given{world, contributes, operation, ++seed};
    check_allreduce_of_contributors<T>(given, count);
    check_parts_of_contributors<T>(given, {count / 2, 0, 3, count / 3, 1});
    std::vector<std::uint64_t> counts(contributes.size());
    for (std::uint64_t& share : counts) share = random() % 4 == 0 ? 0 : random() % (count / 2 + 2);
    check_reduce_scatter_of_contributors<T>(given, counts);
  };
  for (const auto& contributes : choices) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, kLongest})
      check.operator()<float>(contributes, {DDL_AVERAGE, {}}, count);
  }
  std::size_t number = 0;
  for (const ddl_dtype dtype : kDtypes) {
    for (const Operation& operation : operations_of(dtype)) {
      const auto& contributes = choices[number++ % choices.size()];
      with_type(dtype, [&]<class T>() { check.template operator()<T>(contributes, operation, 100); });
    }
  }
}

}  // namespace

TEST_CASE("the parts of any range of the elements are found, in any order of ranges") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    // Every element has its number as its value.
    std::vector<std::vector<std::uint32_t>> tensors(random() % 40 + 1);
    std::uint32_t total = 0;
    for (auto& tensor : tensors) {
      tensor.resize(random() % 2 == 0 ? 0 : random() % 30);
      for (std::uint32_t& element : tensor) element = total++;
    }
    std::vector<Part> parts;
    for (auto& tensor : tensors) {
      auto* const bytes = reinterpret_cast<std::byte*>(tensor.data());
      parts.push_back({bytes, bytes, tensor.size()});
    }
    Request request;
    request.element_size = sizeof(std::uint32_t);
    request.parts = parts;
    const CallBuffers buffers(request);
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t first = total == 0 ? 0 : random() % total;
      const std::uint64_t count = random() % (total - first + 1);
      std::vector<std::uint32_t> found;
      int num_parts = 0;
      const std::byte* begin = nullptr;
      buffers.for_parts(first, count,
                        [&](const std::byte* send, std::byte* recv, std::uint64_t size, std::uint64_t at) {
                          CHECK(send == recv);
                          CHECK(at == found.size());
                          CHECK(size > 0);
                          if (num_parts++ == 0) begin = send;
                          const auto* const elements = reinterpret_cast<const std::uint32_t*>(send);
                          found.insert(found.end(), elements, elements + size);
                        });
      std::vector<std::uint32_t> wanted(count);
      std::iota(wanted.begin(), wanted.end(), static_cast<std::uint32_t>(first));
      CHECK(found == wanted);
      CHECK(buffers.contiguous(first, count).send == (num_parts == 1 ? begin : nullptr));
    }
  }
}

TEST_CASE("without parts the range is one part of the call's own buffers") {
  std::vector<std::uint32_t> send(10), recv(10);
  auto* const from = reinterpret_cast<const std::byte*>(send.data());
  auto* const to = reinterpret_cast<std::byte*>(recv.data());
  Request request;
  request.element_size = sizeof(std::uint32_t);
  request.send = from;
  request.recv = to;
  const CallBuffers buffers(request);
  int parts = 0;
  buffers.for_parts(3, 7, [&](const std::byte* a, std::byte* b, std::uint64_t count, std::uint64_t offset) {
    ++parts;
    CHECK(a == from + 12);
    CHECK(b == to + 12);
    CHECK(count == 7);
    CHECK(offset == 0);
  });
  CHECK(parts == 1);
  CHECK(buffers.contiguous(3, 7).recv == to + 12);
  request.recv = nullptr;
  CHECK(buffers.contiguous(3, 7).recv == nullptr);
}

TEST_CASE("tensors that are one allreduce have the bits of one allreduce each, on one host") {
  const auto& hosts = kOneHost[GENERATE(range(std::size_t{0}, std::size(kOneHost)))];
  const std::size_t slot_bytes = GENERATE(64, 4096);
  const char* const algorithm = GENERATE("whole", "slices", "mpi");
  CAPTURE(hosts, slot_bytes, algorithm);
  job_of(hosts, slot_bytes, algorithm).run([](ddl_context*& context) { check_lists_of_parts(context); });
}

TEST_CASE("tensors that are one allreduce have the bits of one allreduce each, on several hosts") {
  const auto& hosts = kHosts[GENERATE(range(std::size_t{0}, std::size(kHosts)))];
  const std::size_t slot_bytes = hosts.size() % 2 == 0 ? 64 : 4096;
  const char* const algorithm = GENERATE("tree", "units", "halving", "mpi");
  CAPTURE(hosts, slot_bytes, algorithm);
  job_of(hosts, slot_bytes, algorithm).run([](ddl_context*& context) { check_lists_of_parts(context); });
}

TEST_CASE("thousands of tensors can be one allreduce") {
  const std::vector<int> hosts = GENERATE(std::vector{3}, std::vector{1, 1}, std::vector{2, 1});
  CAPTURE(hosts);
  ThreadJob job = job_on(hosts_of_sizes(hosts));
  job.slot_bytes = 4096;
  job.run([](ddl_context*& context) {
    const auto world = world_of(context);
    std::vector<std::uint64_t> counts(5000, 3);
    for (std::size_t i = 0; i < counts.size(); i += 7) counts[i] = 0;
    Tensors<double> tensors(world.rank, counts, 1);
    Request request = request_of<double>(CallKind::kAllreduce, {DDL_SUM, {}}, sum_of(counts));
    request.parts = tensors.parts();
    run(context, request, "allreduce");
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::vector<double> wanted(counts[i]);
      for (std::uint64_t e = 0; e < counts[i]; ++e)
        wanted[e] = reduced_element<double>(DDL_SUM, world.groups, e, 1 + i);
      tensors.expect_result(i, wanted, "part " + std::to_string(i));
    }
  });
}

TEST_CASE("ranks that give no data are left out, on one host") {
  // Each layout with one size of slots and one algorithm.
  const std::size_t number = GENERATE(range(std::size_t{0}, std::size(kOneHost)));
  const auto& hosts = kOneHost[number];
  const std::size_t slot_bytes = number == 1 ? 64 : 4096;
  const char* const algorithm = GENERATE(false, true) ? "mpi" : number < 3 ? "whole" : "slices";
  CAPTURE(hosts, slot_bytes, algorithm);
  job_of(hosts, slot_bytes, algorithm).run([](ddl_context*& context) {
    check_choices_of_contributors(context);
  });
}

TEST_CASE("ranks that give no data are left out, on several hosts, also if a host has no others") {
  const std::size_t number = GENERATE(range(std::size_t{0}, std::size(kHosts)));
  const auto& hosts = kHosts[number];
  const std::size_t slot_bytes = number == 1 ? 64 : 4096;
  const char* const algorithm =
      GENERATE(false, true) ? "mpi" : std::array{"tree", "units", "halving"}[number % 3];
  CAPTURE(hosts, slot_bytes, algorithm);
  job_of(hosts, slot_bytes, algorithm).run([](ddl_context*& context) {
    check_choices_of_contributors(context);
  });
}

TEST_CASE(
    "parts, and calls with ranks that give no data, are staged, also if the buffers lie in the shared heap") {
  ThreadJob job = job_on(hosts_of_sizes(GENERATE(std::vector{3}, std::vector{2, 1})));
  job.run([](ddl_context*& context) {
    const auto world = world_of(context);
    constexpr std::uint64_t kFirst = 7001, kCount = 20'000;
    const auto input = input_of<float>(world.rank, kCount, 1);
    Fenced<float> send(input, 0, context), recv(kCount, 0, context);
    expect_ok(ddl_barrier(context, nullptr), "everybody uses the heap");
    auto* const from = reinterpret_cast<std::byte*>(send.data());
    auto* const to = reinterpret_cast<std::byte*>(recv.data());
    const std::size_t cut = kFirst * sizeof(float);
    const std::vector<Part> parts{{from, to, kFirst}, {from + cut, to + cut, kCount - kFirst}};
    Request request = request_of<float>(CallKind::kAllreduce, {DDL_SUM, {}}, kCount);
    request.parts = parts;
    run(context, request, "parts");
    const std::vector<std::uint8_t> all(3, 1), some{1, 0, 1};
    expect_bits(recv, result_of_contributors<float>({DDL_SUM, {}}, world.groups, all, {0, kCount}, 1),
                "parts");
    request.parts = {};
    request.contributes = some;
    // The rank that contributes no data has buffers in the heap, too; they are not used.
    request.send = from;
    request.recv = to;
    run(context, request, "contributors");
    const auto& wanted = world.rank == 1 ? all : some;
    expect_bits(recv, result_of_contributors<float>({DDL_SUM, {}}, world.groups, wanted, {0, kCount}, 1),
                "contributors");
    std::vector<std::uint64_t> counts{kCount / 2, 0, kCount / 2};
    request.call.kind = CallKind::kReduceScatter;
    request.counts = counts;
    run(context, request, "reduce_scatter of contributors");
    expect_bits(send, input, "changed its input");
  });
}

TEST_CASE("the ring leaves out ranks that give no data, and takes tensors as one") {
  // Integers, because it has its own order.
  job_of(GENERATE(std::vector{2, 1, 2}, std::vector{1, 1, 1}), 1024, "ring").run([](ddl_context*& context) {
    const auto world = world_of(context);
    std::uint64_t seed = 1;
    for (const auto& contributes : choices_of_contributors(world.groups)) {
      const Case given{world, contributes, {DDL_SUM, {}}, ++seed};
      check_allreduce_of_contributors<std::int64_t>(given, kLongest);
      check_parts_of_contributors<std::int64_t>(given, {5, 0, kLongest, 1});
    }
    check_parts<std::int64_t>(world, {5, 0, kLongest, 1}, {DDL_MAX, {}}, ++seed);
  });
}

TEST_CASE("the choice of ranks that give data is compared if its digest is in the call") {
  ThreadJob job = job_on(hosts_of_sizes(GENERATE(std::vector{2}, std::vector{1, 1})));
  job.run([](ddl_context*& context) {
    const auto world = world_of(context);
    const std::vector<std::uint8_t> contributes{1, static_cast<std::uint8_t>(world.rank)};
    const std::vector<std::uint64_t> numbers(contributes.begin(), contributes.end());
    std::vector<float> values(3, 1.0f);
    Request request = request_of<float>(CallKind::kAllreduce, {DDL_SUM, {}}, values.size());
    request.call.counts = digest_of(numbers);
    request.contributes = contributes;
    request.send = request.recv = reinterpret_cast<std::byte*>(values.data());
    const auto set = context->context->set(DDL_WORLD);
    request.job_ranks = set->job_ranks();
    const Outcome outcome = context->context->run(*set, request, 0.0);
    expect(!outcome && outcome.error().status == DDL_ERROR_MISMATCH, "no mismatch");
    expect(values == std::vector<float>(3, 1.0f), "a buffer was written");
  });
}
