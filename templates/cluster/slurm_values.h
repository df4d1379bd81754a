// How Slurm writes quantities: lengths of time (--time), sizes of memory (--mem), signals (--signal), and generic resources (GRES,
// for GPUs); and whether it would refuse the value of an option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddl::templates {

// Lengths of time as Slurm writes them.

/// Whole minutes, rounded up, of what sbatch's --time takes: minutes, minutes:seconds, hours:minutes:seconds,
/// days-hours, days-hours:minutes or days-hours:minutes:seconds. nullopt for anything else, also for words such as
/// UNLIMITED.
std::optional<int> slurm_minutes(std::string_view text);

/// Slurm's form of a length of time with units, of which sbatch takes none: "2:00:00" of "2h", "1-12:00:00" of "1d12h",
/// "0:45:00" of "45m" or "45min". nullopt for anything else.
std::optional<std::string> slurm_time_of(std::string_view text);

// Sizes of memory as Slurm writes them.

/// Megabytes, rounded up, of what sbatch's --mem takes: a whole number, with K, M, G or T, or in megabytes without a
/// unit. nullopt for anything else, and for 0, which means all memory of a node.
std::optional<std::int64_t> slurm_megabytes(std::string_view text);

// Values that sbatch refuses. What a site's plugin adds is not known here.

/// Why the value of this option of sbatch ("--mem", "--array", ...) is wrong: "'lots' is not a size of memory: ...".
/// "" if it is right, or if the option's values are not known here. Pure.
std::string wrong_slurm_value(std::string_view option, std::string_view value);

// Signals as --signal names them.

/// "USR1" of "B:USR1@60", "SIGUSR1" or "10": the signal's name without SIG, or its number.
std::string_view signal_of(std::string_view value);

/// The same if Slurm sends it to the script's shell alone, by B:; otherwise "".
std::string_view shells_signal(std::string_view value);

// Generic resources, as Slurm writes them.

/// GPUs, of all types together, in a node's list such as "gpu:a100:4(S:0-1),gpu:v100:2,nvme:1". An item that is
/// not understood counts as none; the result is at most 65536.
int gpus_of_gres(std::string_view gres);

}  // namespace ddl::templates
