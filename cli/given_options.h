// What was given for every option, still as text, and where.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/argv_prepass.h"
#include "cli/command_line_error.h"
#include "cli/option_table.h"

namespace ddl::cli {

struct GivenValue {
  std::string text;   ///< "" for a flag
  std::string where;  ///< "" on the command line, else "job.yaml:3"
};

/// An option that was accepted and changes nothing.
struct OptionWithoutEffect {
  const OptionEntry* entry = nullptr;
  std::string name;   ///< as it was typed
  std::string where;  ///< as in GivenValue
};

/// The values of every available option, in the order given; a flag has one for each time it was given.
class GivenOptions {
 public:
  std::vector<OptionWithoutEffect> without_effect;

  std::vector<GivenValue>& operator[](OptionId id) { return values_[static_cast<std::size_t>(id)]; }
  const std::vector<GivenValue>& operator[](OptionId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  bool has(OptionId id) const { return !(*this)[id].empty(); }
  /// "job.yaml:3: " if the option comes from there, "" if it comes from the command line or was not given.
  std::string origin(OptionId id) const;

  /// Takes over what these do not have. What is here wins: also over an option that contradicts it. Of -x both are
  /// kept, and those here are the later ones.
  void complete_from(GivenOptions others);

 private:
  std::array<std::vector<GivenValue>, static_cast<std::size_t>(OptionId::kCount)> values_;
};

/// Options that cannot be meant together.
struct Contradiction {
  OptionId one;
  OptionId other;
};
std::span<const Contradiction> contradictions();

/// The options of a command line. Error: an option that is unknown, that is not in this version, or that lacks its
/// value; unless help or the version is asked for. Pure.
tl::expected<GivenOptions, CommandLineError> collect_options(const SplitArgv& split);

/// The refusal of an option that is horovodrun's or another launcher's. name: as it was typed.
CommandLineError unavailable(const OptionEntry& entry, const std::string& name);

}  // namespace ddl::cli
