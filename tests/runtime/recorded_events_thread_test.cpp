// What ranks record of their calls, named tensors, waits and steps, with ranks as threads.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "contract/event_ring.h"
#include "contract/rank_record.h"
#include "ddl/range.hpp"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"
#include "timeline/event_ring.h"

using namespace ddl::conformance;
using ddl::contract::Event;
using ddl::contract::EventRing;
using ddl::runtime::test::ThreadJob;
using ddl::timeline::RingSnapshot;

namespace {

/// A job whose ranks, dealt to the hosts in turn, have records, as ddlrun's agent makes them.
class RecordedJob {
 public:
  RecordedJob(int ranks, int hosts)
      : fd_(::memfd_create("records", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
        bytes_(kEach * static_cast<std::size_t>(ranks)) {
    REQUIRE(::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) == 0);
    REQUIRE(::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    job.ranks = ranks;
    job.timeout_seconds = 20;
    if (hosts > 1) job.hosts.resize(static_cast<std::size_t>(hosts));
    for (int rank = 0; rank < ranks; ++rank) {
      if (hosts > 1) job.hosts[static_cast<std::size_t>(rank % hosts)].push_back(rank);
      const std::size_t at = kEach * static_cast<std::size_t>(rank);
      const std::uint32_t magic = ddl::contract::RankRecord::kMagic;
      std::memcpy(memory_ + at, &magic, sizeof magic);
      ddl::timeline::make_ring(ring_memory(rank), kEvents, kEvents).is_exact = 1;
      job.records.push_back({fd_.get(), static_cast<std::int64_t>(at), static_cast<std::int64_t>(kEach)});
    }
  }
  ~RecordedJob() { ::munmap(memory_, bytes_); }
  RecordedJob(const RecordedJob&) = delete;
  RecordedJob& operator=(const RecordedJob&) = delete;

  RingSnapshot read(int rank) const {
    const auto memory = ring_memory(rank);
    const EventRing* const ring = ddl::timeline::find_ring(memory);
    REQUIRE(ring != nullptr);
    return ddl::timeline::read_ring(*ring, memory, kEvents);
  }

  ThreadJob job;

 private:
  static constexpr std::uint32_t kEvents = 512;
  static constexpr std::size_t kEach = 3 * ddl::contract::RankRecord::kBytes;
  static_assert(ddl::contract::RankRecord::kBytes + EventRing::bytes_for(kEvents) <= kEach);
  std::span<std::byte> ring_memory(int rank) const {
    return std::span(memory_, bytes_)
        .subspan(kEach * static_cast<std::size_t>(rank), kEach)
        .subspan(ddl::contract::RankRecord::kBytes);
  }

  ddl::UniqueFd fd_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

std::string recorded_name(const Event& event) {
  return {event.name.data(), ::strnlen(event.name.data(), event.name.size())};
}

/// Those of this kind.
std::vector<Event> recorded(const RingSnapshot& ring, Event::Kind kind) {
  std::vector<Event> found;
  std::copy_if(ring.events.begin(), ring.events.end(), std::back_inserter(found),
               [&](const Event& event) { return event.kind == kind; });
  return found;
}

ddl_handle* recorded_sum(ddl_context* context, const std::string& name, std::vector<float>& values) {
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, name.c_str(), values.data(), values.data(), values.size(),
                                DDL_FLOAT32, DDL_SUM, nullptr, &handle),
            "allreduce_async");
  return handle;
}

}  // namespace

TEST_CASE("ranks record their calls, tensors, waits, steps, marks and ranges, and everything ends") {
  const int ranks = GENERATE(1, 2, 3), hosts = GENERATE(1, 2);
  if (hosts > ranks) return;
  CAPTURE(ranks, hosts);
  RecordedJob recording(ranks, hosts);
  constexpr int kSteps = 3;
  recording.job.run([](ddl_context*& context) {
    std::vector<float> first(100), second(7);
    for (int step = 0; step < kSteps; ++step) {
      std::uint64_t range = 0;
      expect_ok(ddl_range_begin(context, "step", &range), "range_begin");
      expect(range != 0, "a range has a number");
      std::array<ddl_handle*, 2> handles{recorded_sum(context, "first", first),
                                         recorded_sum(context, "second", second)};
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      expect_ok(ddl_mark(context, "middle"), "mark");
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      expect_ok(ddl_range_end(context, range), "range_end");
    }
  });
  for (int rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    const RingSnapshot ring = recording.read(rank);
    CHECK(ring.events.size() == ring.count);
    for (const Event& event : ring.events) {
      CAPTURE(static_cast<int>(event.kind), event.number);
      CHECK(event.end >= event.begin);
      CHECK(event.status == DDL_OK);
    }
    const auto calls = recorded(ring, Event::Kind::kCall);
    REQUIRE(calls.size() == kSteps);
    for (std::size_t i = 0; i < kSteps; ++i) CHECK(calls[i].call == i + 1);
    const auto tensors = recorded(ring, Event::Kind::kTensor);
    CHECK(tensors.size() == 2 * kSteps);
    for (const Event& tensor : tensors) {
      CHECK(tensor.bytes == (recorded_name(tensor) == "first" ? 400U : 28U));
      CHECK(tensor.started >= tensor.begin);
      CHECK(tensor.started <= tensor.end);
      CHECK(tensor.dtype == DDL_FLOAT32);
      CHECK(tensor.op == DDL_SUM);
    }
    CHECK(recorded(ring, Event::Kind::kMark).size() == kSteps);
    CHECK(recorded(ring, Event::Kind::kRange).size() == kSteps);
    CHECK(recorded(ring, Event::Kind::kStep).size() == ring.steps);
    CHECK(ring.steps == kSteps);
    const auto batches = recorded(ring, Event::Kind::kBatch);
    CHECK_FALSE(batches.empty());
    for (const Event& batch : batches) CHECK(batch.tensors >= 1);
    for (const Event& wait : recorded(ring, Event::Kind::kWait)) {
      CAPTURE(recorded_name(wait));
      CHECK((recorded_name(wait) == "first" || recorded_name(wait) == "second"));
    }
    // One rank of each host moves the data.
    if (hosts > 1 && rank < hosts) CHECK_FALSE(recorded(ring, Event::Kind::kExchange).empty());
    // What a range encloses is in it.
    const Event range = recorded(ring, Event::Kind::kRange).front();
    CHECK(range.begin <= tensors.front().begin);
    CHECK(range.end >= calls.front().end);
  }
}

TEST_CASE("calls that repeat a small one are recorded as every call is") {
  RecordedJob recording(2, 1);
  recording.job.run([](ddl_context*& context) {
    for (int call = 0; call < 5; ++call) {
      float value = 1;
      expect_ok(ddl_allreduce(context, &value, &value, 1, DDL_FLOAT32, DDL_SUM, nullptr), "allreduce");
    }
  });
  const auto calls = recorded(recording.read(1), Event::Kind::kCall);
  REQUIRE(calls.size() == 5);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(calls[i].call == i + 1);
    CHECK(calls[i].bytes == sizeof(float));
    CHECK(calls[i].op == calls[0].op);
    CHECK(calls[i].dtype == DDL_FLOAT32);
    CHECK(calls[i].algorithm == calls[0].algorithm);
    CHECK(calls[i].end >= calls[i].begin);
  }
}

