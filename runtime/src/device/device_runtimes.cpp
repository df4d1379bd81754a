#include "runtime/src/device/device_runtimes.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/deadline.h"
#include "runtime/src/device/vendor_library.h"

namespace ddl::runtime {
namespace {

constexpr std::size_t kVendors = 2;

/// What this process has of each vendor. Of the process, because the libraries are.
struct Loaded {
  std::mutex mutex;
  std::array<std::unique_ptr<DeviceRuntime>, kVendors> owned;  ///< guarded by mutex
  /// The same without a lock; null: not loaded.
  std::array<std::atomic<DeviceRuntime*>, kVendors> runtimes{};
  std::atomic<bool> any{false};
  /// The number of libraries that the process had loaded when it was searched for runtimes.
  std::atomic<unsigned long long> searched{0};
};

/// Never destroyed: threads may still use it while the process exits.
Loaded& loaded() {
  static Loaded& all = *new Loaded;
  return all;
}

unsigned long long libraries_loaded() {
  unsigned long long count = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

/// flags: of dlopen(); RTLD_NOLOAD: only if it has been loaded.
Result<DeviceRuntime*> open(std::size_t index, int flags) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  if (all.owned[index]) return all.owned[index].get();
  const DeviceVendor& vendor = device_vendors()[index];
  std::string reason;
  for (const char* const name : vendor.libraries) {
    // Never closed: vendors' libraries have threads and exit handlers.
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
    if (library == nullptr) {
      const char* const text = ::dlerror();
      if (reason.empty()) reason = text == nullptr ? std::string(name) + " is not loaded" : text;
      continue;
    }
    auto made = vendor.make(library);
    if (!made) return fail(std::move(made.error().during(name)));
    all.owned[index] = *std::move(made);
    all.runtimes[index] = all.owned[index].get();
    all.any = true;
    return all.owned[index].get();
  }
  return fail(ErrorCode::kUnavailable, reason);
}

void search() {
  Loaded& all = loaded();
  const unsigned long long now = libraries_loaded();
  if (all.searched.load(std::memory_order_acquire) == now) return;
  for (std::size_t index = 0; index < kVendors; ++index) {
    // One that lacks functions is not used; load_runtime() says so.
    if (all.runtimes[index].load() == nullptr) (void)open(index, RTLD_NOLOAD);
  }
  all.searched.store(now, std::memory_order_release);
}

/// Pages in which this thread has found memory of the CPU since the kernel's clock ticked. To ask the loader each time
/// would take a tenth of a small call.
class CpuPages {
 public:
  bool contain(std::uintptr_t page) const {
    return std::find(pages_.begin(), pages_.end(), page) != pages_.end();
  }
  void forget_before(std::int64_t tick) {
    if (tick == tick_) return;
    tick_ = tick;
    pages_ = {};
  }
  void add(std::uintptr_t page) { pages_[next_++ % pages_.size()] = page; }

 private:
  std::int64_t tick_ = -1;
  std::array<std::uintptr_t, 4> pages_{};  ///< the page of a null pointer, too
  std::size_t next_ = 0;
};

std::uintptr_t page_of(const void* address) {
  constexpr int kLog2Page = 12;  // no page is smaller
  return reinterpret_cast<std::uintptr_t>(address) >> kLog2Page;
}

}  // namespace

const std::vector<DeviceVendor>& device_vendors() {
  static const std::vector<DeviceVendor>& all = *new std::vector<DeviceVendor>{
      {"CUDA", "cuda", {"libcuda.so.1"}, make_cuda},
      {"HIP", "rocm", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, make_hip},
  };
  return all;
}

Result<DeviceRuntime*> load_runtime(const DeviceVendor& vendor) {
  return open(static_cast<std::size_t>(&vendor - device_vendors().data()), 0);
}

std::optional<FoundMemory> find_device_memory(const void* address) {
  search();
  Loaded& all = loaded();
  if (!all.any.load(std::memory_order_relaxed) || address == nullptr) return std::nullopt;
  for (const auto& runtime : all.runtimes) {
    DeviceRuntime* const loaded_runtime = runtime.load(std::memory_order_acquire);
    if (loaded_runtime == nullptr) continue;
    if (auto memory = loaded_runtime->find(address)) return FoundMemory{loaded_runtime, *memory};
  }
  return std::nullopt;
}

bool may_be_on_gpu(const void* first, const void* second) {
  Loaded& all = loaded();
  if (all.any.load(std::memory_order_relaxed)) return true;
  thread_local CpuPages known;
  known.forget_before(kernel_tick());
  const std::uintptr_t first_page = page_of(first), second_page = page_of(second);
  if (known.contain(first_page) && known.contain(second_page)) return false;
  search();
  if (all.any.load(std::memory_order_relaxed)) return true;
  known.add(first_page);
  if (second_page != first_page) known.add(second_page);
  return false;
}

}  // namespace ddl::runtime
