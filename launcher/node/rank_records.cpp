#include "launcher/node/rank_records.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "contract/rank_process.h"

namespace ddl::launcher {

using contract::RankRecord;

Result<RankRecords> RankRecords::create(std::size_t local_ranks) {
  UniqueFd fd(::memfd_create("ddl-rank-records", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  // A record takes memory only as far as it is used.
  const std::size_t bytes = local_ranks * RankRecord::kBytes;
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return fail_errno("ftruncate");
  const std::uint32_t magic = RankRecord::kMagic;
  for (std::size_t rank = 0; rank < local_ranks; ++rank) {
    const auto offset = static_cast<off_t>(rank * RankRecord::kBytes);
    if (::pwrite(fd.get(), &magic, sizeof magic, offset) != sizeof magic) return fail_errno("pwrite");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("fcntl F_ADD_SEALS");
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  return RankRecords(std::move(fd), memory, local_ranks);
}

RankRecords::RankRecords(UniqueFd fd, void* memory, std::size_t local_ranks)
    : fd_(std::move(fd)), memory_(memory), local_ranks_(local_ranks) {}

RankRecords::RankRecords(RankRecords&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      local_ranks_(other.local_ranks_) {}

RankRecords::~RankRecords() {
  if (memory_ != nullptr) ::munmap(memory_, local_ranks_ * RankRecord::kBytes);
}

std::string RankRecords::place_of(std::size_t local_rank) {
  return std::to_string(contract::kRankRecordFd) + ":" + std::to_string(local_rank * RankRecord::kBytes);
}

const RankRecord* RankRecords::record(std::size_t local_rank) const {
  if (local_rank >= local_ranks_) return nullptr;
  const auto* const found = reinterpret_cast<const RankRecord*>(static_cast<const std::byte*>(memory_) +
                                                                local_rank * RankRecord::kBytes);
  return found->magic == RankRecord::kMagic ? found : nullptr;
}

int RankRecords::gone_rank(std::size_t local_rank) const {
  const RankRecord* const found = record(local_rank);
  const std::int32_t gone = found == nullptr ? 0 : found->gone.load();
  return gone > 0 ? gone - 1 : -1;
}

RankSnapshot RankRecords::read(std::size_t local_rank) const {
  RankSnapshot snapshot;
  const RankRecord* const found = record(local_rank);
  if (found == nullptr) return snapshot;
  const RankRecord::Phase phase = found->phase;
  snapshot.phase = std::min(phase, RankRecord::Phase::kLeft);
  snapshot.pid = std::max(found->pid.load(), 0);
  snapshot.pid_namespace = found->pid_namespace;
  snapshot.hidden_tensors = found->hidden_tensors;

  std::array<std::uint32_t, RankRecord::kSets> generations{};
  for (std::size_t i = 0; i < found->sets.size(); ++i) {
    const contract::SetRecord& set = found->sets[i];
    const std::uint64_t name = set.name;
    if (name == 0) continue;
    generations[i] = static_cast<std::uint32_t>(name >> 32);
    snapshot.sets.push_back({generations[i], static_cast<std::uint32_t>(name) - 1, set.call, set.named_call,
                             std::max(set.peer.load(), 0) - 1, set.has_joined != 0, set.waiters != 0});
  }
  const std::size_t slots = std::min<std::size_t>(found->tensor_slots, RankRecord::kTensors);
  for (const contract::TensorRecord& tensor : std::span(found->tensors).first(slots)) {
    const std::uint64_t state = tensor.state.load(std::memory_order_acquire);
    const std::uint64_t set = state & 0xFFFF'FFFF;
    if (set == 0 || set > generations.size()) continue;
    const std::array name = tensor.name;
    const std::uint64_t digest = tensor.digest;
    // Another tensor may have come meanwhile.
    if (tensor.state.load(std::memory_order_acquire) != state) continue;
    const auto end = std::find(name.begin(), name.end(), '\0');
    snapshot.tensors.push_back({state, generations[set - 1], digest, std::string(name.begin(), end)});
  }
  return snapshot;
}

}  // namespace ddl::launcher
