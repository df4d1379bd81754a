// Options of horovodrun, mpirun, srun and torchrun that ddlrun does not have, but users may type out of habit: each
// gets a hint, or a note that it changes nothing.
#pragma once

#include <span>
#include <string_view>

#include "cli/options/option_table.h"

namespace ddl::cli {

/// Together with option_table() it contains every option of horovodrun 0.28.1.
std::span<const OptionEntry> foreign_options();

/// A key of horovodrun's configuration file that belongs to a group of keys.
struct GroupKey {
  std::string_view group;     ///< "autotune"
  std::string_view key;       ///< "log-file"
  std::string_view spelling;  ///< of the corresponding option: "--autotune-log-file"
};

/// Every key in a group that horovodrun 0.28.1 reads.
std::span<const GroupKey> horovodrun_keys();

}  // namespace ddl::cli
