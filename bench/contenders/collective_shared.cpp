// The limit on one host: all ranks map all buffers, so that nothing is staged. Each rank combines or copies its part
// directly from the buffers of the others, between two barriers on the scoreboard.
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

/// Memory for measure() whose counterparts on the other ranks are mapped here, too. It is freed when the ranks have
/// ended.
class SharedMemory {
 public:
  /// job must outlive this object.
  explicit SharedMemory(RankJob& job) : job_(job) {}

  /// To be called on all ranks in the same order: it contains a barrier.
  Result<float*> allocate(std::size_t bytes);

  /// The element of another rank's memory that corresponds to own, an element of this rank's memory.
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
    DDL_ASSIGN(memory, MappedMemory::map_shared(fd.get(), bytes));
    region.by_rank.push_back(std::move(memory));
  }
  regions_.push_back(std::move(region));
  return reinterpret_cast<float*>(regions_.back().by_rank[job_.rank].data());
}

float* SharedMemory::of_rank(int rank, const float* own) const {
  const auto* at = reinterpret_cast<const std::byte*>(own);
  for (const Region& region : regions_) {
    const MappedMemory& mine = region.by_rank[job_.rank];
    if (at < mine.data() || at >= mine.data() + mine.size()) continue;
    return reinterpret_cast<float*>(region.by_rank[rank].data() + (at - mine.data()));
  }
  return nullptr;
}

}  // namespace ddl::bench

namespace {

using namespace ddl::bench;

// In floats. The sums of a chunk stay in the first-level cache until they are copied to the buffers.
constexpr std::size_t kChunk = 2048;

// The release build uses the baseline instruction set of x86-64; the limit uses what the processor has.
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
    barrier();
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
    barrier();
    return of.recv;
  }

 private:
  void barrier() { job_.scoreboard.barrier(job_.rank, job_.wait()); }
  float* at(int rank, float* own) const { return memory_.of_rank(rank, own); }
  static float* part(float* buffer, int rank, const Buffers& of) { return buffer + rank * of.part; }
  static void copy(float* to, const float* from, std::size_t count) {
    std::memcpy(to, from, count * sizeof(float));
  }

  // Writes this rank's part of the sum into the buffers of all ranks.
  void allreduce(const Buffers& of) {
    const std::size_t ranks = job_.ranks, rank = job_.rank;
    const std::size_t first = of.count * rank / ranks;
    const std::size_t count = of.count * (rank + 1) / ranks - first;
    std::vector<float*> everywhere;
    for (int other = 0; other < job_.ranks; ++other) everywhere.push_back(at(other, of.send) + first);
    sum(of.send + first, count, everywhere);
  }

  // Sums the elements of all ranks that correspond to own, in rank order, and writes the sums to each destination.
  void sum(float* own, std::size_t count, const std::vector<float*>& destinations) {
    std::vector<const float*> from;
    for (int rank = 0; rank < job_.ranks; ++rank) from.push_back(at(rank, own));
    for (std::size_t done = 0; done < count; done += kChunk) {
      const std::size_t length = std::min(kChunk, count - done);
      copy(chunk_, from[0] + done, length);
      for (std::size_t rank = 1; rank < from.size(); ++rank) add_(chunk_, from[rank] + done, length);
      for (float* destination : destinations) copy(destination + done, chunk_, length);
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
