#include "runtime/src/backend/nccl/fused_parts.h"

#include <utility>

namespace ddl::runtime {
namespace {

/// So that a thread of the kernel takes 16 bytes at once.
constexpr std::size_t kAlignment = 16;

constexpr std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

FusionPlan FusionPlan::of(std::span<const Part> parts, std::size_t element_size) {
  FusionPlan plan;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t bytes = parts[i].count * element_size;
    if (bytes == 0 || bytes > kMostFusedBytes) continue;
    plan.fused.push_back(i);
    plan.offset.push_back(plan.bytes);
    plan.bytes += rounded_up(bytes);
  }
  return plan.fused.size() > 1 ? plan : FusionPlan{};
}

Status FusedParts::pack(Request& request) {
  const FusionPlan plan = FusionPlan::of(request.parts, request.element_size);
  if (plan.bytes == 0) return {};
  DDL_ASSIGN(buffer, communicator_.scratch(plan.bytes));
  std::size_t next = 0;
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const Part& part = request.parts[i];
    if (next == plan.fused.size() || plan.fused[next] != i) {
      parts_.push_back(part);
      continue;
    }
    packed_.push_back({part, buffer + plan.offset[next++], part.count * request.element_size});
  }
  // What lies between the parts is combined, too; nobody reads it.
  parts_.push_back({buffer, buffer, plan.bytes / request.element_size});
  request.parts = parts_;
  return copy([](const Packed& packed) { return packed.part.send; },
              [](const Packed& packed) { return packed.place; });
}

Status FusedParts::unpack() const {
  return copy([](const Packed& packed) { return packed.place; },
              [](const Packed& packed) { return packed.part.recv; });
}

template <class From, class To>
Status FusedParts::copy(From from, To to) const {
  CopiesArguments arguments{};
  const auto launch = [&]() -> Status {
    if (arguments.copies == 0) return {};
    void* pointers[] = {&arguments};
    // A block of threads for each chunk.
    const std::uint64_t threads = std::uint64_t{arguments.chunks} * KernelGrid::kThreads;
    DDL_TRY(communicator_.device().launch(GpuKernel::kCopies, threads, pointers, communicator_.stream()));
    arguments = {};
    return {};
  };
  for (const Packed& packed : packed_) {
    if (arguments.is_full()) DDL_TRY(launch());
    arguments.add(from(packed), to(packed), packed.bytes);
  }
  return launch();
}

}  // namespace ddl::runtime
