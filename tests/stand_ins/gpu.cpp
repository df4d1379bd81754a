#include "stand_ins/gpu.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "stand_ins/ipc.h"

namespace ddl::stand_ins {
namespace {

/// Address space for the memory of all GPUs; it costs memory only where it is used.
constexpr std::size_t kMemoryBytes = std::size_t{2} << 30;
/// As CUDA aligns allocations; a gap of as much follows each.
constexpr std::size_t kAlignment = 512;

thread_local bool in_operation = false;

}  // namespace

unsigned number_in(const char* variable, unsigned otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

bool is_in_operation() { return in_operation; }

void broken_rule(const std::string& rule) {
  std::fprintf(stderr, "stand-in GPU: broken rule: %s\n", rule.c_str());
  std::abort();
}

GpuMemory::GpuMemory() {
  file_ = ::memfd_create("stand-in GPU", MFD_CLOEXEC);
  if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(kMemoryBytes)) != 0)
    broken_rule("no memory for GPUs");
  const Mapping all = map(file_, 0, kMemoryBytes);
  seen_ = all.seen;
  reached_ = all.reached;
}

GpuMemory::Mapping GpuMemory::map(int file, std::uint64_t offset, std::size_t bytes) {
  void* const seen = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, static_cast<off_t>(offset));
  void* const reached =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (seen == MAP_FAILED || reached == MAP_FAILED) broken_rule("no address space for GPUs");
  // A dump of a process that ends by broken_rule() need not hold it.
  (void)::madvise(reached, bytes, MADV_DONTDUMP);
  return {reinterpret_cast<std::uintptr_t>(seen), static_cast<std::byte*>(reached), bytes};
}

void GpuMemory::unmap(const Mapping& mapping) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what mmap() gave
  ::munmap(reinterpret_cast<void*>(mapping.seen), mapping.bytes);
  ::munmap(mapping.reached, mapping.bytes);
}

void GpuMemory::keep_private(std::uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  taken_.at(begin).is_private = true;
}

std::uintptr_t GpuMemory::open(int file, std::uint64_t offset, std::size_t bytes, int gpu) {
  const auto page = static_cast<std::uint64_t>(::getpagesize());
  const std::uint64_t before = offset % page;
  Opened opened;
  opened.mapping = map(file, offset - before, before + bytes);
  const std::lock_guard lock(mutex_);
  opened.allocation = Allocation{opened.mapping.seen + before, bytes, gpu, ++last_id_, false, true};
  opened_[opened.allocation.begin] = opened;
  return opened.allocation.begin;
}

bool GpuMemory::close(std::uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(begin);
  if (found == opened_.end()) return false;
  unmap(found->second.mapping);
  opened_.erase(found);
  return true;
}

bool GpuMemory::is_inside(std::uintptr_t address) const {
  return address >= seen_ && address < seen_ + kMemoryBytes;
}

std::uintptr_t GpuMemory::allocate(std::size_t bytes, int gpu) {
  const std::lock_guard lock(mutex_);
  const std::size_t length = (std::max<std::size_t>(bytes, 1) + 2 * kAlignment - 1) / kAlignment * kAlignment;
  std::uintptr_t begin = seen_;
  for (const auto& [at, taken] : taken_) {
    if (at - begin >= length) break;
    begin = at + (taken.bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  }
  if (begin + length > seen_ + kMemoryBytes) return 0;
  taken_[begin] = Allocation{begin, bytes, gpu, ++last_id_, false};
  return begin;
}

bool GpuMemory::release(std::uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(begin);
  if (found == taken_.end()) return false;
  // What uses it after this reads nonsense.
  std::memset(reached_ + (begin - seen_), 0xDD, found->second.bytes);
  taken_.erase(found);
  return true;
}

std::optional<GpuMemory::Allocation> GpuMemory::find(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, opened] : opened_) {
    if (address >= begin && address - begin < opened.allocation.bytes) return opened.allocation;
  }
  auto after = taken_.upper_bound(address);
  if (after == taken_.begin()) return std::nullopt;
  const Allocation& allocation = std::prev(after)->second;
  if (address - allocation.begin >= std::max<std::size_t>(allocation.bytes, 1)) return std::nullopt;
  return allocation;
}

