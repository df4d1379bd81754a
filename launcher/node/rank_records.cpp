#include "launcher/node/rank_records.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "contract/rank_process.h"

namespace ddl::launcher {

using contract::RankRecord;

namespace {

/// The bytes of a record and a ring of this many events: a multiple of every page size.
std::size_t bytes_of_each(std::uint32_t events) {
  const std::size_t bytes = RankRecord::kBytes + contract::EventRing::bytes_for(events);
  return (bytes + RankRecord::kBytes - 1) / RankRecord::kBytes * RankRecord::kBytes;
}

/// The events that there is room for: a limit on the size of files (ulimit -f) holds for memfds, too, and exceeding it
/// would end this process.
std::uint32_t events_within_limits(std::size_t local_ranks, std::uint32_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  while (wanted > 1 && local_ranks * bytes_of_each(wanted) > limit.rlim_cur) wanted /= 2;
  return local_ranks * bytes_of_each(wanted) <= limit.rlim_cur ? wanted : 0;
}

/// A rank can have written anything.
std::int64_t number_in(const std::atomic<std::uint64_t>& word) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(word, std::numeric_limits<std::int64_t>::max()));
}
double seconds_in(const std::atomic<std::uint64_t>& nanoseconds) {
  return std::min(static_cast<double>(number_in(nanoseconds)) / 1e9, kMaxSeconds);
}

/// The mean of the steps after the first one.
double seconds_of_step(const contract::EventRing& ring) {
  const std::uint64_t steps = ring.steps;
  const auto first = static_cast<double>(ring.first_step_end), last = static_cast<double>(ring.last_step_end);
  if (steps < 2 || first <= 0) return 0;
  return std::clamp((last - first) / 1e9 / static_cast<double>(steps - 1), 0.0, kMaxSeconds);
}

void add_sums(const std::array<contract::CallTotals, contract::kCallNames.size()>& totals, bool is_named,
              std::vector<CallSum>& sums) {
  for (std::size_t kind = 1; kind < totals.size(); ++kind) {
    const contract::CallTotals& of = totals[kind];
    const double waited = seconds_in(of.wait_nanoseconds);
    if (of.calls == 0 && waited == 0) continue;
    sums.push_back({contract::kCallNames[kind], is_named, number_in(of.calls), number_in(of.bytes),
                    seconds_in(of.nanoseconds), waited});
  }
}

}  // namespace

