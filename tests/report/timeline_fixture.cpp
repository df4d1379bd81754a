#include "report/timeline_fixture.h"

#include <algorithm>
#include <array>
#include <random>

#include "contract/event_ring.h"
#include "report/timeline_view.h"
#include "support/catch.h"
#include "timeline/gzip_file.h"
#include "timeline/trace_file.h"

namespace ddl::test {

namespace {

using contract::Event;
using timeline::RankTrace;
using timeline::TraceFile;

constexpr std::uint8_t kAllreduceCall = 1, kSlices = 2, kRing = 6;
constexpr std::uint16_t kFloat32 = 0x320;
constexpr std::uint32_t kProgramThread = 10, kEngineThread = 11;

class RankEvents {
 public:
  RankEvents(const TrainingJob& job, int rank) : random_(static_cast<unsigned>(rank) + 1) {
    trace.rank = rank;
    trace.host = job.host + std::to_string(1 + rank / 2);
    trace.pid = 1000 + rank;
    for (int step = 0; step < job.steps; ++step) add_step(job, step);
    trace.ring.count = trace.ring.events.size();
  }
  RankTrace trace;

 private:
  Event& add(Event::Kind kind, std::int64_t begin, std::int64_t end, const std::string& name = "") {
    Event event;
    event.number = trace.ring.events.size() + 1;
    event.kind = kind;
    event.begin = begin;
    event.end = end;
    event.generation = 1;
    event.thread = kProgramThread;
    std::copy_n(name.begin(), std::min(name.size(), event.name.size()), event.name.begin());
    trace.ring.events.push_back(event);
    return trace.ring.events.back();
  }
  Event& add_call(Event::Kind kind, std::int64_t begin, std::int64_t end, std::uint64_t bytes) {
    Event& event = add(kind, begin, end);
    event.call_kind = kAllreduceCall;
    event.bytes = bytes;
    event.dtype = kFloat32;
    event.call = ++calls_;
    event.algorithm = kind == Event::Kind::kExchange ? kRing : kSlices;
    if (kind != Event::Kind::kCall) event.thread = kEngineThread;
    return event;
  }

  void add_step(const TrainingJob& job, int step) {
    using Kind = Event::Kind;
    constexpr std::int64_t kUs = 1000;
    const std::int64_t zero = 1 + step * TrainingJob::kStep;
    const std::int64_t begin = zero + (trace.rank + 1 == job.ranks ? TrainingJob::kLate : 0) + noise();
    const std::int64_t moved = zero + 15'500 * kUs + noise();  // when all tensors are complete
    std::array<std::int64_t, TrainingJob::kBatches> batches{};
    for (std::size_t batch = 0; batch < batches.size(); ++batch)
      batches[batch] = zero + (7500 + 1900 * static_cast<std::int64_t>(batch)) * kUs + noise();
    add(Kind::kRange, begin, moved + 2000 * kUs, "step " + std::to_string(step));
    add(Kind::kMark, begin, begin, "loaded");
    const std::int64_t turn = begin + 4000 * kUs - noise();
    add(Kind::kRange, begin + 10 * kUs, turn, job.range);
    add(Kind::kRange, turn, begin + 11'000 * kUs, "backward");
    for (int i = 0; i < TrainingJob::kTensors; ++i) {
      const std::string name = "layer" + std::to_string(TrainingJob::kTensors - i) + ".weight";
      Event& tensor = add(Kind::kTensor, begin + (4100 + 300 * i) * kUs + noise(), moved, name);
      const std::int64_t from =
          batches[static_cast<std::size_t>(i * TrainingJob::kBatches / TrainingJob::kTensors)];
      tensor.started = std::max(from, tensor.begin);
      tensor.end = tensor.started + 1500 * kUs;
      tensor.call_kind = kAllreduceCall;
      tensor.bytes = std::uint64_t{4096} << static_cast<unsigned>(i % 8);
      tensor.dtype = kFloat32;
    }
    for (const std::int64_t from : batches) {
      add(Kind::kAgreement, from - 100 * kUs, from - 20 * kUs).thread = kEngineThread;
      Event& call = add_call(Kind::kBatch, from, from + 1500 * kUs, 1 << 20);
      call.tensors = TrainingJob::kTensors / TrainingJob::kBatches;
      add_call(Kind::kExchange, from + 200 * kUs, from + 1300 * kUs + noise(), 1 << 19).call = call.call;
    }
    add(Kind::kWait, begin + 11'000 * kUs + noise(), moved, "layer1.weight");
    add(Kind::kStep, moved, moved).thread = kEngineThread;
    add_call(Kind::kCall, moved + 1000 * kUs + noise(), moved + 1900 * kUs, 4);
  }

  /// In nanoseconds, below 0.1 ms.
  std::int64_t noise() { return static_cast<std::int64_t>(random_() % 100'000); }

  std::uint64_t calls_ = 0;
  std::minstd_rand random_;  // NOLINT(cert-msc*): the same timeline each time
};

}  // namespace

void write_timeline(const std::string& path, const TrainingJob& job) {
  auto file = TraceFile::create(path);
  REQUIRE(file);
  timeline::TraceJob trace;
  for (int host = 0; host < (job.ranks + 1) / 2; ++host)
    trace.hosts.push_back({job.host + std::to_string(1 + host), timeline::Alignment()});
  trace.ranks = static_cast<std::size_t>(job.ranks);
  trace.max_bytes = std::uint64_t{1} << 40U;
  REQUIRE(file->begin(trace));
  for (int rank = 0; rank < job.ranks; ++rank) REQUIRE(file->add(RankEvents(job, rank).trace));
  REQUIRE(file->finish());
}

std::string write_timeline_and_page(const std::string& path, const TrainingJob& job,
                                    const std::string& title) {
  write_timeline(path, job);
  const auto file = timeline::GzipFile::open(path);
  REQUIRE(file);
  const auto read = report::read_timeline([&](std::span<char> buffer) { return (*file)->read(buffer); });
  REQUIRE(read);
  const auto page = report::timeline_view(*read, title);
  REQUIRE(page);
  return *page;
}

int steps_for(std::size_t bytes, int ranks) {
  constexpr std::size_t kBytesOfStep = 17'800;
  return static_cast<int>(bytes / (kBytesOfStep * static_cast<std::size_t>(ranks)));
}

}  // namespace ddl::test