std::byte* GpuMemory::reach(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, opened] : opened_) {
      if (at < begin || at - begin >= opened.allocation.bytes) continue;
      if (at - begin + bytes > opened.allocation.bytes)
        broken_rule("an operation reaches over the end of another process's memory");
      return opened.mapping.reached + (at - opened.mapping.seen);
    }
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): memory of the host
  if (!is_inside(at)) return reinterpret_cast<std::byte*>(at);
  const auto allocation = find(at);
  if (!allocation || at - allocation->begin + bytes > allocation->bytes)
    broken_rule("an operation reaches memory of a GPU that is not allocated");
  return reached_ + (at - seen_);
}

bool Mark::is_done() const {
  if (!state) return true;
  const std::lock_guard lock(state->mutex);
  return state->done >= count;
}

void Mark::wait() const {
  if (!state) return;
  std::unique_lock lock(state->mutex);
  state->changed.wait(lock, [&] { return state->done >= count; });
}

Stream::Stream(Gpus& gpus, int gpu, bool is_blocking)
    : gpus_(gpus), gpu_(gpu), is_blocking_(is_blocking), thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  thread_.join();
}

void Stream::put(std::function<void()> operation) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->operations.push_back(std::move(operation));
    ++state_->queued;
  }
  state_->changed.notify_all();
}

Mark Stream::mark() const {
  const std::lock_guard lock(state_->mutex);
  return {state_, state_->queued};
}

void Stream::synchronize() const { mark().wait(); }

void Stream::run() {
  in_operation = true;
  std::mt19937 random(std::random_device{}());
  const unsigned max_delay = gpus_.max_delay_us();
  for (;;) {
    std::function<void()> operation;
    {
      std::unique_lock lock(state_->mutex);
      state_->changed.wait(lock, [&] { return state_->ends || !state_->operations.empty(); });
      if (state_->operations.empty()) return;
      operation = std::move(state_->operations.front());
      state_->operations.pop_front();
    }
    if (max_delay > 0) ::usleep(static_cast<useconds_t>(random() % max_delay));
    operation();
    operation = nullptr;
    {
      const std::lock_guard lock(state_->mutex);
      ++state_->done;
    }
    state_->changed.notify_all();
  }
}

Gpus::Gpus(const char* visible) : max_delay_us_(number_in("DDL_STAND_IN_DELAY_US", 0)) {
  const unsigned all = number_in("DDL_STAND_IN_GPUS", 8);
  if (visible == nullptr) {
    for (unsigned i = 0; i < all; ++i) numbers_.push_back(static_cast<int>(i));
    return;
  }
  for (const char* at = visible; *at != '\0';) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(at, &end, 10);
    // What follows an invalid number is not visible.
    if (end == at || number >= all) break;
    numbers_.push_back(static_cast<int>(number));
    at = *end == ',' ? end + 1 : end;
  }
}

std::vector<unsigned char> Gpus::uuid(int gpu) const {
  std::vector<unsigned char> bytes(16, 0x5A);
  char host[64] = {};
  (void)::gethostname(host, sizeof host - 1);
  const std::size_t digest = std::hash<std::string>()(host);
  std::memcpy(bytes.data(), &digest, sizeof digest);
  bytes[15] = static_cast<unsigned char>(numbers_[static_cast<std::size_t>(gpu)]);
  return bytes;
}

std::string Gpus::pci_address(int gpu) const {
  char text[32];
  (void)std::snprintf(text, sizeof text, "0000:%02x:00.0", 0xC1 + numbers_[static_cast<std::size_t>(gpu)]);
  return text;
}

Stream* Gpus::make_stream(int gpu, bool is_blocking) {
  auto stream = std::make_unique<Stream>(*this, gpu, is_blocking);
  Stream* const handle = stream.get();
  const std::lock_guard lock(mutex_);
  streams_[handle] = std::move(stream);
  return handle;
}

