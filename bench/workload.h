// The work that is measured: collectives, the gradients of well-known models, and message sizes with the number of
// calls of each. Pure; the harness and the rank programs share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/models.h"

namespace ddl::bench {

enum class Collective { kAllreduce, kAllgather, kAlltoall, kBroadcast, kReduceScatter };

const std::vector<Collective>& all_collectives();
/// "reduce-scatter", and back.
const char* name_of(Collective what);
std::optional<Collective> parse_collective(std::string_view name);
/// What one call does, for a title: "f32 sum in place".
const char* describe(Collective what);

/// Allreduce and broadcast work in one buffer, the others from one into another: as most programs call them, and as
/// every peer supports.
bool is_in_place(Collective what);

/// A message's size is that of the larger buffer of a rank: the whole vector of allreduce and broadcast, all ranks'
/// parts of the others. Returns the smallest size, not below the wanted one, that has equal parts of whole floats.
std::uint64_t whole_bytes(Collective what, std::uint64_t wanted, int ranks);

/// The numbers of parts that a rank sends and that its result has. Each part is as long as the whole buffer, if both
/// are 1, or as one rank's share of it.
struct Shape {
  int sent_parts = 1;
  int result_parts = 1;
  bool has_shares = false;  ///< a part is 1/ranks of the size
};
Shape shape_of(Collective what, int ranks);

/// The value that the rank sends as this part in this turn, and the value that this part of its result must have.
/// turn: a small number that differs from call to call. All values are small whole numbers: their sums are exact in
/// any order. The root of a broadcast is rank 0.
float sent_value(Collective what, int rank, int ranks, int part, int turn);
float expected_value(Collective what, int rank, int ranks, int part, int turn);

/// The bytes that no algorithm can avoid: those that every host must send over its link, divided by the size, if each
/// host has one rank. A host of a broadcast may forward what it receives.
double min_sent(Collective what, int hosts);

/// Sizes of buckets, above every real one, that stand for another way to do a step. kInOneBuffer: all gradients lie in
/// one buffer, and one call reduces them without a copy, which is the best that a library without buckets of its own
/// can do. kWhileComputing: the step of the size before it, but each gradient is there only when it has been computed.
/// A sleep stands for the computing, as a GPU does it. It takes as long in all as the step of the size before.
inline constexpr std::uint64_t kInOneBuffer = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kWhileComputing = std::uint64_t{1} << 41;

// Message sizes: the number of calls of each, their text for the rank programs, and the sizes that people write.

/// One message size and the number of its calls. For training steps it is the size of a bucket, or what stands for one.
struct SizePlan {
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;     ///< measured, at most
  std::uint64_t warm_ups = 0;  ///< before them, not measured
};

/// "4:2000:100,1024:2000:100" and back.
std::string plan_text(const std::vector<SizePlan>& plan);
Result<std::vector<SizePlan>> parse_plan(std::string_view text);

/// 4 B to 256 MiB, in steps of 4 or 16.
const std::vector<std::uint64_t>& default_sizes();

/// Enough calls of each size for a steady median, and few enough that a block takes seconds and not minutes. quick: a
/// few calls of each, and no size above 1 MiB.
std::vector<SizePlan> plan_of_sizes(const std::vector<std::uint64_t>& sizes, bool quick);

/// "4", "64K", "1M", "256MiB": a positive number of bytes below 2^40.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace ddl::bench
