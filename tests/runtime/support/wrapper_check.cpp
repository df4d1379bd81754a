#include "runtime/support/wrapper_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

using Counts = std::vector<std::uint64_t>;

static_assert(detail::dtype_of<float16>() == DDL_FLOAT16 && detail::dtype_of<bfloat16>() == DDL_BFLOAT16 &&
              detail::dtype_of<float8_e4m3fn>() == DDL_FLOAT8_E4M3FN &&
              detail::dtype_of<float8_e5m2>() == DDL_FLOAT8_E5M2 &&
              detail::dtype_of<float8_e4m3fnuz>() == DDL_FLOAT8_E4M3FNUZ &&
              detail::dtype_of<float8_e5m2fnuz>() == DDL_FLOAT8_E5M2FNUZ);

template <class Call>
void expect_refused(Call call, const char* part) {
  try {
    call();
  } catch (const Error& error) {
    expect(error.status() == DDL_ERROR_INVALID_ARGUMENT, std::string("the status of ") + part);
    return expect_contains(error.what(), part);
  }
  expect(false, std::string("not refused: ") + part);
}

void check_reductions(Context& context) {
  const int rank = context.rank(), size = context.size(), last = size - 1;
  std::vector<double> values{1.0 * rank, 1.0};
  context.allreduce(values);
  expect(values[0] == size * last / 2.0 && values[1] == size, "allreduce(vector)");
  const std::vector<float> send(3, static_cast<float>(rank));
  std::vector<float> recv(3, -1.0f);
  context.allreduce(send.data(), recv.data(), 3, Op::max);
  expect(recv[2] == static_cast<float>(last), "allreduce(send, recv)");
  CallOptions halves;
  halves.prescale = 0.5;
  halves.postscale = 4.0;
  std::array<float, 2> scaled{3.0f, 1.0f};
  context.allreduce(scaled, Op::sum, halves);
  expect(scaled[0] == 6.0f * static_cast<float>(size), "allreduce with scales");

  std::vector<int> own(2, rank + 1);
  context.reduce(own, last);
  expect(own[1] == (rank == last ? size * (size + 1) / 2 : rank + 1), "reduce(vector)");
  const double one = 1.0;
  double sum = -1.0;
  context.reduce(&one, rank == 0 ? &sum : nullptr, 1, 0, Op::sum);
  expect(sum == (rank == 0 ? size : -1.0), "reduce(send, recv)");

  Counts counts(static_cast<std::size_t>(size), 2);
  counts[0] = 1;
  std::vector<std::int64_t> all(2 * static_cast<std::size_t>(size) - 1);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int64_t> part = context.reduce_scatter(all, counts, Op::max);
  expect(part.size() == (rank == 0 ? 1u : 2u) && part[0] == (rank == 0 ? 0 : 2 * rank - 1), "reduce_scatter");
  std::vector<std::int64_t> room(2);
  context.reduce_scatter(static_cast<const std::int64_t*>(all.data()), room.data(), counts.data());
  expect(room[0] == part[0] * size, "reduce_scatter(send, recv)");

  std::vector<int> ones(3, 1);
  context.scan(ones);
  expect(ones[2] == rank + 1, "scan(vector)");
  int product = 0;
  context.scan(&ones[0], &product, 1, Op::max);
  expect(product == rank + 1, "scan(send, recv)");
}

void check_movement(Context& context) {
  const int rank = context.rank(), size = context.size(), last = size - 1;
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<long long> root(2, rank);
  context.broadcast(root, last);
  expect(root[1] == last, "broadcast");
  std::vector<int> all(ranks), wanted(ranks);
  context.allgather(&rank, all.data(), 1);
  std::iota(wanted.begin(), wanted.end(), 0);
  expect(all == wanted && context.allgather(std::vector<int>{rank}) == wanted, "allgather");

  std::vector<int> everyone(ranks);
  context.allgather_async("everyone", &rank, everyone.data(), 1).get();
  expect(everyone[ranks - 1] == last, "allgather_async");

  // Rank r contributes r elements.
  Counts counts(ranks);
  std::iota(counts.begin(), counts.end(), std::uint64_t{0});
  const auto various =
      context.allgatherv(std::vector<int>(counts[static_cast<std::size_t>(rank)], rank), counts);
  expect(various.size() == ranks * (ranks - 1) / 2 && (size == 1 || various.back() == last), "allgatherv");
  expect(context.gather(std::vector<int>{rank}, last) == (rank == last ? wanted : std::vector<int>{}),
         "gather");
  expect(context.scatter(rank == 0 ? wanted : std::vector<int>{}, 1, 0) == std::vector<int>{rank}, "scatter");
  const auto part = rank == 0 ? context.scatter<int>(wanted, 1, 0) : context.scatter<int>({}, 1, 0);
  expect(part == std::vector<int>{rank}, "scatter without a vector elsewhere than on root");
  std::vector<int> exchanged(ranks, rank);
  context.alltoall(exchanged);
  expect(exchanged == wanted, "alltoall");

  // All ranks send r elements to rank r.
  const auto received = context.alltoallv(std::vector<int>(ranks * (ranks - 1) / 2, rank), counts);
  expect(received.counts == Counts(ranks, static_cast<std::uint64_t>(rank)), "the counts of alltoallv");
  expect(received.values.size() == ranks * static_cast<std::size_t>(rank), "how much alltoallv brings");
  expect(rank == 0 || (received.values.front() == 0 && received.values.back() == last), "alltoallv");
  context.barrier();
}