void Gpus::destroy(Stream* stream) {
  std::unique_ptr<Stream> owned;
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) broken_rule("a stream is destroyed that does not exist");
  owned = std::move(found->second);
  streams_.erase(found);
}

Stream* Gpus::stream_of(void* handle, int gpu) {
  const std::lock_guard lock(mutex_);
  if (handle == nullptr ||
      handle == reinterpret_cast<void*>(1)) {  // NOLINT(performance-no-int-to-ptr): the API's
    std::unique_ptr<Stream>& made = defaults_[gpu];
    if (!made) made = std::make_unique<Stream>(*this, gpu, true);
    return made.get();
  }
  const auto found = streams_.find(static_cast<Stream*>(handle));
  return found == streams_.end() ? nullptr : found->first;
}

bool Gpus::is_any_capturing() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.first->is_capturing.load(); });
}

void Gpus::put(Stream& stream, std::function<void()> operation) {
  std::vector<Mark> before;
  {
    const std::lock_guard lock(mutex_);
    const auto found = defaults_.find(stream.gpu());
    Stream* const default_stream = found == defaults_.end() ? nullptr : found->second.get();
    if (&stream == default_stream) {
      for (const auto& [other, owned] : streams_) {
        if (other->is_blocking() && other->gpu() == stream.gpu()) before.push_back(other->mark());
      }
    } else if (stream.is_blocking() && default_stream != nullptr) {
      before.push_back(default_stream->mark());
    }
  }
  stream.put([before = std::move(before), operation = std::move(operation)] {
    for (const Mark& mark : before) mark.wait();
    operation();
  });
}

std::function<void()> Event::make_wait() {
  if (shared && shared->is_opened())
    return [records = shared, record = shared->last()] { records->wait(record); };
  const std::lock_guard lock(mutex);
  return [recorded = mark] { recorded.wait(); };
}

bool Event::is_done() {
  if (shared && shared->is_opened()) return shared->is_done(shared->last());
  const std::lock_guard lock(mutex);
  return mark.is_done();
}

void Gpus::record(Event& event, Stream& stream) {
  if (event.shared) {
    if (event.shared->is_opened()) broken_rule("a process records another one's event");
    put(stream, [records = event.shared, record = event.shared->add()] { records->set_done(record); });
  } else {
    // The default stream waits for the others.
    put(stream, [] {});
  }
  const std::lock_guard lock(event.mutex);
  event.mark = stream.mark();
}

void Gpus::synchronize(int gpu) {
  std::vector<Mark> marks;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [stream, owned] : streams_) {
      if (stream->gpu() == gpu) marks.push_back(stream->mark());
    }
    const auto found = defaults_.find(gpu);
    if (found != defaults_.end()) marks.push_back(found->second->mark());
  }
  for (const Mark& mark : marks) mark.wait();
}

bool Gpus::pin(void* memory) {
  const std::lock_guard lock(mutex_);
  return pinned_.emplace(memory, true).second;
}

bool Gpus::unpin(void* memory) {
  const std::lock_guard lock(mutex_);
  return pinned_.erase(memory) == 1;
}

namespace {

struct Queries {
  std::mutex mutex;
  std::condition_variable changed;
  int in_capture = 0;
};
Queries& queries() {
  static Queries& all = *new Queries;
  return all;
}

}  // namespace

void note_query(const Gpus& gpus, int capture_mode) {
  if (!gpus.is_any_capturing()) return;
  if (capture_mode == 0) broken_rule("a query that spoils a graph that the program records");
  Queries& all = queries();
  {
    const std::lock_guard lock(all.mutex);
    ++all.in_capture;
  }
  all.changed.notify_all();
}

bool wait_for_query_in_capture(int milliseconds) {
  Queries& all = queries();
  std::unique_lock lock(all.mutex);
  return all.changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                              [&] { return all.in_capture > 0; });
}

}  // namespace ddl::stand_ins
