// Who runs collectives: the words of DDL_CPU_OPERATIONS and DDL_GPU_OPERATIONS, and of ddlrun's options.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddl::contract {

/// On memory of the host.
enum class CpuOperations : std::uint8_t {
  kDdl,  ///< libddl's own
  kMpi,  ///< the site's MPI
};

/// On memory of GPUs.
enum class GpuOperations : std::uint8_t {
  kAuto,  ///< NCCL or RCCL where it can be used, else in a GPU that the ranks share, or through the host's memory
  kNccl,    ///< NCCL or RCCL; an error where it cannot be used
  kStaged,  ///< through the memory of the host
};

template <class Operations>
struct OperationsName {
  Operations operations;
  const char* name;
};
inline constexpr std::array kCpuOperations = {OperationsName<CpuOperations>{CpuOperations::kDdl, "ddl"},
                                              OperationsName<CpuOperations>{CpuOperations::kMpi, "mpi"}};
inline constexpr std::array kGpuOperations = {
    OperationsName<GpuOperations>{GpuOperations::kAuto, "auto"},
    OperationsName<GpuOperations>{GpuOperations::kNccl, "nccl"},
    OperationsName<GpuOperations>{GpuOperations::kStaged, "staged"}};

/// The variables with which NCCL and RCCL combine in the same way in every run on the same ranks and GPUs, for
/// DDL_DETERMINISTIC=1. The number of blocks of a kernel (CTAs) decides how a buffer is cut.
struct NcclVariable {
  const char* name;
  const char* value;
};
inline constexpr std::array kDeterministicNccl = {
    NcclVariable{"NCCL_ALGO", "Ring"}, NcclVariable{"NCCL_PROTO", "Simple"},
    NcclVariable{"NCCL_NVLS_ENABLE", "0"}, NcclVariable{"NCCL_MIN_CTAS", "16"},
    NcclVariable{"NCCL_MAX_CTAS", "16"}};

/// Static storage.
constexpr const char* cpu_operations_name(CpuOperations operations) {
  for (const auto& known : kCpuOperations) {
    if (known.operations == operations) return known.name;
  }
  return "?";
}

/// nullopt for another word.
constexpr std::optional<CpuOperations> parse_cpu_operations(std::string_view name) {
  for (const auto& known : kCpuOperations) {
    if (name == known.name) return known.operations;
  }
  return std::nullopt;
}
constexpr std::optional<GpuOperations> parse_gpu_operations(std::string_view name) {
  for (const auto& known : kGpuOperations) {
    if (name == known.name) return known.operations;
  }
  return std::nullopt;
}

}  // namespace ddl::contract
