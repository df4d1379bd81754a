// Options of sbatch and srun, with their names in the long spelling.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::templates {

struct SlurmOption {
  std::string name;   ///< "--cpus-per-task", also for -c; a letter that neither program has is unchanged
  std::string value;  ///< "" where there is none
  int line = 0;       ///< its line
};

enum class SlurmProgram { kSbatch, kSrun };

struct SlurmOptions {
  std::vector<SlurmOption> options;
  std::size_t used = 0;  ///< how many of the words are options and their values
};

/// Up to the first word that is neither an option nor the value of one, or behind "--". Pure.
SlurmOptions read_slurm_options(std::span<const std::string> words, SlurmProgram program, int line);

/// Whether the program has an option of this long name, or whether it is the ambiguous beginning of several.
enum class OptionName {
  kKnown,
  kAmbiguous,      ///< "--gpu"
  kOtherPrograms,  ///< an option of srun in a directive of sbatch, or the other way round
  kUnknown,
};
struct OptionNameCheck {
  OptionName name = OptionName::kKnown;
  std::vector<std::string_view> close;  ///< names that may be meant, nearest first; empty where none is near
};
/// name: with its hyphens. An option of a site's plugin is unknown too. Pure.
OptionNameCheck check_option_name(std::string_view name, SlurmProgram program);

/// The words of a line that begins with #SBATCH, which sbatch splits by rules of its own: quotes and backslashes as
/// in a shell, and an unquoted # ends the line at any position. Pure. text: what follows #SBATCH.
std::vector<std::string> split_directive(std::string_view text);

}  // namespace ddl::templates
