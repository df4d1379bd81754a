#include "runtime/src/common/rank_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "base/deadline.h"
#include "base/process.h"
#include "base/process_tree.h"
#include "runtime/src/common/event_log.h"
#include "timeline/event_ring.h"

namespace ddl::runtime {
namespace {

using Record = contract::RankRecord;

/// A copy of the launcher's descriptor, so that the program may close its own. Of nothing else: the copy of a pipe that
/// the program has opened under that number would keep its reader from seeing the end.
UniqueFd copy_of_doorbell(int fd) {
  std::error_code failed;
  const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), failed);
  if (failed || target != "anon_inode:[eventfd]") return {};
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/// Maps the record and what follows; null if it is none.
Record* map_record(const RankRecordLocation& location) {
  if (!RankRecord::is_record(location.fd)) return nullptr;
  struct stat status {};
  constexpr auto kRecordBytes = static_cast<std::int64_t>(Record::kBytes);
  if (location.offset % kRecordBytes != 0 || location.bytes < kRecordBytes ||
      ::fstat(location.fd, &status) != 0 || location.bytes > status.st_size ||
      location.offset > status.st_size - location.bytes)
    return nullptr;
  const auto bytes = static_cast<std::size_t>(location.bytes);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, location.fd,
                              static_cast<off_t>(location.offset));
  if (memory == MAP_FAILED) return nullptr;
  auto* const record = static_cast<Record*>(memory);
  if (record->magic != Record::kMagic) {
    ::munmap(memory, bytes);
    return nullptr;
  }
  return record;
}

/// As Record::owner has it.
std::uint64_t owner_of(std::uint64_t pid_namespace, pid_t pid) {
  return pid_namespace << 32 | static_cast<std::uint32_t>(pid);
}

/// Nothing if it is another process's.
void release(Record& record) {
  std::uint64_t own = owner_of(own_pid_namespace(), ::getpid());
  record.owner.compare_exchange_strong(own, 0);
}

}  // namespace

bool RankRecord::is_record(int fd) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return ::fcntl(fd, F_GET_SEALS) == kSeals;
}

std::shared_ptr<RankRecord> RankRecord::open(const RankRecordLocation& location) {
  Record* const record = map_record(location);
  if (record == nullptr) return nullptr;
  return std::shared_ptr<RankRecord>(
      new RankRecord(*record, static_cast<std::size_t>(location.bytes), location.doorbell));
}

RankRecord::Claim RankRecord::claim(const RankRecordLocation& location) {
  Record* const record = map_record(location);
  if (record == nullptr) return {};
  const std::uint64_t own = owner_of(own_pid_namespace(), ::getpid());
  Claim claim;
  for (std::uint64_t owner = record->owner; owner != own;) {
    const auto pid = static_cast<pid_t>(static_cast<std::uint32_t>(owner));
    const auto process = owner >> 32 == own >> 32 ? read_process_stat(pid) : std::nullopt;
    if (process && process->is_alive()) {
      claim.holder = pid;
      break;
    }
    if (record->owner.compare_exchange_weak(owner, own)) break;
  }
  claim.is_successor = record->phase != Record::Phase::kNone;
  ::munmap(record, static_cast<std::size_t>(location.bytes));
  return claim;
}

void RankRecord::disown(const RankRecordLocation& location) {
  Record* const record = map_record(location);
  if (record == nullptr) return;
  release(*record);
  ::munmap(record, static_cast<std::size_t>(location.bytes));
}

RankRecord::RankRecord(Record& record, std::size_t bytes, int doorbell)
    : record_(record), bytes_(bytes), doorbell_(copy_of_doorbell(doorbell)) {
  free_places_.reserve(Record::kTensors);  // no tensor is to fail for it
  // A program may join again after it has left, and a process may be the second one with this record.
  for (contract::SetRecord& set : record_.sets) set.name = 0;
  for (contract::TensorRecord& tensor :
       std::span(record_.tensors).first(std::min<std::size_t>(record_.tensor_slots, Record::kTensors))) {
    version_ = std::max(version_, static_cast<std::uint32_t>(tensor.state >> 32));
    tensor.state = 0;
  }
  record_.tensor_slots = 0;
  record_.hidden_tensors = 0;
  record_.pid_namespace = own_pid_namespace();
  record_.pid = ::getpid();
  ++record_.inits;
  show(Record::Phase::kJoining);
}

void RankRecord::show(Record::Phase phase) {
  record_.phase_since = kernel_now();
  record_.phase = phase;
}

contract::CallTotals& RankRecord::totals(CallTier tier, CallKind kind) {
  return (tier == CallTier::kOrdered ? record_.totals : record_.named_totals)[static_cast<std::size_t>(kind)];
}