/// Fails in one of its functions, and keeps nothing.
class FailingStore final : public Store {
 public:
  explicit FailingStore(bool puts) : puts_(puts) {}
  void put(const std::string& key, const std::string& /*value*/) override {
    if (!puts_) throw std::out_of_range("put " + key);
  }
  std::optional<std::string> get(const std::string& key, double /*seconds*/) override {
    throw std::out_of_range("get " + key);
  }

 private:
  bool puts_;
};

void check_stores(Context& context) {
  FailingStore no_puts(false), no_gets(true);
  // Nobody else takes part, so nothing is stored.
  const ProcessSet own = context.process_set({context.rank()}, "own", no_puts);
  expect(own.size() == 1 && own.ranks() == std::vector<std::int32_t>{context.rank()}, "a set of one rank");
  if (context.size() == 1) return;
  for (FailingStore* const store : {&no_puts, &no_gets}) {
    std::string thrown;
    try {
      (void)context.process_set({0, context.rank() == 0 ? 1 : context.rank()}, "failing", *store);
    } catch (const std::out_of_range& error) {
      thrown = error.what();
    }
    expect_contains(thrown, store == &no_puts ? "put ddl/" : "get ddl/");
  }
}

void check_messages(Context& context) {
  const int rank = context.rank(), size = context.size();
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  std::vector<int> in(2), out{rank, next};
  Message received = context.recv_async(in, any_rank, any_tag);
  Message sent = context.send_async(out, next, 3);
  expect(sent.wait() == next && received.wait() == before, "the other ranks of messages");
  expect(in == std::vector<int>{before, rank}, "a message");
}

void check_sets(Context& context) {
  const int rank = context.rank(), size = context.size();
  std::vector<std::int32_t> reversed(static_cast<std::size_t>(size));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const ProcessSet backwards = context.process_set(reversed);
  expect(backwards.is_member() && backwards.rank() == size - 1 - rank && backwards.size() == size,
         "a process set");
  expect(backwards.ranks() == reversed, "the ranks of a process set");
  std::vector<int> value{rank};
  context.broadcast(value, 0, backwards);
  expect(value[0] == size - 1, "broadcast in a process set");
  expect(context.allgather(std::vector<std::int32_t>{rank}, backwards) == reversed,
         "allgather in a process set");

  ProcessSet halves = context.split(rank % 2, 0, backwards);
  expect(halves.size() == (size + 1 - rank % 2) / 2, "the size of a split set");
  const std::uint64_t id = halves.id();
  ProcessSet moved = std::move(halves);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(!halves.is_member() && halves.ranks().empty() && moved.id() == id, "moving a process set");
  halves = std::move(moved);
  context.barrier(halves);
  halves.free();
  expect(!halves.is_member() && ddl_process_set_size(context.get(), id) == -1, "freeing a process set");

  const ProcessSet first = context.process_set({0});
  expect(first.is_member() == (rank == 0), "who is a member");
  expect(rank == 0 || (first.rank() == -1 && first.size() == -1 && first.ranks().empty()), "who is none");
}

void check_shared_buffers(Context& context) {
  constexpr std::size_t kCount = 10'000;
  auto values = context.alloc<float>(kCount);
  expect(values.size() == kCount && values[0] == 0.0f && values[kCount - 1] == 0.0f,
         "shared memory is not zeroed");
  std::fill(values.begin(), values.end(), 1.0f);
  context.allreduce(values);
  SharedBuffer<float> moved = std::move(values);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(values.data() == nullptr && values.size() == 0, "moving a shared buffer");
  expect_status(ddl_free(nullptr, &context), DDL_ERROR_INVALID_ARGUMENT, "an error to remember");
  const std::string last_error = ddl_last_error();
  { const SharedBuffer<float> gone = std::move(values); }
  expect(last_error == ddl_last_error(), "the end of an empty shared buffer is an error");
  // What is assigned to gives its own memory back at once.
  values = context.alloc<float>(1);
  values = std::move(moved);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(moved.data() == nullptr && moved.begin() == moved.end(), "assigning a shared buffer");
  SharedBuffer<float>& itself = values;
  values = std::move(itself);
  expect(values[kCount - 1] == static_cast<float>(context.size()), "allreduce of a shared buffer");
}

