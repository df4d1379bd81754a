// AMD's system management interface, as its header rocm_smi.h has it.
#include <fmt/format.h>

#include <array>
#include <cstdint>

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
        error_(library.function<Return(Return, const char**)>("rsmi_status_string")) {}

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
};

}  // namespace

Result<std::vector<VendorGpu>> ask_rocm_smi(const std::string& name) {
  DDL_ASSIGN(library, SharedLibrary::load(name));
  const RocmSmi smi(library);
  if (!smi.is_whole()) return fail(ErrorCode::kUnavailable, library.path() + " lacks a function of ROCm SMI");
  auto gpus = smi.gpus();
  if (!gpus) return fail(std::move(gpus.error()).during(library.path()));
  return gpus;
}

}  // namespace ddl::affinity