void RankRecord::add_calls(CallTier tier, CallKind kind, std::uint64_t calls, std::uint64_t bytes,
                           std::uint64_t nanoseconds) {
  contract::CallTotals& sum = totals(tier, kind);
  sum.calls.fetch_add(calls, std::memory_order_relaxed);
  sum.bytes.fetch_add(bytes, std::memory_order_relaxed);
  sum.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
}

void RankRecord::add_wait(CallTier tier, CallKind kind, int awaited, std::uint64_t nanoseconds) {
  totals(tier, kind).wait_nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  contract::AwaitedTotal* shortest = nullptr;
  for (contract::AwaitedTotal& one : record_.awaited) {
    const std::int32_t rank = one.rank;
    if (rank == 0 || rank == awaited + 1) {
      one.nanoseconds += nanoseconds;
      one.rank = awaited + 1;
      return;
    }
    if (shortest == nullptr || one.nanoseconds < shortest->nanoseconds) shortest = &one;
  }
  // The places go to the ranks that are waited for longest: every other rank takes from the shortest of them, and has
  // its place once nothing is left.
  if (shortest->nanoseconds > nanoseconds) {
    shortest->nanoseconds -= nanoseconds;
  } else {
    shortest->nanoseconds = nanoseconds - shortest->nanoseconds;
    shortest->rank = awaited + 1;
  }
}

void RankRecord::add_tensor_wait(std::uint64_t nanoseconds) {
  record_.tensor_wait_nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
}

RankRecord::~RankRecord() {
  show(Record::Phase::kLeft);
  release(record_);
  ::munmap(&record_, bytes_);
}

contract::EventRing* RankRecord::ring() const {
  auto* const memory = reinterpret_cast<std::byte*>(&record_);
  const auto ring = std::span(memory, bytes_).subspan(Record::kBytes);
  return const_cast<contract::EventRing*>(timeline::find_ring(ring));
}

std::optional<AbortNotice> RankRecord::lost_host() const {
  const contract::LostHost& lost = record_.lost_host;
  const int rank = lost.rank.load(std::memory_order_acquire) - 1;
  if (rank < 0) return std::nullopt;
  const auto text_of = [](const auto& field) {
    return std::string(field.data(), ::strnlen(field.data(), field.size()));
  };
  return AbortNotice::of(AbortReason::kLost, {rank, text_of(lost.name), lost.pid}, text_of(lost.text));
}

contract::SetRecord* RankRecord::add_set(std::uint32_t generation, std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(record_.sets.begin(), record_.sets.end(),
                                  [](const contract::SetRecord& set) { return set.name.load() == 0; });
  if (found == record_.sets.end()) return nullptr;
  found->call = 0;
  found->named_call = 0;
  found->peer = 0;
  found->has_joined = 0;
  found->waiters = 0;
  found->name = static_cast<std::uint64_t>(generation) << 32 | (id + 1);
  return &*found;
}

void RankRecord::remove_set(contract::SetRecord* set) {
  if (set == nullptr) return;
  const std::lock_guard lock(mutex_);
  set->name = 0;
}

std::uint32_t RankRecord::add_tensor(const contract::SetRecord& set, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::uint32_t place = record_.tensor_slots.load(std::memory_order_relaxed);
  if (!free_places_.empty()) {
    place = free_places_.back();
    free_places_.pop_back();
  } else if (place < Record::kTensors) {
    record_.tensor_slots.store(place + 1, std::memory_order_relaxed);
  } else {
    record_.hidden_tensors.store(record_.hidden_tensors.load() + 1, std::memory_order_relaxed);
    return kNoPlace;
  }
  contract::TensorRecord& tensor = record_.tensors[place];
  tensor.digest = digest_of(name);
  const std::size_t length = std::min(name.size(), tensor.name.size());
  std::copy_n(name.begin(), length, tensor.name.begin());
  std::fill(tensor.name.begin() + static_cast<std::ptrdiff_t>(length), tensor.name.end(), '\0');
  const auto index = static_cast<std::uint64_t>(&set - record_.sets.data());
  tensor.state.store(static_cast<std::uint64_t>(++version_) << 32 | (index + 1), std::memory_order_release);
  return place;
}

void RankRecord::remove_tensor(std::uint32_t place) {
  const std::lock_guard lock(mutex_);
  if (place == kNoPlace) {
    record_.hidden_tensors.store(record_.hidden_tensors.load() - 1, std::memory_order_relaxed);
    return;
  }
  record_.tensors[place].state.store(0, std::memory_order_release);
  free_places_.push_back(place);
}

}  // namespace ddl::runtime