/// A view of elements that it does not own, like std::span: a const view allows writing them.
struct View {
  int* first;
  std::size_t count;
  int* data() const { return first; }
  std::size_t size() const { return count; }
};

void check_containers(Context& context) {
  const int rank = context.rank(), size = context.size();
  int values[2] = {rank, 1};
  const View view{values, 2};
  context.allreduce(view);
  expect(values[1] == size, "allreduce(const view)");
  context.allreduce(View{values, 1}, Op::min);
  expect(values[0] == size * (size - 1) / 2, "allreduce(temporary view)");
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(rank), 7};
  const std::vector<std::uint8_t> all = context.allgather(bytes);
  expect(all.size() == 2 * static_cast<std::size_t>(size) && all[1] == 7, "allgather(const array)");
  auto shared = context.alloc<double>(1);
  shared[0] = 1.0;
  const auto& read_only = shared;
  expect(context.gather(read_only, 0).size() == (rank == 0 ? static_cast<std::size_t>(size) : 0),
         "gather(const shared buffer)");
}

void check_errors(Context& context) {
  const int size = context.size();
  std::vector<int> values(static_cast<std::size_t>(size) + 1);
  expect_refused([&] { context.broadcast(values, size); }, "is not a rank of 0 to");
  expect_refused([&] { (void)context.reduce_scatter(values, Counts(static_cast<std::size_t>(size), 3)); },
                 "reduce_scatter");
  expect_refused([&] { (void)context.allgatherv(values, Counts(static_cast<std::size_t>(size) + 1, 0)); },
                 "entry per rank");
  expect_refused([&] { (void)context.alltoallv(values, Counts()); }, "entry per rank");
  if (context.rank() == 0) expect_refused([&] { (void)context.scatter(values, 1, 0); }, "scatter");
  if (size > 1) expect_refused([&] { context.alltoall(values); }, "alltoall");
  context.barrier();
  expect(context.backend_name() == std::string(ddl_backend_name(context.get())), "the backend's name");
}

void check_futures(Context& context) {
  const int size = context.size();
  std::vector<int> values(3, 1), others(2, 1);
  Future<void> future = context.allreduce_async("values", values);
  Future<void> moved = std::move(future);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(!future.valid() && moved.valid(), "moving a future");
  while (!moved.is_ready()) {
  }
  moved.get();
  expect(!moved.valid() && values[2] == size, "allreduce_async(vector)");
  expect_refused([&] { moved.get(); }, "this Future has no tensor");
  expect_refused([&] { (void)Future<void>().is_ready(); }, "this Future has no tensor");

  // The destructor waits, and so does an assignment.
  { const auto waits = context.allreduce_async("values", values); }
  expect(values[0] == size * size, "the destructor of a future");
  future = context.allreduce_async("values", values, Op::max);
  future = context.allreduce_async("others", others);
  future = Future<void>();
  expect(others[1] == size, "assigning a future");

  // A tensor of which the ranks give different numbers of elements fails alone.
  if (size > 1) {
    future = context.allreduce_async("values", values.data(), context.rank() == 0 ? 1 : 2);
    moved = context.allreduce_async("others", others);
    try {
      future.get();
      expect(false, "tensors that differ were summed");
    } catch (const Error& error) {
      expect(error.status() == DDL_ERROR_MISMATCH, "the status of a tensor that differs");
      expect_contains(error.what(), "\"values\"");
    }
    moved.get();
  }
  expect_refused([&] { (void)context.broadcast_async("", values, 0); }, "name has 0 bytes");
}