Result<RankRecords> RankRecords::create(std::size_t local_ranks, std::uint32_t events, std::uint32_t kept,
                                        bool is_exact) {
  events = events_within_limits(local_ranks, events);
  if (events == 0)
    return fail(ErrorCode::kUnavailable, "the limit on the size of files (ulimit -f) is too small");
  UniqueFd fd(::memfd_create("ddl-rank-records", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell) return fail_errno("eventfd");
  // A record and a ring take memory only as far as they are used.
  const std::size_t each = bytes_of_each(events), bytes = local_ranks * each;
  if (::ftruncate(fd.get(), bytes) != 0) return fail_errno("ftruncate");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("fcntl F_ADD_SEALS");
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  RankRecords records(std::move(fd), std::move(doorbell), memory, local_ranks, each);
  for (std::size_t rank = 0; rank < local_ranks; ++rank) {
    const std::uint32_t magic = RankRecord::kMagic;
    std::memcpy(records.part(rank).data(), &magic, sizeof magic);
    contract::EventRing& ring = timeline::make_ring(records.ring_part(rank), events, std::min(kept, events));
    ring.is_exact = is_exact ? 1 : 0;
  }
  return records;
}

RankRecords::RankRecords(UniqueFd fd, UniqueFd doorbell, void* memory, std::size_t local_ranks,
                         std::size_t bytes_each)
    : fd_(std::move(fd)),
      doorbell_(std::move(doorbell)),
      memory_(memory),
      local_ranks_(local_ranks),
      bytes_each_(bytes_each) {}

RankRecords::RankRecords(RankRecords&& other) noexcept
    : fd_(std::move(other.fd_)),
      doorbell_(std::move(other.doorbell_)),
      memory_(std::exchange(other.memory_, nullptr)),
      local_ranks_(other.local_ranks_),
      bytes_each_(other.bytes_each_) {}

RankRecords::~RankRecords() {
  if (memory_ != nullptr) ::munmap(memory_, local_ranks_ * bytes_each_);
}

std::string RankRecords::place_of(std::size_t local_rank) const {
  return std::to_string(contract::kRankRecordFd) + ":" + std::to_string(local_rank * bytes_each_) + ":" +
         std::to_string(bytes_each_) + ":" + std::to_string(contract::kDoorbellFd);
}

std::span<std::byte> RankRecords::part(std::size_t local_rank) const {
  if (local_rank >= local_ranks_) return {};
  return {static_cast<std::byte*>(memory_) + local_rank * bytes_each_, bytes_each_};
}

std::span<std::byte> RankRecords::ring_part(std::size_t local_rank) const {
  const std::span<std::byte> all = part(local_rank);
  return all.empty() ? all : all.subspan(RankRecord::kBytes);
}

RankRecord* RankRecords::record(std::size_t local_rank) const {
  const std::span<std::byte> bytes = part(local_rank);
  if (bytes.empty()) return nullptr;
  auto* const found = reinterpret_cast<RankRecord*>(bytes.data());
  return found->magic == RankRecord::kMagic ? found : nullptr;
}

timeline::RingSnapshot RankRecords::events(std::size_t local_rank, std::size_t latest) const {
  const std::span<const std::byte> memory = ring_part(local_rank);
  const contract::EventRing* const ring = timeline::find_ring(memory);
  return ring == nullptr ? timeline::RingSnapshot() : timeline::read_ring(*ring, memory, latest);
}

void RankRecords::record_timeline(std::uint32_t events) {
  for (std::size_t rank = 0; rank < local_ranks_; ++rank) {
    auto* const ring = const_cast<contract::EventRing*>(timeline::find_ring(ring_part(rank)));
    if (ring == nullptr) continue;
    const std::uint32_t kept = std::min(timeline::ring_capacity(events), ring->capacity);
    if (kept > ring->kept) ring->kept = kept;
    ring->is_exact = 1;
  }
}

void RankRecords::stop_timeline() {
  for (std::size_t rank = 0; rank < local_ranks_; ++rank) {
    auto* const ring = const_cast<contract::EventRing*>(timeline::find_ring(ring_part(rank)));
    if (ring != nullptr) ring->is_exact = 0;
  }
}

bool RankRecords::tell(const message::HostLost& lost) {
  const auto copy = [](const std::string& text, auto& field) {
    std::copy_n(text.begin(), std::min(text.size(), field.size() - 1), field.begin());
  };
  bool any_has_joined = false;
  for (std::size_t place = 0; place < local_ranks_; ++place) {
    RankRecord* const told = record(place);
    if (told == nullptr) continue;
    any_has_joined = any_has_joined || told->phase.load() == RankRecord::Phase::kJoined;
    // Of several hosts that are lost, the first one.
    if (told->lost_host.rank.load() != 0) continue;
    told->lost_host.pid = static_cast<std::int32_t>(lost.pid);
    copy(lost.host, told->lost_host.name);
    copy(lost.text, told->lost_host.text);
    told->lost_host.rank.store(lost.rank + 1, std::memory_order_release);
  }
  // Nobody reads it, so it stays readable.
  (void)::eventfd_write(doorbell_.get(), 1);
  return any_has_joined;
}

void RankRecords::forget_lost() {
  for (std::size_t place = 0; place < local_ranks_; ++place) {
    RankRecord* const told = record(place);
    if (told == nullptr) continue;
    told->gone = 0;
    told->lost_host.rank.store(0);
    told->lost_host.name = {};
    told->lost_host.text = {};
  }
  eventfd_t ignored = 0;
  (void)::eventfd_read(doorbell_.get(), &ignored);
}

void RankRecords::show_change(contract::JobChange change) {
  for (std::size_t place = 0; place < local_ranks_; ++place) {
    if (RankRecord* const shown = record(place)) shown->pending_change = static_cast<std::uint32_t>(change);
  }
}

int RankRecords::gone_rank(std::size_t local_rank) const {
  const RankRecord* const found = record(local_rank);
  const std::int32_t gone = found == nullptr ? 0 : found->gone.load();
  return gone > 0 ? gone - 1 : -1;
}

RankCalls RankRecords::calls(std::size_t local_rank) const {
  RankCalls calls;
  const RankRecord* const found = record(local_rank);
  if (found == nullptr) return calls;
  add_sums(found->totals, false, calls.sums);
  add_sums(found->named_totals, true, calls.sums);
  calls.tensor_wait_seconds = seconds_in(found->tensor_wait_nanoseconds);
  if (const contract::EventRing* const ring = timeline::find_ring(ring_part(local_rank))) {
    calls.steps = number_in(ring->steps);
    calls.step_seconds = seconds_of_step(*ring);
  }
  for (const contract::AwaitedTotal& one : found->awaited) {
    const std::int32_t rank = one.rank;
    if (rank <= 0) break;
    calls.awaited.push_back({rank - 1, seconds_in(one.nanoseconds)});
  }
  std::ranges::stable_sort(calls.awaited, std::ranges::greater(),
                           [](const AwaitedRank& one) { return one.seconds.value; });
  return calls;
}

RankSnapshot RankRecords::read(std::size_t local_rank) const {
  RankSnapshot snapshot;
  const RankRecord* const found = record(local_rank);
  if (found == nullptr) return snapshot;
  const RankRecord::Phase phase = found->phase;
  snapshot.phase = std::min(phase, RankRecord::Phase::kLeft);
  snapshot.phase_since = found->phase_since;
  snapshot.inits = found->inits;
  snapshot.pid = std::max(found->pid.load(), 0);
  snapshot.pid_namespace = found->pid_namespace;
  snapshot.hidden_tensors = found->hidden_tensors;

  std::array<std::uint32_t, RankRecord::kSets> generations{};
  for (std::size_t i = 0; i < found->sets.size(); ++i) {
    const contract::SetRecord& set = found->sets[i];
    const std::uint64_t name = set.name;
    if (name == 0) continue;
    generations[i] = name >> 32;
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
