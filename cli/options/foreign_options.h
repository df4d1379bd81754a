// Options of horovodrun, mpirun, srun and torchrun that ddlrun does not have. People type them out of habit: each gets a
// hint, or a note that it changes nothing.
#pragma once

#include <span>
#include <string_view>

#include "cli/options/option_table.h"

namespace ddl::cli {

/// Those of horovodrun 0.28.1 are complete with option_table().
std::span<const OptionEntry> foreign_options();

/// A key of horovodrun's configuration file that stands in a group of keys.
struct GroupKey {
  std::string_view group;     ///< "autotune"
  std::string_view key;       ///< "log-file"
  std::string_view spelling;  ///< of the option that it means: "--autotune-log-file"
};

/// Every key in a group that horovodrun 0.28.1 reads.
std::span<const GroupKey> horovodrun_keys();

}  // namespace ddl::cli
