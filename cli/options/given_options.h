// The options of the command line and the configuration file, still as text, and the position at which each was
// given. Unknown and unavailable options are refused here.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/options/option_table.h"

namespace ddl::cli {

// The words of argv.

/// An option as it was typed.
struct TypedOption {
  const OptionEntry* entry;               ///< null: there is no such option, and name is the whole word
  std::string name;                       ///< "-H", "--hosts", without an attached value
  std::optional<std::string> value = {};  ///< nullopt: of a flag, or missing
  bool is_bound = false;                  ///< "=" binds the value to the option, or to its name in NAME=VALUE
};

/// The options of ddlrun and the words of the command.
struct SplitArgv {
  std::vector<TypedOption> options;  ///< in the order typed
  std::vector<std::string> command;  ///< untouched
  bool ends_with_dashes = false;     ///< "--" stands before the command
};

/// The command starts at the first word that is neither an option nor an option's value, or after "--"; its words are
/// not parsed. option_table() states which options take a value. A value is the rest of the word ("-np=4", "-xNAME")
/// or the next word, which may start with a dash but is never "--"; an optional value that is not there is "". An
/// unknown option has no value. So has a word that begins with a dash or a quote of a word processor, which nobody
/// names a program with. With --slurm, sbatch_spellings() are sbatch's, and an unknown option has the value of the one
/// that it is close to. Pure; words are those after argv[0].
SplitArgv split_argv(std::span<const std::string> words);

/// The same for the words behind srun, whose letters are sbatch's. Pure.
SplitArgv split_srun(std::span<const std::string> words);

/// The command line as the user typed it, with each unknown option replaced by the one that it is close to. Pure.
std::string corrected_line(const SplitArgv& split);

struct GivenValue {
  std::string text;       ///< "" for a flag
  std::string where;      ///< "" on the command line, else "job.yaml:3"
  std::string name = {};  ///< as it was typed: "-H", "--hosts"; "" in a file
  bool is_bound = false;  ///< as in TypedOption: no option was taken for the value
};

/// An option that is accepted but changes nothing.
struct OptionWithoutEffect {
  const OptionEntry* entry = nullptr;
  std::string name;   ///< as it was typed, or the key of a file
  std::string where;  ///< as in GivenValue
};

/// An option of a job script that does not exist or has no value.
struct WrongOption {
  Error error;
  std::string instead;  ///< "--time": what may be meant; "" if nothing is close
};

/// The values of every available option, in the order given; a flag has one for each time it was given.
class GivenOptions {
 public:
  std::vector<OptionWithoutEffect> without_effect;
  std::vector<WrongOption>
      wrong;  ///< only with --slurm: the reader of scripts reports them with wrong values

  std::vector<GivenValue>& operator[](OptionId id) { return values_[static_cast<std::size_t>(id)]; }
  const std::vector<GivenValue>& operator[](OptionId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  bool has(OptionId id) const { return !(*this)[id].empty(); }
  /// Whether it is on the command line, where options without effect are refused.
  bool is_typed(OptionId id) const;
  /// "job.yaml:3" if the option comes from there, "" if it comes from the command line or was not given.
  std::string where(OptionId id) const;

  /// As the first of its values was typed on the command line: "-H", "--hosts"; else its canonical spelling.
  std::string typed_name(OptionId id) const;

  /// Adds options of lower precedence: one that is given here, or that an option given here excludes, is dropped. A
  /// rankfile of lower precedence is not dropped for an option of binding given here: that is an error later. Of
  /// -x all are kept, those of others first.
  void complete_from(GivenOptions others);

 private:
  std::array<std::vector<GivenValue>, static_cast<std::size_t>(OptionId::kCount)> values_;
};

/// Two options that exclude each other.
struct Contradiction {
  OptionId one;
  OptionId other;
};
std::span<const Contradiction> contradictions();

/// What a rankfile says already, beside --map-by and --ranks-per-node.
constexpr OptionId kSaidByRankfile[] = {OptionId::kRankBy,     OptionId::kBindTo,    OptionId::kCoresPerRank,
                                        OptionId::kReserve,    OptionId::kRankOrder, OptionId::kGpusPerRank,
                                        OptionId::kRanksPerGpu};

/// The options of a command line. Error: an option that is unknown, that is not in this version, or that lacks its
/// value; unless help or the version is requested. With --slurm these are no error, but GivenOptions::wrong. Pure.
Result<GivenOptions> collect_options(const SplitArgv& split);

/// The refusal of an option of foreign_options(). name: as it was typed, or the key of a file.
Error unavailable(const OptionEntry& entry, const std::string& name);

// --config-file: options in a YAML file.

/// The options of a file. A key is an option without its dashes, and may have "_" for "-"; horovodrun's groups
/// (params, timeline, ...) contain the same keys as in horovodrun. A flag takes true or false; an option that may be
/// repeated, or that takes a list with commas on the command line, may be a list. Pure. name: what messages call the
/// file. Error: an unknown key, a value of the wrong kind, or an option that is not in this version, each with file
/// and line.
Result<GivenOptions> read_config(std::string_view text, std::string_view name);

}  // namespace ddl::cli
