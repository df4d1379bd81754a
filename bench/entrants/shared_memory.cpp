#include "bench/entrants/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

namespace ddl::bench {

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
  job_.scoreboard.meet(job_.rank, job_.wait());
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
