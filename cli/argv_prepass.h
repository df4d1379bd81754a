// What happens to argv before CLI11 sees it: the command is cut off, and options get the one spelling CLI11 knows.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace ddl::cli {

/// ddlrun's words, apart from the command's.
struct SplitArgv {
  std::vector<std::string> options;  ///< canonical: "-np=4" and "-np 4" are both "--num-proc", "4"
  std::vector<std::string> command;  ///< untouched
  /// Of options that ddlrun refuses or takes no notice of, by canonical spelling: the spelling that was typed.
  std::map<std::string, std::string> typed;
};

/// This field spells -np, -cb and -hostfile with one dash, which CLI11 2.1 would read as -n with the value "p".
///
/// The command starts at the first word that is no option and no option's value, or after "--"; from there on nothing
/// is looked at. Which options take a value comes from option_table(). A value is the rest of the word ("-np=4",
/// "-xNAME") or the next word, whatever it looks like, but never "--". An unknown option is passed on as it is, without a
/// value: the parser will name it. Pure; words are those after argv[0].
SplitArgv split_argv(std::span<const std::string> words);

}  // namespace ddl::cli
