// NVIDIA's management library, as its header nvml.h has it.
#include <array>

#include "affinity/source/vendor_gpus.h"
#include "base/shared_library.h"

namespace ddl::affinity {
namespace {

using Return = int;
using Device = void*;
constexpr std::size_t kTextBytes = 96;

/// nvmlPciInfo_t of the third version of its function.
struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

using Text = std::array<char, kTextBytes>;

class Nvml {
 public:
  explicit Nvml(const SharedLibrary& library)
      : init_(library.function<Return()>("nvmlInit_v2")),
        count_(library.function<Return(unsigned*)>("nvmlDeviceGetCount_v2")),
        handle_(library.function<Return(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2")),
        pci_(library.function<Return(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3")),
        uuid_(library.function<Return(Device, char*, unsigned)>("nvmlDeviceGetUUID")),
        name_(library.function<Return(Device, char*, unsigned)>("nvmlDeviceGetName")),
        error_(library.function<const char*(Return)>("nvmlErrorString")) {}

  bool is_whole() const { return init_ && count_ && handle_ && pci_ && uuid_ && name_ && error_; }

  Result<std::vector<VendorGpu>> gpus() const {
    unsigned count = 0;
    if (const Return status = init_()) return failure("nvmlInit", status);
    if (const Return status = count_(&count)) return failure("nvmlDeviceGetCount", status);
    std::vector<VendorGpu> gpus;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      // One that has fallen off the bus does not keep the others from being used.
      if (handle_(index, &device) != 0) continue;
      PciInfo pci{};
      if (const Return status = pci_(device, &pci)) return failure("nvmlDeviceGetPciInfo", status);
      Text uuid{}, name{};
      (void)uuid_(device, uuid.data(), kTextBytes);
      (void)name_(device, name.data(), kTextBytes);
      pci.bus_id.back() = uuid.back() = name.back() = '\0';
      gpus.push_back(
          {static_cast<int>(index), canonical_bus_id(pci.bus_id.data()), uuid.data(), name.data()});
    }
    return gpus;
  }

 private:
  tl::unexpected<Error> failure(const char* call, Return status) const {
    return fail(ErrorCode::kUnavailable, std::string(call) + ": " + error_(status));
  }

  Return (*init_)();
  Return (*count_)(unsigned*);
  Return (*handle_)(unsigned, Device*);
  Return (*pci_)(Device, PciInfo*);
  Return (*uuid_)(Device, char*, unsigned);
  Return (*name_)(Device, char*, unsigned);
  const char* (*error_)(Return);
};

}  // namespace

Result<std::vector<VendorGpu>> ask_nvml(const std::string& name) {
  const auto library = SharedLibrary::load(name);
  if (!library) return fail(library.error());
  const Nvml nvml(*library);
  if (!nvml.is_whole()) return fail(ErrorCode::kUnavailable, library->path() + " lacks a function of NVML");
  auto gpus = nvml.gpus();
  if (!gpus) return fail(std::move(gpus.error()).during(library->path()));
  return gpus;
}

}  // namespace ddl::affinity
