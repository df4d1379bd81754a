// NVIDIA's management library, as its header nvml.h has it.
#include <array>
#include <cstdint>
#include <utility>

#include "affinity/source/gpu_meter.h"
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

/// nvmlUtilization_t: percent.
struct Utilization {
  unsigned gpu, memory;
};

/// nvmlMemory_t: bytes.
struct Memory {
  std::uint64_t total, free, used;
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
        error_(library.function<const char*(Return)>("nvmlErrorString")),
        mig_mode_(library.function<Return(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode")),
        max_parts_(library.function<Return(Device, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount")),
        part_(library.function<Return(Device, unsigned, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex")),
        utilization_(library.function<Return(Device, Utilization*)>("nvmlDeviceGetUtilizationRates")),
        memory_(library.function<Return(Device, Memory*)>("nvmlDeviceGetMemoryInfo")),
        energy_(library.function<Return(Device, std::uint64_t*)>("nvmlDeviceGetTotalEnergyConsumption")) {}

  bool is_whole() const { return init_ && count_ && handle_ && pci_ && uuid_ && name_ && error_; }

  struct FoundGpu {
    VendorGpu gpu;
    Device device = nullptr;
  };

  Result<std::vector<FoundGpu>> gpus() const {
    unsigned count = 0;
    if (const Return status = init_()) return failure("nvmlInit", status);
    if (const Return status = count_(&count)) return failure("nvmlDeviceGetCount", status);
    std::vector<FoundGpu> gpus;
    bool has_parts = false;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      // If a GPU has fallen off the bus, the others can still be used.
      if (handle_(index, &device) != 0) continue;
      PciInfo pci{};
      if (const Return status = pci_(device, &pci)) return failure("nvmlDeviceGetPciInfo", status);
      pci.bus_id.back() = '\0';
      const std::string bus_id = canonical_bus_id(pci.bus_id.data());
      if (is_divided(device)) {
        has_parts = true;
        for (const Device part : parts_of(device)) gpus.push_back({described(part, index, bus_id), part});
      } else {
        gpus.push_back({described(device, index, bus_id), device});
      }
    }
    // CUDA's own numbering counts only one instance then, so instances are named by UUID.
    for (int i = 0; i < std::ssize(gpus) && has_parts; ++i) {
      gpus[i].gpu.index = i;
      gpus[i].gpu.by_uuid = true;
    }
    return gpus;
  }

  GpuReading read(const FoundGpu& found) const {
    constexpr unsigned kPercent = 100;
    constexpr double kMillijoules = 1000;
    constexpr std::uint64_t kBlank = std::uint64_t{1} << 62;  // NVIDIA's tools write numbers above for "none"
    GpuReading reading{found.gpu};
    Utilization utilization{};
    if (utilization_ && utilization_(found.device, &utilization) == 0 && utilization.gpu <= kPercent)
      reading.busy_ratio = static_cast<double>(utilization.gpu) / kPercent;
    Memory memory{};
    if (memory_ && memory_(found.device, &memory) == 0 && memory.used <= memory.total &&
        std::in_range<std::int64_t>(memory.total)) {
      reading.memory_bytes = static_cast<std::int64_t>(memory.used);
      reading.memory_limit_bytes = static_cast<std::int64_t>(memory.total);
    }
    std::uint64_t energy = 0;
    if (energy_ && energy_(found.device, &energy) == 0 && energy < kBlank)
      reading.joules = static_cast<double>(energy) / kMillijoules;
    return reading;
  }

 private:
  /// In MIG mode a GPU does not compute; its instances do, if there are any. Drivers before R450 have no such mode.
  bool is_divided(Device device) const {
    unsigned now = 0, next = 0;
    return mig_mode_ && max_parts_ && part_ && mig_mode_(device, &now, &next) == 0 && now == 1;
  }
  std::vector<Device> parts_of(Device device) const {
    unsigned max = 0;
    std::vector<Device> parts;
    if (max_parts_(device, &max) != 0) return parts;
    for (unsigned slot = 0; slot < max; ++slot) {
      Device part = nullptr;
      if (part_(device, slot, &part) == 0) parts.push_back(part);  // slots may be free
    }
    return parts;
  }
  VendorGpu described(Device device, unsigned index, const std::string& bus_id) const {
    Text uuid{}, name{};
    (void)uuid_(device, uuid.data(), kTextBytes);
    (void)name_(device, name.data(), kTextBytes);
    uuid.back() = name.back() = '\0';
    return {static_cast<int>(index), bus_id, uuid.data(), name.data()};
  }
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
  Return (*mig_mode_)(Device, unsigned*, unsigned*);
  Return (*max_parts_)(Device, unsigned*);
  Return (*part_)(Device, unsigned, Device*);
  Return (*utilization_)(Device, Utilization*);
  Return (*memory_)(Device, Memory*);
  Return (*energy_)(Device, std::uint64_t*);
};

class NvmlMeter : public GpuMeter {
 public:
  static Result<std::unique_ptr<NvmlMeter>> open(const std::string& name) {
    DDL_ASSIGN(library, SharedLibrary::load(name));
    const Nvml nvml(library);
    if (!nvml.is_whole()) return fail(ErrorCode::kUnavailable, library.path() + " lacks a function of NVML");
    auto gpus = nvml.gpus();
    if (!gpus) return fail(std::move(gpus.error()).during(library.path()));
    return std::unique_ptr<NvmlMeter>(new NvmlMeter(nvml, *std::move(gpus)));
  }

  std::vector<GpuReading> read() override {
    std::vector<GpuReading> readings;
    for (const Nvml::FoundGpu& found : gpus_) readings.push_back(nvml_.read(found));
    return readings;
  }
  std::vector<VendorGpu> gpus() const {
    std::vector<VendorGpu> all;
    for (const Nvml::FoundGpu& found : gpus_) all.push_back(found.gpu);
    return all;
  }

 private:
  NvmlMeter(const Nvml& nvml, std::vector<Nvml::FoundGpu> gpus) : nvml_(nvml), gpus_(std::move(gpus)) {}

  Nvml nvml_;
  std::vector<Nvml::FoundGpu> gpus_;
};

}  // namespace

Result<std::vector<VendorGpu>> ask_nvml(const std::string& name) {
  DDL_ASSIGN(meter, NvmlMeter::open(name));
  return meter->gpus();
}

Result<std::unique_ptr<GpuMeter>> open_nvml_meter(const std::string& name) { return NvmlMeter::open(name); }

}  // namespace ddl::affinity
