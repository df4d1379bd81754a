#include "cli/reports/start_advice.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/environment.h"
#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/this_process.h"

namespace ddl::cli {

namespace {

/// True if exec failed with this errno, and the file does not say more.
bool has_exec_error(const std::string& start_error, int error) {
  return start_error.starts_with("cannot execute ") &&
         start_error.ends_with(std::generic_category().message(error));
}

struct Suffix {
  std::string_view suffix;
  std::string_view interpreter;  ///< "" of a source file
};

constexpr Suffix kSuffixes[] = {{".py", "python3"}, {".sh", "bash"},   {".bash", "bash"}, {".jl", "julia"},
                                {".R", "Rscript"},  {".r", "Rscript"}, {".pl", "perl"},   {".lua", "lua"},
                                {".c", ""},         {".cc", ""},       {".cpp", ""},      {".cxx", ""},
                                {".cu", ""},        {".hip", ""},      {".f", ""},        {".f90", ""},
                                {".F90", ""},       {".f03", ""},      {".f08", ""},      {".rs", ""},
                                {".h", ""},         {".hpp", ""}};

const Suffix* suffix_of(std::string_view program) {
  const auto* found = std::find_if(std::begin(kSuffixes), std::end(kSuffixes), [program](const Suffix& one) {
    return program.size() > one.suffix.size() && program.ends_with(one.suffix);
  });
  return found == std::end(kSuffixes) ? nullptr : found;
}

/// How a script or source is started; "" if the name does not say it.
std::string advice_by_suffix(const std::string& program) {
  const Suffix* suffix = suffix_of(program);
  if (suffix == nullptr) return "";
  if (suffix->interpreter.empty()) return "it looks like source code: compile it, and start the program";
  return "start it with its interpreter: " + std::string(suffix->interpreter) + " " + shell_quote(program);
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && is_variable_name(word.substr(0, equals));
}

/// Words that only a shell understands.
bool is_of_shell(std::string_view word) {
  constexpr std::string_view kWords[] = {"cd",    "source", ".",    "export", "module",  "ml",   "ulimit",
                                         "unset", "alias",  "set",  "eval",   "exec",    "if",   "for",
                                         "while", "until",  "case", "conda",  "[[",      "then", "do",
                                         "umask", "let",    "trap", "wait",   "declare", "local"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string advice_if_not_found(const std::vector<std::string>& command) {
  const std::string& program = command.front();
  if (program.starts_with('~') || program.starts_with('$'))
    return "no shell has replaced " + std::string(program.starts_with('~') ? "~" : "the variable") +
           ": omit the single quotes or the backslash before it";
  if (is_assignment(program))
    return "to set a variable for the ranks: -x " + program.substr(0, program.find_first_of(" \t\n"));
  if (program.find_first_of(" \t\n;|&") != std::string::npos)
    return "the command is a single word: omit the quotes around it, or start a shell: sh -c " +
           shell_quote(program);
  if (program == "module" || program == "ml" || program == "conda")
    return "it is a function of the shell: load what the ranks need before ddlrun, which passes on its "
           "environment";
  if (is_of_shell(program))
    return "it is a word of the shell, not a program: start a shell: sh -c 'COMMANDS'";
  return "";
}

/// Options that programs seldom have themselves.
bool is_of_ddlrun(const std::string& word) {
  constexpr OptionId kOptions[] = {OptionId::kNumProc,       OptionId::kHosts,    OptionId::kHostfile,
                                   OptionId::kOversubscribe, OptionId::kLauncher, OptionId::kBindTo};
  const OptionEntry* entry = find_spelling(std::string_view(word).substr(0, word.find('=')));
  return entry != nullptr &&
         std::find(std::begin(kOptions), std::end(kOptions), entry->id) != std::end(kOptions);
}

}  // namespace

std::string start_advice(const std::string& start_error, const std::vector<std::string>& command) {
  const std::string& program = command.front();
  if (start_error.starts_with("command not found: ") || start_error.starts_with("no such file: ")) {
    const bool is_here = start_error.find("; write ./") != std::string::npos;
    return is_here ? advice_by_suffix(program) : advice_if_not_found(command);
  }
  const bool may_not_be_executed = has_exec_error(start_error, EACCES);
  if (!may_not_be_executed && !has_exec_error(start_error, ENOEXEC)) return "";
  std::string advice = advice_by_suffix(program);
  if (suffix_of(program) != nullptr && suffix_of(program)->interpreter.empty()) return advice;
  const std::string first = may_not_be_executed ? "make it executable (chmod +x)" : "begin it with a #! line";
  return first + (advice.empty() ? ", or start its interpreter, as in python3 " + shell_quote(program)
                                 : ", or " + advice);
}

std::string misplaced_option_advice(const std::vector<std::string>& command,
                                    const std::vector<std::string>& stderr_tail) {
  if (command.empty()) return "";
  const auto option = std::find_if(command.begin() + 1, command.end(), is_of_ddlrun);
  const bool complains = std::any_of(stderr_tail.begin(), stderr_tail.end(), [](const std::string& line) {
    return line.find("option") != std::string::npos || line.find("argument") != std::string::npos;
  });
  if (option == command.end() || !complains) return "";
  return *option + " stands behind " + shell_quote(command.front()) +
         " and belongs to it: options of ddlrun come before the command";
}

std::string missing_package_advice(const std::vector<std::string>& stderr_tail) {
  constexpr std::string_view kError = "ModuleNotFoundError: No module named 'ddl'";
  if (std::find(stderr_tail.begin(), stderr_tail.end(), kError) != stderr_tail.end())
    return "install the package ddl into the Python of the ranks, or start a Python that has it: " +
           document("guide/python.md");
  // PyTorch's words, of newer versions and of older ones.
  const bool is_unknown_backend =
      std::any_of(stderr_tail.begin(), stderr_tail.end(), [](const std::string& line) {
        return line.ends_with("Unknown backend type ddl") || line.ends_with("Unknown c10d backend type DDL");
      });
  if (!is_unknown_backend) return "";
  return "install the package ddl into the Python of the ranks, by which PyTorch finds the backend; PyTorch "
         "before 2.5 also needs an import of it: " +
         document("guide/pytorch.md");
}

}  // namespace ddl::cli
