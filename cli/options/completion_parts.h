// What the completions of all shells are made of: what kind of value each option takes, and the options by how they take
// it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/option_table.h"

namespace ddl::cli {

/// What the value of an option is.
enum class ValueKind { kNone, kWords, kFile, kDirectory, kHosts, kSite, kOther };
ValueKind kind_of(const OptionEntry& entry);

/// The words that the value may be, of which --help names few as "slot|node".
std::vector<std::string> words_of(const OptionEntry& entry);
/// The same with blanks between them.
std::string words_of_option(const OptionEntry& entry);

/// How many words behind an option are its value: one; one or none; NAME and VALUE, or NAME=VALUE.
enum class Arity { kNone, kOne, kOptional, kTwo };
/// All spellings of the options with this arity, with a separator: "-x | --foo".
std::string spellings_with(Arity arity, std::string_view separator);

// In all shells the hosts are those of the hostfile that the command line names, else those of the Slurm job, else those
// that the shell knows.

/// The options that name a hostfile, each followed by end: "-hostfile=* | --hostfile=*".
std::string hostfile_patterns(std::string_view separator, std::string_view end);
/// Arguments of "sed -n" that take the name from each line of a hostfile: [2001:db8::1]:4, node[1-3]:4.
extern const std::string_view kNameOfLine;

/// The script with each name, such as "@ONE@", replaced by its text.
std::string filled(std::string_view script,
                   const std::vector<std::pair<std::string_view, std::string>>& parts);

}  // namespace ddl::cli
