// Lengths of time as Slurm writes them.
#pragma once

#include <optional>
#include <string_view>

namespace ddl::templates {

/// Whole minutes, rounded up, of what sbatch's --time takes: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
/// days-hours:minutes or days-hours:minutes:seconds. nullopt for anything else, also for words such as UNLIMITED.
std::optional<int> slurm_minutes(std::string_view text);

}  // namespace ddl::templates
