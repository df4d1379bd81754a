// Measures libddl on an NVIDIA GPU, beside what its libraries do by themselves. Prints a JSON object a line; of several
// ranks, the first one does.
//
//   gpu_bench copies [--quick]     copies of the GPU, and to and from the host; no rank
//   gpu_bench nccl [--quick]       one rank: allreduce by NCCL, beside NCCL called directly; a model's gradients
//   gpu_bench staged [--quick]     two ranks or more on one GPU, with --gpu-operations staged; the same gradients
//   gpu_bench ipc [--quick]        two ranks or more on one GPU
//
// --quick: small sizes and few calls, which show only that it runs.
// Exit status: 0; 1, an error; 2, wrong usage.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/models.h"
#include "gpu/measurement.h"
#include "gpu/nccl_directly.h"
#include "gpu/rank.h"

namespace ddl::gpu_bench {
namespace {

struct Scale {
  Effort effort;
  std::size_t largest = std::size_t{256} << 20;
  std::size_t gradients_divisor = 1;  ///< of a tensor's elements
};

double gigabytes(double bytes, double seconds) { return bytes / seconds / 1e9; }

/// Reads and writes of the GPU's memory while it copies within it, in GB/s.
double copy_traffic(Gpu& gpu, const Scale& scale) {
  const GpuMemory from(gpu, scale.largest), to(gpu, scale.largest);
  const CallTime time = measure(
      scale.effort, [&] { gpu.copy(to.data(), from.data(), scale.largest); }, [&] { gpu.synchronize(); });
  return gigabytes(2.0 * static_cast<double>(scale.largest), time.whole);
}

/// The rate each way of copies between pinned memory and the GPU, in GB/s.
double link_rate(Gpu& gpu, const Scale& scale, bool down, bool up, const Together* together = nullptr) {
  PinnedMemory host_down(gpu, scale.largest), host_up(gpu, scale.largest);
  const GpuMemory memory_down(gpu, scale.largest), memory_up(gpu, scale.largest);
  const CallTime time = measure(
      scale.effort,
      [&] {
        if (down) check(gpu.device().copy(host_down.data(), memory_down.data(), scale.largest, gpu.stream()));
        if (up) check(gpu.device().copy(memory_up.data(), host_up.data(), scale.largest, gpu.other_stream()));
      },
      [&] {
        gpu.synchronize(gpu.stream());
        gpu.synchronize(gpu.other_stream());
      },
      together);
  return gigabytes(static_cast<double>(scale.largest), time.whole);
}

/// Tensors that the kernel for copies packs at once, beside one copy of as many bytes.
void measure_batched_copy(Gpu& gpu, const Scale& scale) {
  constexpr std::size_t kTensors = runtime::CopiesArguments::kMost;
  constexpr double kFactor = 0.9;
  const std::size_t each = std::min<std::size_t>(scale.largest / kTensors, std::size_t{256} << 10);
  const std::size_t all = kTensors * each;
  // Apart from each other, as a program's tensors are.
  const GpuMemory from(gpu, 2 * all), to(gpu, all);
  runtime::CopiesArguments copies{};
  const std::size_t floats = each / sizeof(float);
  for (std::size_t i = 0; i < kTensors; ++i)
    copies.add(from.data() + 2 * i * floats, to.data() + i * floats, each);
  check(gpu.device().prepare_kernels(runtime::GpuProgram::kForNccl));
  const auto wait = [&] { gpu.synchronize(); };
  const CallTime batched = measure(
      scale.effort,
      [&] {
        void* arguments[] = {&copies};
        check(gpu.device().launch(runtime::GpuKernel::kCopies, copies.chunks * runtime::KernelGrid::kThreads,
                                  arguments, gpu.stream()));
      },
      wait);
  const CallTime plain = measure(
      scale.effort, [&] { gpu.copy(to.data(), from.data(), all); }, wait);
  const auto rate = [&](const CallTime& time) {
    return gigabytes(2.0 * static_cast<double>(all), time.whole);
  };
  print({.name = "batched copy, " + std::to_string(kTensors) + " tensors of " + size_text(each),
         .value = rate(batched),
         .unit = "GB/s read and written",
         .compared_with = "a plain copy of as many bytes",
         .reference = rate(plain),
         .aim = "at least 0.9 of it",
         .is_met = rate(batched) >= kFactor * rate(plain)});
}

void measure_copies(const Scale& scale) {
  Gpu gpu;
  measure_batched_copy(gpu, scale);
  const std::string size = size_text(scale.largest);
  print({.name = "copy within the GPU, " + size,
         .value = copy_traffic(gpu, scale),
         .unit = "GB/s read and written"});
  print({.name = "copy from the GPU to pinned memory, " + size,
         .value = link_rate(gpu, scale, true, false),
         .unit = "GB/s"});
  print({.name = "copy from pinned memory to the GPU, " + size,
         .value = link_rate(gpu, scale, false, true),
         .unit = "GB/s"});
  print(
      {.name = "both at once, " + size, .value = link_rate(gpu, scale, true, true), .unit = "GB/s each way"});
}

/// A model's gradients as named tensors: submitted all at once, or each when the one before is complete.
void measure_gradients(Rank& rank, Gpu& gpu, const Scale& scale, const char* way) {
  std::vector<std::size_t> counts;
  for (const std::uint64_t count : bench::tensors_backward(bench::Model::kResnet50))
    counts.push_back(std::max<std::size_t>(count / scale.gradients_divisor, 1));
  Gradients gradients(rank, gpu, counts);
  const Together together{rank};
  const Effort effort{scale.effort.rounds, 1};
  const double one_by_one =
      measure(
          effort, [&] { gradients.reduce_one_by_one(); }, [&] { gpu.synchronize(); }, &together)
          .whole;
  const double fused = measure(
                           effort, [&] { gradients.reduce_all(); }, [&] { gpu.synchronize(); }, &together)
                           .whole;
  rank.print_if_first({.name = std::string("gradients of ResNet-50 ") + way + ", " +
                               std::to_string(counts.size()) + " named tensors at once",
                       .value = fused * 1e3,
                       .unit = "ms",
                       .compared_with = "one by one",
                       .reference = one_by_one * 1e3});
}

void measure_nccl(const Scale& scale) {
  Gpu gpu;
  Rank rank;
  NcclDirectly direct;
  const GpuMemory from(gpu, scale.largest), to(gpu, scale.largest);
  constexpr double kMoreSeconds = 3e-6, kFactor = 1.03;
  for (std::size_t bytes = 4; bytes <= scale.largest; bytes *= 16) {
    const std::size_t count = bytes / sizeof(float);
    const auto ours = [&] { rank.allreduce(from.data(), to.data(), count, gpu.stream()); };
    const auto theirs = [&] { direct.allreduce(from.data(), to.data(), count, gpu.stream()); };
    const auto wait = [&] { gpu.synchronize(); };
    std::vector<CallTime> our_runs, their_runs;
    // In turn, so that a change of the machine's speed is one of both.
    for (int round = -1; round < scale.effort.rounds; ++round) {
      const CallTime their_run = time_run(scale.effort.calls, theirs, wait);
      const CallTime our_run = time_run(scale.effort.calls, ours, wait);
      if (round < 0) continue;  // warms up
      their_runs.push_back(their_run);
      our_runs.push_back(our_run);
    }
    const CallTime our = median_of(our_runs), their = median_of(their_runs);
    const std::string name = "allreduce of one rank by NCCL, " + size_text(bytes);
    print({.name = name + ", a call of many",
           .value = our.whole * 1e6,
           .unit = "us",
           .compared_with = "NCCL directly",
           .reference = their.whole * 1e6,
           .aim = "at most 1.03 times as long and 3 us longer",
           .is_met = our.whole <= their.whole * kFactor + kMoreSeconds});
    print({.name = name + ", until it is on the stream",
           .value = our.on_host * 1e6,
           .unit = "us",
           .compared_with = "NCCL directly",
           .reference = their.on_host * 1e6,
           .aim = "at most 3 us longer",
           .is_met = our.on_host <= their.on_host + kMoreSeconds});
  }
  measure_gradients(rank, gpu, scale, "by NCCL, one rank");
}

/// The time of an allreduce on the GPU.
double allreduce_seconds(Rank& rank, Gpu& gpu, const Scale& scale) {
  const GpuMemory memory(gpu, scale.largest);
  const Together together{rank};
  const std::size_t count = scale.largest / sizeof(float);
  return measure(
             scale.effort, [&] { rank.allreduce(memory.data(), memory.data(), count, gpu.stream()); },
             [&] { gpu.synchronize(); }, &together)
      .whole;
}

void measure_staged(const Scale& scale) {
  Gpu gpu;
  Rank rank;
  const Together together{rank};
  const auto bytes = static_cast<double>(scale.largest);
  const std::string of = ", " + std::to_string(rank.size()) + " ranks, " + size_text(scale.largest);
  const double link = link_rate(gpu, scale, true, true, &together);
  std::vector<float> values(scale.largest / sizeof(float));
  const double on_host = gigabytes(
      bytes, measure(
                 scale.effort, [&] { rank.allreduce(values.data(), values.data(), values.size(), nullptr); },
                 [] {}, &together)
                 .whole);
  const double staged = gigabytes(bytes, allreduce_seconds(rank, gpu, scale));
  const bool link_is_slower = link < on_host;
  const double limit = std::min(link, on_host);
  rank.print_if_first({.name = "copies both ways at once of all ranks" + of,
                       .value = link,
                       .unit = "GB/s each way of a rank"});
  rank.print_if_first(
      {.name = "allreduce on the host" + of, .value = on_host, .unit = "GB/s of a rank's buffer"});
  rank.print_if_first({.name = "allreduce through the memory of the host" + of,
                       .value = staged,
                       .unit = "GB/s of a rank's buffer",
                       .compared_with = link_is_slower ? "the copies" : "the allreduce on the host",
                       .reference = limit,
                       .aim = "at least 0.85 of the slower one",
                       .is_met = staged >= 0.85 * limit});
  measure_gradients(rank, gpu, scale, "through the memory of the host");
}

void measure_ipc(const Scale& scale) {
  Gpu gpu;
  Rank rank;
  rank.expect_one_gpu(gpu.uuid());
  double limit = 0;
  if (rank.number() == 0) limit = copy_traffic(gpu, scale);
  rank.barrier();
  const double seconds = allreduce_seconds(rank, gpu, scale);
  // Each element is read once and written once for each rank.
  const double traffic = gigabytes(2.0 * rank.size() * static_cast<double>(scale.largest), seconds);
  rank.print_if_first(
      {.name = "allreduce on one GPU, " + std::to_string(rank.size()) + " ranks, " + size_text(scale.largest),
       .value = traffic,
       .unit = "GB/s read and written",
       .compared_with = "copy within the GPU",
       .reference = limit,
       .aim = "at least 0.8 of it",
       .is_met = traffic >= 0.8 * limit});
  measure_gradients(rank, gpu, scale, "on one GPU");
}

int run(const std::string& mode, const Scale& scale) {
  if (mode == "copies")
    measure_copies(scale);
  else if (mode == "nccl")
    measure_nccl(scale);
  else if (mode == "staged")
    measure_staged(scale);
  else if (mode == "ipc")
    measure_ipc(scale);
  else
    return 2;
  return 0;
}

}  // namespace
}  // namespace ddl::gpu_bench

int main(int argc, char** argv) {
  using namespace ddl::gpu_bench;  // NOLINT(google-build-using-namespace)
  Scale scale;
  if (argc == 3 && std::strcmp(argv[2], "--quick") == 0)
    scale = {.effort = {1, 3}, .largest = std::size_t{64} << 10, .gradients_divisor = 10000};
  else if (argc != 2)
    argc = 0;
  try {
    const int status = argc == 0 ? 2 : run(argv[1], scale);
    if (status == 2) std::fprintf(stderr, "usage: gpu_bench copies|nccl|staged|ipc [--quick]\n");
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
