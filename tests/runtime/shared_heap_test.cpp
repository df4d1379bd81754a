// Collectives give the same bits on the shared heap as on private buffers, for any combination of both; and the heap
// itself.
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime::test;

namespace {

constexpr std::uint64_t kCount = 40'003;  // of each rank: not a multiple of slices, blocks or lines

/// A buffer of floats in the shared heap.
class HeapBuffer {
 public:
  HeapBuffer(ddl_context* context, std::uint64_t count) : context_(context) {
    expect_ok(ddl_alloc(context, count * sizeof(float), &memory_), "alloc");
  }
  ~HeapBuffer() { ddl_free(context_, memory_); }
  HeapBuffer(const HeapBuffer&) = delete;
  HeapBuffer& operator=(const HeapBuffer&) = delete;
  float* data() const { return static_cast<float*>(memory_); }

 private:
  ddl_context* context_;
  void* memory_ = nullptr;
};

/// One collective: from send to recv, which may be the same where in_place is true.
struct Trial {
  const char* name;
  std::uint64_t send_parts, recv_parts;  ///< 0: one part, else one a rank
  bool in_place;
  std::function<ddl_status(ddl_context*, const float*, float*)> call;
};

std::vector<Trial> trials(int ranks) {
  const std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks), kCount);
  return {
      {"allreduce", 0, 0, true,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_allreduce(c, s, r, kCount, DDL_FLOAT32, DDL_AVERAGE, nullptr);
       }},
      {"allreduce of 16-bit floats", 0, 0, true,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_allreduce(c, s, r, kCount * 2, DDL_BFLOAT16, DDL_SUM, nullptr);
       }},
      {"reduce", 0, 0, true,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_reduce(c, s, r, kCount, DDL_FLOAT32, DDL_PRODUCT, ddl_size(c) - 1, nullptr);
       }},
      {"allgather", 0, 1, false,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_allgather(c, s, r, kCount, DDL_FLOAT32, nullptr);
       }},
      {"gather", 0, 1, false,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_gather(c, s, r, kCount, DDL_FLOAT32, 0, nullptr);
       }},
      {"scatter", 1, 0, false,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_scatter(c, s, r, kCount, DDL_FLOAT32, 0, nullptr);
       }},
      {"alltoall", 1, 1, true,
       [](ddl_context* c, const float* s, float* r) {
         return ddl_alltoall(c, s, r, kCount, DDL_FLOAT32, nullptr);
       }},
      {"reduce_scatter", 1, 0, false,
       [counts](ddl_context* c, const float* s, float* r) {
         return ddl_reduce_scatter(c, s, r, counts.data(), DDL_FLOAT32, DDL_SUM, nullptr);
       }},
      {"broadcast", 0, 0, true,
       [](ddl_context* c, const float*, float* r) {
         return ddl_broadcast(c, r, kCount, DDL_FLOAT32, 0, nullptr);
       }},
  };
}

/// Every trial with private buffers, with buffers in the heap, and with one rank's buffers private and all others in
/// the heap.
void check_heap(ddl_context* context) {
  const int rank = ddl_rank(context), ranks = ddl_size(context);
  for (const Trial& trial : trials(ranks)) {
    const auto parts = [ranks](std::uint64_t per_rank) {
      return per_rank == 0 ? 1 : static_cast<std::uint64_t>(ranks);
    };
    const std::uint64_t sent = kCount * parts(trial.send_parts), received = kCount * parts(trial.recv_parts);
    std::vector<float> input(sent), wanted(received, -1.0f);
    for (std::uint64_t e = 0; e < sent; ++e) {
      input[e] = 1.0f / static_cast<float>(1 + e % 1009 + 13 * static_cast<std::uint64_t>(rank));
    }
    if (std::string(trial.name) == "broadcast") wanted = input;
    expect_ok(trial.call(context, input.data(), wanted.data()), trial.name);
    for (int private_rank = -1; private_rank < ranks; ++private_rank) {
      const std::string what = std::string(trial.name) + ", private on rank " + std::to_string(private_rank);
      HeapBuffer heap_send(context, sent), heap_recv(context, received);
      std::vector<float> own_send(sent), own_recv(received);
      float* const send = rank == private_rank ? own_send.data() : heap_send.data();
      float* const recv = rank == private_rank ? own_recv.data() : heap_recv.data();
      std::copy(input.begin(), input.end(), send);
      std::fill(recv, recv + received, -1.0f);
      if (std::string(trial.name) == "broadcast") std::copy(input.begin(), input.end(), recv);
      expect_ok(trial.call(context, send, recv), what);
      expect(std::memcmp(recv, wanted.data(), received * sizeof(float)) == 0, what + ": other bits");
      expect(std::memcmp(send, input.data(), sent * sizeof(float)) == 0, what + ": changed its input");
      if (!trial.in_place) continue;
      expect_ok(trial.call(context, send, send), what + ", in place");
      const bool receives_all = std::string(trial.name) != "reduce" || rank == ranks - 1;
      const bool is_broadcast = std::string(trial.name) == "broadcast";
      if (receives_all && !is_broadcast) {
        expect(std::memcmp(send, wanted.data(), received * sizeof(float)) == 0,
               what + ", in place: other bits");
      }
    }
  }
}

}  // namespace

