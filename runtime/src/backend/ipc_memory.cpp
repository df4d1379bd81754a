#include "runtime/src/backend/ipc_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace ddl::runtime {
namespace {

bool overlap(const DeviceAllocation& a, const DeviceAllocation& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

struct UnusedEvents {
  std::mutex mutex;
  std::map<Device*, std::vector<EventHandle>> of_device;  ///< guarded by mutex
};
/// Never destroyed: as long as the process lives, others may use the events.
UnusedEvents& unused_events() {
  static UnusedEvents& all = *new UnusedEvents;
  return all;
}

}  // namespace

Result<SharedEvent> SharedEvent::take(Device& device) {
  {
    UnusedEvents& all = unused_events();
    const std::lock_guard lock(all.mutex);
    std::vector<EventHandle>& unused = all.of_device[&device];
    if (!unused.empty()) {
      SharedEvent event(device, unused.back());
      unused.pop_back();
      return event;
    }
  }
  DDL_ASSIGN(made, device.make_shared_event());
  return SharedEvent(device, made);
}

SharedEvent::~SharedEvent() {
  if (handle_ == nullptr) return;
  UnusedEvents& all = unused_events();
  const std::lock_guard lock(all.mutex);
  all.of_device[device_].push_back(handle_);
}

SharedEvent::SharedEvent(SharedEvent&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

SharedEvent& SharedEvent::operator=(SharedEvent&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

IpcMemory::IpcMemory(Device& device, int rank, std::span<const IpcPeerInfo> peers)
    : device_(device), opened_(peers.size()) {
  for (const IpcPeerInfo& info : peers) is_in_process_.push_back(info.process == peers[rank].process ? 1 : 0);
}

IpcMemory::~IpcMemory() {
  for (std::size_t rank = 0; rank < opened_.size(); ++rank) {
    while (!opened_[rank].empty()) close(static_cast<int>(rank), opened_[rank].begin());
  }
}

IpcBuffer IpcMemory::describe(const void* address) {
  IpcBuffer buffer;
  if (address == nullptr) return buffer;
  buffer.kind = IpcBuffer::Kind::kPrivate;
  const auto allocation = device_.allocation_of(address);
  if (!allocation || allocation->bytes == 0) return buffer;
  auto known = handles_.find(allocation->id);
  if (known == handles_.end()) {
    const auto handle = device_.share_memory(*allocation);
    if (!handle) return buffer;
    if (handles_.size() >= kMostOpened) handles_.clear();
    known = handles_.emplace(allocation->id, *handle).first;
  }
  buffer.kind = IpcBuffer::Kind::kShared;
  buffer.allocation = *allocation;
  buffer.offset = reinterpret_cast<std::uintptr_t>(address) - allocation->begin;
  buffer.handle = known->second;
  return buffer;
}

bool IpcMemory::is_new(int rank, const IpcBuffer& buffer) const {
  const OfRank& opened = opened_[rank];
  return buffer.kind == IpcBuffer::Kind::kShared && opened.find(buffer.allocation.id) == opened.end();
}

bool IpcMemory::must_close(int rank, const IpcBuffer& buffer, std::size_t opened_now) const {
  const OfRank& opened = opened_[rank];
  return opened.size() + opened_now > kMostOpened ||
         std::any_of(opened.begin(), opened.end(),
                     [&](const auto& entry) { return overlap(entry.second.allocation, buffer.allocation); });
}

Status IpcMemory::open(int rank, const IpcBuffer& buffer) {
  OfRank& opened = opened_[rank];
  // The rank has freed what lay there.
  for (auto entry = opened.begin(); entry != opened.end();) {
    const auto next = std::next(entry);
    if (overlap(entry->second.allocation, buffer.allocation)) close(rank, entry);
    entry = next;
  }
  if (opened.size() >= kMostOpened) {
    close(rank, std::min_element(opened.begin(), opened.end(), [](const auto& a, const auto& b) {
            return a.second.last_use < b.second.last_use;
          }));
  }
  Opened& entry = opened[buffer.allocation.id];
  entry = {buffer.allocation, nullptr, ++uses_};
  if (is_in_process(rank)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what the other rank's runtime gave, which is this one's
    entry.begin = reinterpret_cast<std::byte*>(buffer.allocation.begin);
    return {};
  }
  DDL_ASSIGN(begin, device_.open_memory(buffer.handle));
  entry.begin = static_cast<std::byte*>(begin);
  return {};
}

void IpcMemory::refuse(int rank, const IpcBuffer& buffer) {
  OfRank& opened = opened_[rank];
  const auto entry = opened.find(buffer.allocation.id);
  if (entry == opened.end()) return;
  if (entry->second.begin != nullptr && !is_in_process(rank)) device_.close_memory(entry->second.begin);
  entry->second.begin = nullptr;
}

std::byte* IpcMemory::find(int rank, const IpcBuffer& buffer) {
  OfRank& opened = opened_[rank];
  const auto entry = opened.find(buffer.allocation.id);
  if (entry == opened.end() || entry->second.begin == nullptr) return nullptr;
  entry->second.last_use = ++uses_;
  return entry->second.begin + buffer.offset;
}

void IpcMemory::close(int rank, OfRank::iterator entry) {
  if (entry->second.begin != nullptr && !is_in_process(rank)) device_.close_memory(entry->second.begin);
  opened_[rank].erase(entry);
}

IpcBuffers::IpcBuffers(const Request& request, int rank, int size)
    : parts_(request.parts.empty() ? 1 : request.parts.size()), size_(size) {
  UsedBuffers used = used_buffers(request, rank, size);
  if (request.call.kind == CallKind::kBroadcast && rank == request.call.root) used = {used.recv, nullptr};
  if (request.parts.empty()) {
    own_.push_back({used.send, const_cast<std::byte*>(used.recv), request.call.count});
    return;
  }
  for (const Part& part : request.parts) own_.push_back(part.count == 0 ? Part{} : part);
}

Outcome IpcBuffers::gather(CpuExchange& exchange, IpcMemory& memory, CallDeadline deadline) {
  std::vector<IpcBuffer> described;
  for (const Part& part : own_) {
    described.push_back(memory.describe(part.send));
    described.push_back(memory.describe(part.recv));
  }
  all_.resize(described.size() * static_cast<std::size_t>(size_));
  return exchange.gather(described.data(), all_.data(), described.size() * sizeof(IpcBuffer), deadline);
}

}  // namespace ddl::runtime
