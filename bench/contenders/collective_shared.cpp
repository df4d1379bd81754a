// The limit on one host: all ranks see all buffers, so that nothing is staged. Each rank combines or copies its part straight
// from the buffers of the others, between two meetings on the scoreboard.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/fd.h"
#include "bench/contenders/measured_rank.h"

namespace ddl::bench {

// Buffers that all ranks of a host see.

/// Memory for measure() whose counterparts on the other ranks are mapped here too. Nothing of it is left when the ranks
/// have ended.
class SharedMemory {
 public:
  /// job: outlives this.
  explicit SharedMemory(RankJob& job) : job_(job) {}

  /// On all ranks in the same order: the ranks meet.
  Result<float*> allocate(std::size_t bytes);

  /// Where another rank's element lies that corresponds to own, an element of this rank's memory.
  float* of_rank(int rank, const float* own) const;

 private:
  struct Region {
    UniqueFd fd;
    std::vector<MappedMemory> by_rank;
  };
  RankJob& job_;
  std::vector<Region> regions_;
};

Result<float*> SharedMemory::allocate(std::size_t bytes) {
  Region region{UniqueFd(::memfd_create("ddl-bench buffer", MFD_CLOEXEC)), {}};
  if (!region.fd) return fail_errno("memfd_create");
  if (::ftruncate(region.fd.get(), static_cast<off_t>(bytes)) != 0) return fail_errno("ftruncate a buffer");
  const auto link_of = [&](int rank) {
    return fmt::format("{}/buffer-{}-{}", job_.folder, regions_.size(), rank);
  };
  const std::string target = fmt::format("/proc/{}/fd/{}", ::getpid(), region.fd.get());
  if (::symlink(target.c_str(), link_of(job_.rank).c_str()) != 0)
    return fail_errno("create " + link_of(job_.rank));
  job_.scoreboard.barrier(job_.rank, job_.wait());
  for (int rank = 0; rank < job_.ranks; ++rank) {
    const UniqueFd fd(::open(link_of(rank).c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno("open " + link_of(rank));
    auto memory = MappedMemory::map_shared(fd.get(), bytes);
    if (!memory) return fail(std::move(memory.error()));
    region.by_rank.push_back(std::move(*memory));
  }
  regions_.push_back(std::move(region));
  return reinterpret_cast<float*>(regions_.back().by_rank[static_cast<std::size_t>(job_.rank)].data());
}

float* SharedMemory::of_rank(int rank, const float* own) const {
  const auto* at = reinterpret_cast<const std::byte*>(own);
  for (const Region& region : regions_) {
    const MappedMemory& mine = region.by_rank[static_cast<std::size_t>(job_.rank)];
    if (at < mine.data() || at >= mine.data() + mine.size()) continue;
    return reinterpret_cast<float*>(region.by_rank[static_cast<std::size_t>(rank)].data() +
                                    (at - mine.data()));
  }
  return nullptr;
}

}  // namespace ddl::bench

namespace {

// The limit on one host: buffers that all ranks see, so that nothing is staged. Each rank combines or copies its part
// straight from all the others' buffers, between two meetings of the harness's own.

using namespace ddl::bench;

// Sums stay in the first-level cache until they are copied to where they belong.
constexpr std::size_t kChunk = 2048;

// The release build's instruction set is the oldest; a limit uses what the processor has.
using Add = void (*)(float*, const float*, std::size_t);
inline __attribute__((always_inline)) void add_loop(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}
void add_plain(float* to, const float* from, std::size_t count) { add_loop(to, from, count); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_avx2(float* to, const float* from, std::size_t count) {
  add_loop(to, from, count);
}
Add best_add() { return __builtin_cpu_supports("avx2") != 0 ? add_avx2 : add_plain; }
#else
Add best_add() { return add_plain; }
#endif

class Direct {
 public:
  Direct(RankJob& job, const SharedMemory& memory) : job_(job), memory_(memory), add_(best_add()) {}

  const float* call(Collective what, const Buffers& of) {
    meet();
    switch (what) {
      case Collective::kAllreduce: allreduce(of); break;
      case Collective::kAllgather:
        for (int rank = 0; rank < job_.ranks; ++rank)
          copy(part(of.recv, rank, of), at(rank, of.send), of.part);
        break;
      case Collective::kAlltoall:
        for (int rank = 0; rank < job_.ranks; ++rank)
          copy(part(of.recv, rank, of), part(at(rank, of.send), job_.rank, of), of.part);
        break;
      case Collective::kBroadcast:
        if (job_.rank != 0) copy(of.recv, at(0, of.send), of.count);
        break;
      case Collective::kReduceScatter: sum(part(of.send, job_.rank, of), of.part, {of.recv}); break;
    }
    meet();
    return of.recv;
  }

 private:
  void meet() { job_.scoreboard.barrier(job_.rank, job_.wait()); }
  float* at(int rank, float* own) const { return memory_.of_rank(rank, own); }
  static float* part(float* buffer, int rank, const Buffers& of) {
    return buffer + static_cast<std::size_t>(rank) * of.part;
  }
  static void copy(float* to, const float* from, std::size_t count) {
    std::memcpy(to, from, count * sizeof(float));
  }

  // This rank's part of the sum, written into everybody's buffer.
  void allreduce(const Buffers& of) {
    const auto ranks = static_cast<std::size_t>(job_.ranks);
    const auto rank = static_cast<std::size_t>(job_.rank);
    const std::size_t first = of.count * rank / ranks;
    const std::size_t count = of.count * (rank + 1) / ranks - first;
    std::vector<float*> everywhere;
    for (int other = 0; other < job_.ranks; ++other) everywhere.push_back(at(other, of.send) + first);
    sum(of.send + first, count, everywhere);
  }

  // Sums what lies at own on all ranks, in rank order, into each of the places.
  void sum(float* own, std::size_t count, const std::vector<float*>& places) {
    std::vector<const float*> from;
    for (int rank = 0; rank < job_.ranks; ++rank) from.push_back(at(rank, own));
    for (std::size_t done = 0; done < count; done += kChunk) {
      const std::size_t length = std::min(kChunk, count - done);
      copy(chunk_, from[0] + done, length);
      for (std::size_t rank = 1; rank < from.size(); ++rank) add_(chunk_, from[rank] + done, length);
      for (float* place : places) copy(place + done, chunk_, length);
    }
  }

  RankJob& job_;
  const SharedMemory& memory_;
  Add add_;
  alignas(64) float chunk_[kChunk];
};

}  // namespace

int main(int argc, char** argv) {
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  SharedMemory memory(*job);
  Direct direct(*job, memory);
  const auto measured = measure(
      *job, Expect::kResults, [&](std::size_t bytes) { return memory.allocate(bytes); },
      [&](Collective what, const Buffers& buffers) { return direct.call(what, buffers); });
  return measured ? 0 : fail_rank(measured.error());
}
