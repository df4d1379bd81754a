// AMD's system management interface, as its header rocm_smi.h has it.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "affinity/source/gpu_meter.h"
#include "affinity/source/vendor_gpus.h"
#include "base/shared_library.h"

namespace ddl::affinity {
namespace {

using Return = int;

class RocmSmi {
 public:
  explicit RocmSmi(const SharedLibrary& library)
      : init_(library.function<Return(std::uint64_t)>("rsmi_init")),
        count_(library.function<Return(std::uint32_t*)>("rsmi_num_monitor_devices")),
        pci_(library.function<Return(std::uint32_t, std::uint64_t*)>("rsmi_dev_pci_id_get")),
        unique_(library.function<Return(std::uint32_t, std::uint64_t*)>("rsmi_dev_unique_id_get")),
        name_(library.function<Return(std::uint32_t, char*, std::size_t)>("rsmi_dev_name_get")),
        error_(library.function<Return(Return, const char**)>("rsmi_status_string")),
        busy_(library.function<Return(std::uint32_t, std::uint32_t*)>("rsmi_dev_busy_percent_get")),
        memory_(library.function<Return(std::uint32_t, int, std::uint64_t*)>("rsmi_dev_memory_usage_get")),
        limit_(library.function<Return(std::uint32_t, int, std::uint64_t*)>("rsmi_dev_memory_total_get")),
        energy_(library.function<Return(std::uint32_t, std::uint64_t*, float*, std::uint64_t*)>(
            "rsmi_dev_energy_count_get")) {}

  bool is_whole() const { return init_ && count_ && pci_ && unique_ && name_ && error_; }

  Result<std::vector<VendorGpu>> gpus() const {
    std::uint32_t count = 0;
    if (const Return status = init_(0)) return failure("rsmi_init", status);
    if (const Return status = count_(&count)) return failure("rsmi_num_monitor_devices", status);
    std::vector<VendorGpu> gpus;
    for (std::uint32_t index = 0; index < count; ++index) {
      std::uint64_t place = 0, unique = 0;
      if (const Return status = pci_(index, &place)) return failure("rsmi_dev_pci_id_get", status);
      std::array<char, 128> name{};
      (void)name_(index, name.data(), name.size() - 1);
      // Bits 28 to 31 number the partitions of one device.
      const std::string bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", place >> 32, place >> 8 & 0xff,
                                             place >> 3 & 0x1f, place & 7);
      const bool has_unique = unique_(index, &unique) == 0 && unique != 0;
      gpus.push_back({static_cast<int>(index), bus_id, has_unique ? fmt::format("GPU-{:016x}", unique) : "",
                      name.data()});
    }
    return gpus;
  }

  GpuReading read(const VendorGpu& gpu) const {
    constexpr std::uint32_t kPercent = 100;
    constexpr int kVram = 0;
    constexpr double kMicrojoules = 1e6;
    const auto index = static_cast<std::uint32_t>(gpu.index);
    GpuReading reading{gpu};
    std::uint32_t percent = 0;
    if (busy_ && busy_(index, &percent) == 0 && percent <= kPercent)
      reading.busy_ratio = static_cast<double>(percent) / kPercent;
    std::uint64_t bytes = 0, counter = 0, time = 0;
    if (memory_ && memory_(index, kVram, &bytes) == 0 && std::in_range<std::int64_t>(bytes))
      reading.memory_bytes = static_cast<std::int64_t>(bytes);
    if (limit_ && limit_(index, kVram, &bytes) == 0 && std::in_range<std::int64_t>(bytes))
      reading.memory_limit_bytes = static_cast<std::int64_t>(bytes);
    float microjoules = 0;  // of one count
    if (energy_ && energy_(index, &counter, &microjoules, &time) == 0 && counter > 0 && microjoules > 0)
      reading.joules = static_cast<double>(counter) * static_cast<double>(microjoules) / kMicrojoules;
    return reading;
  }

 private:
  tl::unexpected<Error> failure(const char* call, Return status) const {
    const char* text = nullptr;
    const bool has_text = error_(status, &text) == 0 && text != nullptr;
    return fail(ErrorCode::kUnavailable,
                std::string(call) + ": " + (has_text ? text : std::to_string(status)));
  }

  Return (*init_)(std::uint64_t);
  Return (*count_)(std::uint32_t*);
  Return (*pci_)(std::uint32_t, std::uint64_t*);
  Return (*unique_)(std::uint32_t, std::uint64_t*);
  Return (*name_)(std::uint32_t, char*, std::size_t);
  Return (*error_)(Return, const char**);
  Return (*busy_)(std::uint32_t, std::uint32_t*);
  Return (*memory_)(std::uint32_t, int, std::uint64_t*);
  Return (*limit_)(std::uint32_t, int, std::uint64_t*);
  Return (*energy_)(std::uint32_t, std::uint64_t*, float*, std::uint64_t*);
};

class RocmSmiMeter : public GpuMeter {
 public:
  static Result<std::unique_ptr<RocmSmiMeter>> open(const std::string& name) {
    DDL_ASSIGN(library, SharedLibrary::load(name));
    const RocmSmi smi(library);
    if (!smi.is_whole())
      return fail(ErrorCode::kUnavailable, library.path() + " lacks a function of ROCm SMI");
    auto gpus = smi.gpus();
    if (!gpus) return fail(std::move(gpus.error()).during(library.path()));
    return std::unique_ptr<RocmSmiMeter>(new RocmSmiMeter(smi, *std::move(gpus)));
  }

  std::vector<GpuReading> read() override {
    std::vector<GpuReading> readings;
    for (const VendorGpu& gpu : gpus_) readings.push_back(smi_.read(gpu));
    return readings;
  }
  const std::vector<VendorGpu>& gpus() const { return gpus_; }

 private:
  RocmSmiMeter(const RocmSmi& smi, std::vector<VendorGpu> gpus) : smi_(smi), gpus_(std::move(gpus)) {}

  RocmSmi smi_;
  std::vector<VendorGpu> gpus_;
};

}  // namespace

Result<std::vector<VendorGpu>> ask_rocm_smi(const std::string& name) {
  DDL_ASSIGN(meter, RocmSmiMeter::open(name));
  return meter->gpus();
}

Result<std::unique_ptr<GpuMeter>> open_rocm_smi_meter(const std::string& name) {
  return RocmSmiMeter::open(name);
}

}  // namespace ddl::affinity