TEST_CASE("a tensor that fails has an end, with its status") {
  const int hosts = GENERATE(1, 2);
  CAPTURE(hosts);
  RecordedJob recording(2, hosts);
  recording.job.run([](ddl_context*& context) {
    std::vector<float> values(ddl_rank(context) == 0 ? 3 : 4);
    expect_status(ddl_wait(recorded_sum(context, "different", values)), DDL_ERROR_MISMATCH, "wait");
  });
  for (const int rank : {0, 1}) {
    const auto tensors = recorded(recording.read(rank), Event::Kind::kTensor);
    REQUIRE(tensors.size() == 1);
    CHECK(recorded_name(tensors[0]) == "different");
    CHECK(tensors[0].end != Event::kOpen);
    CHECK(tensors[0].status == DDL_ERROR_MISMATCH);
  }
}

TEST_CASE("tensors that no other rank submits end when their rank leaves") {
  const int hosts = GENERATE(1, 2);
  CAPTURE(hosts);
  RecordedJob recording(2, hosts);
  recording.job.run([](ddl_context*& context) {
    std::vector<float> values(3), others(4);
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) != 0) return;
    std::array<ddl_handle*, 2> handles{recorded_sum(context, "lonely", values),
                                       recorded_sum(context, "forgotten", others)};
    expect_ok(ddl_finalize(context), "finalize");
    context = nullptr;
    for (ddl_handle* const handle : handles)
      expect(ddl_wait(handle) != DDL_OK, "a wait for a tensor that failed");
  });
  const RingSnapshot ring = recording.read(0);
  const auto tensors = recorded(ring, Event::Kind::kTensor);
  REQUIRE(tensors.size() == 2);
  for (const Event& tensor : tensors) {
    CHECK(tensor.end != Event::kOpen);
    CHECK(tensor.status != DDL_OK);
  }
  for (const Event& event : ring.events) CHECK(event.end != Event::kOpen);
  for (const Event& event : recording.read(1).events) CHECK(event.end != Event::kOpen);
}

TEST_CASE("two contexts of a process, one after the other, record into one ring") {
  RecordedJob recording(2, 1);
  for (int i = 0; i < 2; ++i)
    recording.job.run([](ddl_context*& context) { expect_ok(ddl_barrier(context, nullptr), "barrier"); });
  for (const int rank : {0, 1}) CHECK(recorded(recording.read(rank), Event::Kind::kCall).size() == 2);
}

TEST_CASE("a ddl::Range ends once, wherever it has moved") {
  RecordedJob recording(1, 1);
  recording.job.run([](ddl_context*& context) {
    {
      ddl::Range outer(context, "outer");
      const ddl::Range moved(std::move(outer));
      const ddl::Range inner(context, "inner");
    }
    ddl::Range first(context, "first");
    first = ddl::Range(context, "second");
    expect_ok(ddl_mark(context, "after"), "mark");
  });
  const auto ranges = recorded(recording.read(0), Event::Kind::kRange);
  REQUIRE(ranges.size() == 4);
  CHECK(recorded_name(ranges[0]) == "outer");
  CHECK(ranges[1].end <= ranges[0].end);
  const Event mark = recorded(recording.read(0), Event::Kind::kMark).at(0);
  CHECK(ranges[2].end <= mark.begin);
  CHECK(ranges[3].end >= mark.begin);
}