void check_named_reductions(Context& context) {
  const int rank = context.rank(), size = context.size();
  AsyncOptions halves;
  halves.prescale = 0.5;
  halves.postscale = 4.0;
  halves.priority = 1;
  halves.shape = {2, 1};
  std::array<float, 2> scaled{3.0f, 1.0f};
  context.allreduce_async("scaled", scaled, Op::sum, halves).get();
  expect(scaled[0] == 6.0f * static_cast<float>(size), "allreduce_async with options");
  const double one = 1.0;
  double sum = 0.0;
  context.allreduce_async("sum", &one, &sum, 1).get();
  expect(sum == size, "allreduce_async(send, recv)");

  AsyncOptions layer;
  layer.group = "layer";
  std::map<std::string, std::vector<float>> gradients{{"weights", {1, 2, 3}}, {"biases", {4}}};
  auto futures = context.allreduce_async(gradients, Op::average, layer);
  std::vector<float> first(2, 1.0f), second(1, 2.0f);
  const std::pair<const char*, std::vector<float>&> references[] = {{"first", first}, {"second", second}};
  for (Future<void>& future : context.allreduce_async(references)) futures.push_back(std::move(future));
  expect(futures.size() == 4, "the number of futures");
  for (Future<void>& future : futures) future.get();
  expect(gradients["weights"] == std::vector<float>{1, 2, 3} && gradients["biases"][0] == 4, "averages");
  expect(first[1] == static_cast<float>(size) && second[0] == 2 * first[0], "sums");
  gradients.clear();
  expect(context.allreduce_async(gradients).empty(), "no tensors");

  Counts counts(static_cast<std::size_t>(size), 2);
  counts[0] = 1;
  std::vector<std::int64_t> all(2 * static_cast<std::size_t>(size) - 1);
  std::iota(all.begin(), all.end(), 0);
  auto future = context.reduce_scatter_async("shard", all, counts, Op::max);
  auto moved = std::move(future);
  const std::vector<std::int64_t> part = moved.get();
  expect(part.size() == (rank == 0 ? 1u : 2u) && part[0] == (rank == 0 ? 0 : 2 * rank - 1),
         "reduce_scatter_async");
  expect_refused([&] { (void)context.reduce_scatter_async("shard", all, Counts()); }, "sum of counts");
}

void check_named_movement(Context& context) {
  const int rank = context.rank(), size = context.size(), last = size - 1;
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<long long> root(2, rank);
  context.broadcast_async("root", root, last).get();
  expect(root[1] == last, "broadcast_async");

  // Rank r contributes r elements.
  const std::vector<int> own(static_cast<std::size_t>(rank), rank);
  auto future = context.allgatherv_async("own", own);
  auto moved = std::move(future);
  const ReceivedBuffer<int> gathered = moved.get();
  Counts counts(ranks);
  std::iota(counts.begin(), counts.end(), std::uint64_t{0});
  expect(gathered.counts == counts && gathered.values.size() == ranks * (ranks - 1) / 2, "allgatherv_async");
  expect(size == 1 || gathered.values[gathered.values.size() - 1] == last, "what allgatherv_async brings");

  // All ranks send r elements to rank r.
  const std::vector<int> sent(ranks * (ranks - 1) / 2, rank);
  const ReceivedBuffer<int> received = context.alltoallv_async("sent", sent, counts).get();
  expect(received.counts == Counts(ranks, static_cast<std::uint64_t>(rank)), "the counts of alltoallv_async");
  expect(received.values.size() == ranks * static_cast<std::size_t>(rank), "how much alltoallv_async brings");
  expect(rank == 0 || received.values[received.values.size() - 1] == last, "alltoallv_async");
  expect_refused([&] { (void)context.alltoallv_async("sent", sent, Counts()); }, "entry per rank");
  { const auto dropped = context.allgatherv_async("own", own); }

  const ProcessSet half = context.split(rank % 2);
  std::vector<int> members{1};
  context.allreduce_async("members", members, Op::sum, half).get();
  expect(members[0] == half.size(), "allreduce_async in a process set");
  context.step(half);
  const int joined_last = context.join(half);
  expect(joined_last >= 0 && joined_last < half.size(), "join in a process set");
}

void check_named_tensors(Context& context) {
  std::vector<int> value{1};
  check_futures(context);
  check_named_reductions(context);
  check_named_movement(context);
  context.step();
  // Rank r has data for r steps.
  for (int step = 0; step < context.rank(); ++step) {
    value[0] = 1;
    context.allreduce_async("value", value).get();
    expect(value[0] == context.size() - 1 - step, "the sum without the ranks that have joined");
  }
  expect(context.join() == context.size() - 1, "join");
}

}  // namespace

void check_wrapper(Context& context) {
  const int rank = context.rank();
  check_reductions(context);
  check_movement(context);
  check_messages(context);
  check_sets(context);
  check_stores(context);
  check_shared_buffers(context);
  check_containers(context);
  check_errors(context);
  check_named_tensors(context);

  Context moved = std::move(context);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(context.get() == nullptr && moved.rank() == rank, "moving");
  context = std::move(moved);
}

}  // namespace ddl::conformance