TEST_CASE("collectives on the shared heap give the bits of those on private buffers") {
  ThreadJob job;
  job.ranks = GENERATE(1, 2, 3, 5);
  CAPTURE(job.ranks);
  job.run([](ddl_context*& context) { check_heap(context); });
}

TEST_CASE("the same between hosts, for which the heap is ordinary memory") {
  ThreadJob job;
  job.ranks = 3;
  job.hosts = hosts_of_sizes({2, 1});
  job.run([](ddl_context*& context) { check_heap(context); });
}

TEST_CASE("ranks that are processes reach each other's heap, and so do those of a process set") {
  ProcessJob job;
  job.ranks = 4;
  const auto ends = job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    check_heap(context);
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, place.rank() % 2, -place.rank(), &set), "split");
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    {
      HeapBuffer buffer(context, kCount);
      for (int round = 0; round < 3; ++round) {
        std::fill(buffer.data(), buffer.data() + kCount, static_cast<float>(place.rank()));
        expect_ok(
            ddl_allreduce(context, buffer.data(), buffer.data(), kCount, DDL_FLOAT32, DDL_SUM, &options), "");
        expect(buffer.data()[kCount - 1] == (place.rank() % 2 == 0 ? 2.0f : 4.0f), "wrong sum");
      }
    }
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  });
  for (const RankEnd& end : ends) CHECK(end.report.empty());
}

TEST_CASE("the heap allocates zeroed memory, frees it, and refuses to free other memory") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    void* first = nullptr;
    expect_ok(ddl_alloc(context, 200'000, &first), "alloc");
    expect(reinterpret_cast<std::uintptr_t>(first) % 4096 == 0, "not on a page");
    std::memset(first, 0xAB, 200'000);
    void* second = nullptr;
    expect_ok(ddl_alloc(context, 0, &second), "alloc of nothing");
    expect(second != nullptr && second != first, "two blocks are one");
    expect_ok(ddl_free(context, first), "free");
    void* third = nullptr;
    expect_ok(ddl_alloc(context, 150'000, &third), "alloc");
    expect(third == first, "freed memory is not used again");
    const auto* bytes = static_cast<const unsigned char*>(third);
    expect(std::accumulate(bytes, bytes + 150'000, 0) == 0, "memory is not zero");
    expect_status(ddl_free(context, static_cast<char*>(third) + 64), DDL_ERROR_INVALID_ARGUMENT,
                  "inside of a block");
    int own = 0;
    expect_status(ddl_free(context, &own), DDL_ERROR_INVALID_ARGUMENT, "not of the heap");
    expect_ok(ddl_free(context, third), "free");
    expect_status(ddl_free(context, third), DDL_ERROR_INVALID_ARGUMENT, "freed twice");
    expect_ok(ddl_free(context, second), "free");
    expect_ok(ddl_free(context, nullptr), "free of null");
    expect_status(ddl_alloc(context, std::uint64_t{1} << 60, &first), DDL_ERROR_SYSTEM, "too much");
    expect(first == nullptr, "no memory, but a pointer");
    // All of it is one piece again.
    expect_ok(ddl_alloc(context, 1 << 30, &first), "a gigabyte, untouched");
    expect_ok(ddl_free(context, first), "free");
  });
}

#ifdef DDL_FAULT_INJECTION

TEST_CASE(
    "memory that a rank frees after a death is not allocated again, since a survivor may still write there") {
  ProcessJob job;
  job.ranks = 3;
  // The ranks have exchanged the addresses.
  job.settings.fault = ddl::runtime::FaultPlan{"allreduce.after_publish", 1, 3};
  const auto ends = job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    void* memory = nullptr;
    expect_ok(ddl_alloc(context, kCount * sizeof(float), &memory), "alloc");
    std::int32_t one = 1;
    expect_ok(ddl_allreduce(context, &one, &one, 1, DDL_INT32, DDL_SUM, nullptr), "small allreduce");
    auto* values = static_cast<float*>(memory);
    ddl_status status = DDL_OK;
    for (int round = 0; round < 2 && status == DDL_OK; ++round) {
      status = ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_SUM, nullptr);
    }
    expect_status(status, DDL_ERROR_PEER_LOST, "allreduce");
    expect_ok(ddl_free(context, memory), "free");
    void* other = nullptr;
    expect_status(ddl_alloc(context, 1, &other), DDL_ERROR_ABORTED, "alloc after an abort");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string("notified");
  });
  CHECK(ends[0].report == "notified");
  CHECK(ends[2].report == "notified");
}

#endif
