#include "bench/contenders/measured_rank.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/cpu_set.h"
#include "base/error.h"
#include "base/text.h"
#include "contract/environment.h"

namespace ddl::bench {

/// Private, page-aligned memory that does not come from malloc: the settings of malloc then affect the library
/// under test and not the buffers of the test.
class PrivateBuffer {
 public:
  static Result<PrivateBuffer> allocate(std::size_t size) {
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return fail_errno("mmap the buffer");
    return PrivateBuffer(data, size);
  }
  ~PrivateBuffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  PrivateBuffer(PrivateBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  PrivateBuffer& operator=(PrivateBuffer&&) = delete;

  float* floats() const { return static_cast<float*>(data_); }

 private:
  PrivateBuffer(void* data, std::size_t size) : data_(data), size_(size) {}
  void* data_;
  std::size_t size_;
};

/// Allocates buffers for measure(), and owns them.
class PrivateMemory {
 public:
  Result<float*> allocate(std::size_t bytes) {
    DDL_ASSIGN(buffer, PrivateBuffer::allocate(bytes));
    buffers_.push_back(std::move(buffer));
    return buffers_.back().floats();
  }

 private:
  std::vector<PrivateBuffer> buffers_;
};

namespace {

std::optional<int> small_number(const char* text) {
  const auto number = text == nullptr ? std::nullopt : parse_integer(text);
  if (!number || *number < 0 || *number > 100000) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<Work> parse_work(std::string_view name) {
  if (const auto collective = parse_collective(name)) return *collective;
  if (const auto model = parse_model(name)) return *model;
  return std::nullopt;
}

Result<int> launched_rank() {
  for (const char* name : {"DDL_BENCH_RANK", contract::env::kPmixRank, "PMI_RANK"}) {
    if (const auto rank = small_number(std::getenv(name))) return *rank;
  }
  return fail(ErrorCode::kInvalidArgument, "none of DDL_BENCH_RANK, PMIX_RANK and PMI_RANK holds a rank");
}

}  // namespace

Result<RankJob> join_benchmark(int argc, char** argv, bool has_threads) {
  if (argc != 8)
    return fail(ErrorCode::kInvalidArgument, "usage: WORK RANKS HOSTS CPUS PLAN FOLDER SCOREBOARD");
  const auto work = parse_work(argv[1]);
  if (!work) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is neither a collective nor a model", argv[1]));
  }
  DDL_ASSIGN(rank, launched_rank());
  const auto ranks = small_number(argv[2]);
  if (!ranks || rank >= *ranks) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("rank {} of \"{}\" ranks", rank, argv[2]));
  }
  const auto hosts = small_number(argv[3]);
  if (!hosts || *hosts < 1 || *ranks % *hosts != 0) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} ranks on \"{}\" hosts", *ranks, argv[3]));
  }
  std::vector<int> all_cpus;
  std::vector<std::vector<int>> cpus_of_ranks;
  for (const std::string_view one : split(argv[4], ',')) {
    std::vector<int>& cpus = cpus_of_ranks.emplace_back();
    for (const std::string_view text : split(one, '+')) {
      const auto cpu = small_number(std::string(text).c_str());
      if (!cpu || *cpu >= kMaxCpuNumbers)
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a list of CPUs", argv[4]));
      cpus.push_back(*cpu);
      all_cpus.push_back(*cpu);
    }
  }
  const CpuSet own = CpuSet::of(has_threads ? all_cpus : cpus_of_ranks[rank % cpus_of_ranks.size()]);
  if (const int error = own.bind_this_thread()) return fail(errno_error("sched_setaffinity", error));

  DDL_ASSIGN(plan, parse_plan(argv[5]));
  DDL_ASSIGN(scoreboard, Scoreboard::open(argv[7], *ranks, plan));
  return RankJob{.work = *work,
                 .rank = rank,
                 .ranks = *ranks,
                 .hosts = *hosts,
                 .cpu_sets = static_cast<int>(cpus_of_ranks.size()),
                 .cpus = own.count(),
                 .plan = std::move(plan),
                 .folder = argv[6],
                 .scoreboard = std::move(scoreboard),
                 .has_threads = has_threads};
}

