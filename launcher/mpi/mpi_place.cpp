#include "launcher/mpi/mpi_place.h"

#include <array>
#include <optional>

#include "base/text.h"

namespace ddl::launcher {

namespace {

/// Names of rank, size, local rank and local size.
using Names = std::array<const char*, 4>;
constexpr std::array<Names, 2> kLaunchers = {
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<int> number_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  const auto number = parse_integer(found->second);
  if (!number || *number < 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Result<MpiPlace> mpi_place_of(const Environment& environment) {
  for (const Names& names : kLaunchers) {
    const auto rank = number_of(environment, names[0]), size = number_of(environment, names[1]);
    const auto local_rank = number_of(environment, names[2]), local_size = number_of(environment, names[3]);
    if (rank && size && local_rank && local_size && *rank < *size && *local_rank < *local_size)
      return MpiPlace{*rank, *size, *local_rank, *local_size};
  }
  return fail(
      ErrorCode::kUnavailable,
      "this mpirun does not say which rank a process is: neither OMPI_COMM_WORLD_RANK nor PMI_RANK and "
      "what belongs to them is set");
}

}  // namespace ddl::launcher
