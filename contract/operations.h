// Who carries out collectives on host memory: the words of DDL_CPU_OPERATIONS and of ddlrun's --cpu-operations.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace ddl::contract {

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

}  // namespace ddl::contract