int fail_rank(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return EXIT_FAILURE;
}

Status check_world(const RankJob& job, int rank, int size) {
  if (CpuSet::allowed().count() != job.cpus)
    return fail(ErrorCode::kProtocol, "the library has changed the pinning");
  if (rank == job.rank && size == job.ranks) return {};
  return fail(ErrorCode::kProtocol,
              fmt::format("the launcher started rank {} of {}, but the library sees rank {} of {}", job.rank,
                          job.ranks, rank, size));
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTimeForOneSize{1};
constexpr std::uint64_t kMinCalls = 4;

std::uint64_t largest_size(const RankJob& job) {
  std::uint64_t largest = 0;
  for (const SizePlan& size : job.plan) largest = std::max(largest, size.bytes);
  return largest;
}

// The loop of one size. turn is the call's number modulo 8. rewrite(turn) fills the buffers, run() is what is timed
// and returns whether it succeeded, is_right(turn, thoroughly) checks the result.
template <class Rewrite, class Run, class IsRight>
Status time_calls(RankJob& job, std::size_t index, Rewrite rewrite, Run run, IsRight is_right) {
  const SizePlan& size = job.plan[index];
  double* seconds = job.scoreboard.seconds(job.rank, index);
  const auto end_of_time = Clock::now() + kTimeForOneSize;
  bool enough = false;
  const auto record_distance = [&job, index](std::uint64_t before_call) {
    if (!job.has_distances()) return;
    // So that no rank keeps the others waiting in the middle of it.
    job.scoreboard.barrier(job.rank, job.wait());
    job.scoreboard.record_distance(job.rank, index, before_call);
  };
  for (std::uint64_t call = 0; call < size.warm_ups + size.calls && !enough; ++call) {
    const int turn = call % 8;
    rewrite(turn);
    record_distance(call);
    const bool time_is_up = call + 1 >= size.warm_ups + kMinCalls && Clock::now() > end_of_time;
    enough = job.scoreboard.barrier(job.rank, job.wait(), time_is_up);
    const auto started = Clock::now();
    const bool succeeded = run();
    const auto ended = Clock::now();
    if (!succeeded)
      return fail(ErrorCode::kSystem,
                  fmt::format("rank {}: a call with {} bytes failed", job.rank, size.bytes));
    if (enough || call + 1 == size.warm_ups + size.calls) record_distance(call + 1);
    const bool is_warm_up = call < size.warm_ups;
    if (!is_warm_up) seconds[call - size.warm_ups] = std::chrono::duration<double>(ended - started).count();
    if (!is_right(turn, is_warm_up))
      return fail(ErrorCode::kInternal,
                  fmt::format("rank {}: a wrong result of {} bytes", job.rank, size.bytes));
  }
  return {};
}

bool is_all(const float* data, std::size_t count, float value, bool thoroughly) {
  if (thoroughly) return std::all_of(data, data + count, [value](float one) { return one == value; });
  return data[0] == value && data[count / 2] == value && data[count - 1] == value;
}

Status measure_collective(RankJob& job, Collective what, Expect expect, const Allocate& allocate,
                          const Call& call, const Complete& complete) {
  DDL_ASSIGN(send, allocate(largest_size(job)));
  DDL_ASSIGN(recv, is_in_place(what) ? send : allocate(largest_size(job)));
  const Shape shape = shape_of(what, job.ranks);

  for (std::size_t index = 0; index < job.plan.size(); ++index) {
    Buffers buffers{send, recv, job.plan[index].bytes / sizeof(float), 0};
    buffers.part = buffers.count / job.ranks;
    const std::size_t length = shape.has_shares ? buffers.part : buffers.count;
    const auto part_of = [length](auto* data, int part) { return data + part * length; };
    const auto rewrite = [&](int turn) {
      if (!is_in_place(what)) std::fill_n(buffers.recv, length * shape.result_parts, -2.0F);
      for (int part = 0; part < shape.sent_parts; ++part)
        std::fill_n(part_of(buffers.send, part), length, sent_value(what, job.rank, job.ranks, part, turn));
    };
    const float* result = nullptr;
    const auto run = [&] {
      result = call(what, buffers);
      return result != nullptr && (!complete || complete());
    };
    const auto is_right = [&](int turn, bool thoroughly) {
      if (expect == Expect::kNothing) return true;
      for (int part = 0; part < shape.result_parts; ++part) {
        const float wanted = expected_value(what, job.rank, job.ranks, part, turn);
        if (!is_all(part_of(result, part), length, wanted, thoroughly)) return false;
      }
      return true;
    };
    DDL_TRY(time_calls(job, index, rewrite, run, is_right));
  }
  return {};
}

// The gradients of a model, in the order in which training computes them. They lie in one buffer, and each starts on a
// cache line of its own.
struct Gradients {
  std::vector<std::uint64_t> elements;
  std::vector<float*> data;
  std::uint64_t span = 0;  // elements of the buffer
};

Result<Gradients> allocate_gradients(Model model, const Allocate& allocate) {
  constexpr std::uint64_t kCacheLine = 64 / sizeof(float);
  Gradients gradients{tensors_backward(model), {}};
  std::vector<std::uint64_t> offsets;
  for (const std::uint64_t elements : gradients.elements) {
    offsets.push_back(gradients.span);
    gradients.span += (elements + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  DDL_ASSIGN(memory, allocate(gradients.span * sizeof(float)));
  for (const std::uint64_t offset : offsets) gradients.data.push_back(memory + offset);
  return gradients;
}

// How a contender does its calls: one by one, or submitted and completed together.
struct StepCalls {
  Call call;
  Complete complete;  // null: what has been called is complete
  Buckets buckets = Buckets::kOfHarness;
};

// Does one step of a model, again and again.
class Step {
 public:
  static Result<Step> allocate(RankJob& job, Model model, const StepCalls& calls, const Allocate& allocate) {
    DDL_ASSIGN(gradients, allocate_gradients(model, allocate));
    // Buckets that are submitted are all in use at once.
    std::uint64_t bytes = calls.complete ? gradients.span * sizeof(float) : sizeof(float);
    for (const SizePlan& size : job.plan) {
      if (size.bytes < kInOneBuffer) bytes = std::max(bytes, size.bytes);
    }
    DDL_ASSIGN(memory, allocate(bytes));
    return Step(std::move(gradients), memory, calls);
  }

  const Gradients& gradients() const { return gradients_; }

  /// The next steps use buckets of this size.
  void use_buckets(std::uint64_t bytes) {
    if (calls_.buckets == Buckets::kOfLibrary) {
      buckets_ = buckets_of(gradients_.elements, sizeof(float));
    } else if (bytes == kInOneBuffer) {
      buckets_ = {{0, gradients_.elements.size(), gradients_.span}};
    } else {
      buckets_ = buckets_of(gradients_.elements, bytes);
    }
    copies_ = bytes != kInOneBuffer;
  }
  /// The gradients of the next steps come one by one, the last of them after this time.
  void compute_for(std::chrono::duration<double> time) { computing_ = time; }

  bool run() {
    const auto started = Clock::now();
    float* at = memory_;
    for (const Bucket& bucket : buckets_) {
      const bool is_packed = copies_ && bucket.count > 1;
      float* const data = is_packed ? at : gradients_.data[bucket.first];
      for (std::size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
        wait_for_gradient(i, started);
        if (!is_packed) continue;
        std::memcpy(at, gradients_.data[i], gradients_.elements[i] * sizeof(float));
        at += gradients_.elements[i];
      }
      if (calls_.call(Collective::kAllreduce, {data, data, bucket.elements, 0}) == nullptr) return false;
      if (!is_packed || calls_.complete) continue;
      copy_back(bucket, data);
      at = memory_;
    }
    if (!calls_.complete) return true;
    if (!calls_.complete()) return false;
    const float* from = memory_;
    for (const Bucket& bucket : buckets_) {
      if (copies_ && bucket.count > 1) from = copy_back(bucket, from);
    }
    return true;
  }

 private:
  Step(Gradients gradients, float* memory, const StepCalls& calls)
      : gradients_(std::move(gradients)), memory_(memory), calls_(calls) {}

  void wait_for_gradient(std::size_t index, Clock::time_point started) const {
    if (computing_.count() <= 0) return;
    const double share = static_cast<double>(index + 1) / static_cast<double>(gradients_.data.size());
    std::this_thread::sleep_until(started + std::chrono::duration_cast<Clock::duration>(share * computing_));
  }

  // Returns the end of the bucket.
  const float* copy_back(const Bucket& bucket, const float* at) const {
    for (std::size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
      std::memcpy(gradients_.data[i], at, gradients_.elements[i] * sizeof(float));
      at += gradients_.elements[i];
    }
    return at;
  }

  Gradients gradients_;
  float* memory_;  // for buckets
  StepCalls calls_;
  std::vector<Bucket> buckets_;
  bool copies_ = true;
  std::chrono::duration<double> computing_{0};
};

// The median of the steps of this size, as all ranks see it.
std::chrono::duration<double> time_of_step(RankJob& job, std::size_t index) {
  job.scoreboard.barrier(job.rank, job.wait());
  std::vector<double> seconds = job.scoreboard.timed_calls(index).seconds;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return std::chrono::duration<double>(*middle);
}

Status measure_steps(RankJob& job, Model model, Expect expect, const Allocate& allocate,
                     const StepCalls& calls) {
  DDL_ASSIGN(step, Step::allocate(job, model, calls, allocate));
  const Gradients& gradients = step.gradients();
  const auto rewrite = [&](int turn) {
    const float value = sent_value(Collective::kAllreduce, job.rank, job.ranks, 0, turn);
    for (std::size_t i = 0; i < gradients.data.size(); ++i)
      std::fill_n(gradients.data[i], gradients.elements[i], value);
  };
  const auto is_right = [&](int turn, bool thoroughly) {
    if (expect == Expect::kNothing) return true;
    const float wanted = expected_value(Collective::kAllreduce, job.rank, job.ranks, 0, turn);
    for (std::size_t i = 0; i < gradients.data.size(); ++i) {
      if (!is_all(gradients.data[i], gradients.elements[i], wanted, thoroughly)) return false;
    }
    return true;
  };
  for (std::size_t index = 0; index < job.plan.size(); ++index) {
    if (job.plan[index].bytes == kWhileComputing && index > 0) {
      step.compute_for(time_of_step(job, index - 1));
    } else {
      step.use_buckets(job.plan[index].bytes);
      step.compute_for(std::chrono::duration<double>(0));
    }
    Status status = time_calls(
        job, index, rewrite, [&] { return step.run(); }, is_right);
    if (!status) return status;
  }
  return {};
}

Status measure_work(RankJob& job, Expect expect, const Allocate& allocate, const StepCalls& calls) {
  if (const auto* what = std::get_if<Collective>(&job.work))
    return measure_collective(job, *what, expect, allocate, calls.call, calls.complete);
  return measure_steps(job, std::get<Model>(job.work), expect, allocate, calls);
}

}  // namespace

Status measure(RankJob& job, Expect expect, const Allocate& allocate, const Call& call) {
  return measure_work(job, expect, allocate, {call, nullptr});
}

Status measure(RankJob& job, Expect expect, const Call& call) {
  return measure(job, expect, Buckets::kOfHarness, call, nullptr);
}

Status measure(RankJob& job, Expect expect, Buckets buckets, const Call& submit, const Complete& complete) {
  PrivateMemory memory;
  return measure_work(job, expect, [&memory](std::size_t bytes) { return memory.allocate(bytes); },
                      {submit, complete, buckets});
}

}  // namespace ddl::bench
