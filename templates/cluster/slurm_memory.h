// Sizes of memory as Slurm writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ddl::templates {

/// Megabytes, rounded up, of what sbatch's --mem takes: a whole number, with K, M, G or T, in megabytes without. nullopt for
/// anything else, and for 0, which is all that a node has.
std::optional<std::int64_t> slurm_megabytes(std::string_view text);

}  // namespace ddl::templates
