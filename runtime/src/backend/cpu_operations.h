// Which backend carries out collectives on host memory: what there is to choose from.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace ddl::runtime {

enum class CpuOperations {
  kDdl,  ///< libddl's own
  kMpi,  ///< the site's MPI
};

struct CpuOperationsName {
  CpuOperations operations;
  const char* name;
};
inline constexpr std::array kCpuOperations = {CpuOperationsName{CpuOperations::kDdl, "ddl"},
                                              CpuOperationsName{CpuOperations::kMpi, "mpi"}};

constexpr const char* cpu_operations_name(CpuOperations operations) {
  for (const auto& known : kCpuOperations) {
    if (known.operations == operations) return known.name;
  }
  return "?";
}
constexpr std::optional<CpuOperations> parse_cpu_operations(std::string_view name) {
  for (const auto& known : kCpuOperations) {
    if (name == known.name) return known.operations;
  }
  return std::nullopt;
}

}  // namespace ddl::runtime
