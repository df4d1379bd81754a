#include "templates/lint/slurm_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace ddl::templates {
namespace {

using Letter = std::pair<char, std::string_view>;

// Of srun and sbatch together: a letter that both have means the same, except -W.
constexpr std::array<Letter, 43> kLetters = {{
    {'A', "--account"},
    {'B', "--extra-node-info"},
    {'C', "--constraint"},
    {'D', "--chdir"},
    {'E', "--preserve-env"},
    {'F', "--nodefile"},
    {'G', "--gpus"},
    {'H', "--hold"},
    {'I', "--immediate"},
    {'J', "--job-name"},
    {'K', "--kill-on-bad-exit"},
    {'L', "--licenses"},
    {'M', "--clusters"},
    {'N', "--nodes"},
    {'O', "--overcommit"},
    {'Q', "--quiet"},
    {'S', "--core-spec"},
    {'T', "--threads"},
    {'V', "--version"},
    {'W', "--wait"},
    {'X', "--disable-status"},
    {'Z', "--no-allocate"},
    {'a', "--array"},
    {'b', "--begin"},
    {'c', "--cpus-per-task"},
    {'d', "--dependency"},
    {'e', "--error"},
    {'h', "--help"},
    {'i', "--input"},
    {'k', "--no-kill"},
    {'l', "--label"},
    {'m', "--distribution"},
    {'n', "--ntasks"},
    {'o', "--output"},
    {'p', "--partition"},
    {'q', "--qos"},
    {'r', "--relative"},
    {'s', "--oversubscribe"},
    {'t', "--time"},
    {'u', "--unbuffered"},
    {'v', "--verbose"},
    {'w', "--nodelist"},
    {'x', "--exclude"},
}};

// Options that take no value, or take it only after "=": the following word does not belong to them.
constexpr std::array<std::string_view, 47> kWithoutValue = {"--compress",       "--contiguous",
                                                            "--disable-status", "--exact",
                                                            "--exclusive",      "--get-user-env",
                                                            "--help",           "--hold",
                                                            "--ignore-pbs",     "--immediate",
                                                            "--interactive",    "--kill-on-bad-exit",
                                                            "--label",          "--multi-prog",
                                                            "--nice",           "--no-allocate",
                                                            "--no-bell",        "--no-kill",
                                                            "--no-requeue",     "--overcommit",
                                                            "--overlap",        "--oversubscribe",
                                                            "--parsable",       "--preserve-env",
                                                            "--propagate",      "--pty",
                                                            "--quiet",          "--quit-on-interrupt",
                                                            "--reboot",         "--requeue",
                                                            "--resv-ports",     "--send-libs",
                                                            "--share",          "--spread-job",
                                                            "--stepmgr",        "--test-only",
                                                            "--unbuffered",     "--usage",
                                                            "--use-min-nodes",  "--verbose",
                                                            "--version",        "--wait-for-children",
                                                            "--whole",          "--x11",
                                                            "--bcast",          "--external",
                                                            "--debugger-test"};

// Long options of Slurm 22.05 to 24.11, as its programs take and refuse them.
constexpr std::array<std::string_view, 106> kOfBoth = {"--account",
                                                       "--acctg-freq",
                                                       "--bb",
                                                       "--bbf",
                                                       "--begin",
                                                       "--chdir",
                                                       "--cluster",
                                                       "--cluster-constraint",
                                                       "--clusters",
                                                       "--comment",
                                                       "--constraint",
                                                       "--container",
                                                       "--context",
                                                       "--contiguous",
                                                       "--core-spec",
                                                       "--cores-per-socket",
                                                       "--cpu-freq",
                                                       "--cpus-per-gpu",
                                                       "--cpus-per-task",
                                                       "--deadline",
                                                       "--delay-boot",
                                                       "--dependency",
                                                       "--distribution",
                                                       "--error",
                                                       "--exclude",
                                                       "--exclusive",
                                                       "--export",
                                                       "--extra",
                                                       "--extra-node-info",
                                                       "--get-user-env",
                                                       "--gid",
                                                       "--gpu-bind",
                                                       "--gpu-freq",
                                                       "--gpus",
                                                       "--gpus-per-node",
                                                       "--gpus-per-socket",
                                                       "--gpus-per-task",
                                                       "--gres",
                                                       "--gres-flags",
                                                       "--help",
                                                       "--hint",
                                                       "--hold",
                                                       "--input",
                                                       "--job-name",
                                                       "--jobid",
                                                       "--licenses",
                                                       "--mail-type",
                                                       "--mail-user",
                                                       "--mcs-label",
                                                       "--mem",
                                                       "--mem-bind",
                                                       "--mem-per-cpu",
                                                       "--mem-per-gpu",
                                                       "--mincpus",
                                                       "--network",
                                                       "--nice",
                                                       "--no-kill",
                                                       "--nodefile",
                                                       "--nodelist",
                                                       "--nodes",
                                                       "--ntasks",
                                                       "--ntasks-per-core",
                                                       "--ntasks-per-gpu",
                                                       "--ntasks-per-node",
                                                       "--ntasks-per-socket",
                                                       "--ntasks-per-tres",
                                                       "--open-mode",
                                                       "--output",
                                                       "--overcommit",
                                                       "--oversubscribe",
                                                       "--partition",
                                                       "--power",
                                                       "--prefer",
                                                       "--priority",
                                                       "--profile",
                                                       "--propagate",
                                                       "--qos",
                                                       "--quiet",
                                                       "--reboot",
                                                       "--reservation",
                                                       "--resv-ports",
                                                       "--segment",
                                                       "--share",
                                                       "--signal",
                                                       "--sockets-per-node",
                                                       "--spread-job",
                                                       "--stepmgr",
                                                       "--switches",
                                                       "--tasks-per-node",
                                                       "--test-only",
                                                       "--thread-spec",
                                                       "--threads-per-core",
                                                       "--time",
                                                       "--time-min",
                                                       "--tmp",
                                                       "--tres-bind",
                                                       "--tres-per-task",
                                                       "--uid",
                                                       "--umask",
                                                       "--usage",
                                                       "--use-min-nodes",
                                                       "--verbose",
                                                       "--version",
                                                       "--wait",
                                                       "--wckey",
                                                       "--x11"};
constexpr std::array<std::string_view, 10> kOfSbatch = {
    "--array",      "--batch",    "--export-file", "--ignore-pbs",     "--kill-on-invalid-dep",
    "--no-requeue", "--parsable", "--requeue",     "--wait-all-nodes", "--wrap"};
constexpr std::array<std::string_view, 34> kOfSrun = {"--accel-bind",
                                                      "--bcast",
                                                      "--bcast-exclude",
                                                      "--compress",
                                                      "--cpu-bind",
                                                      "--debugger-test",
                                                      "--disable-status",
                                                      "--epilog",
                                                      "--exact",
                                                      "--external",
                                                      "--het-group",
                                                      "--immediate",
                                                      "--interactive",
                                                      "--kill-on-bad-exit",
                                                      "--label",
                                                      "--mpi",
                                                      "--msg-timeout",
                                                      "--multi-prog",
                                                      "--no-allocate",
                                                      "--overlap",
                                                      "--pack-group",
                                                      "--preserve-env",
                                                      "--prolog",
                                                      "--pty",
                                                      "--quit-on-interrupt",
                                                      "--relative",
                                                      "--send-libs",
                                                      "--slurmd-debug",
                                                      "--task-epilog",
                                                      "--task-prolog",
                                                      "--threads",
                                                      "--unbuffered",
                                                      "--wait-for-children",
                                                      "--whole"};

std::span<const std::string_view> own_options(SlurmProgram program) {
  if (program == SlurmProgram::kSbatch) return kOfSbatch;
  return kOfSrun;
}

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view long_name(char letter) {
  const auto* found =
      std::find_if(kLetters.begin(), kLetters.end(), [&](const Letter& one) { return one.first == letter; });
  return found == kLetters.end() ? std::string_view() : found->second;
}

bool takes_value(std::string_view name, SlurmProgram program) {
  if (name == "--wait") return program == SlurmProgram::kSrun;
  return std::find(kWithoutValue.begin(), kWithoutValue.end(), name) == kWithoutValue.end();
}

class OptionReader {
 public:
  OptionReader(std::span<const std::string> words, SlurmProgram program, int line)
      : words_(words), program_(program), line_(line) {}

  SlurmOptions read() {
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_];
      if (word.size() < 2 || word[0] != '-') break;
      ++at_;
      if (word == "--") break;
      if (word[1] == '-')
        read_long(word);
      else
        read_letters(word.substr(1));
    }
    result_.used = at_;
    return std::move(result_);
  }

 private:
  void add(std::string_view name, std::string_view value) {
    result_.options.push_back({std::string(name), std::string(value), line_});
  }
  std::string_view next_word() { return at_ < words_.size() ? std::string_view(words_[at_++]) : ""; }

  void read_long(std::string_view word) {
    const std::size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    // Other spellings that Slurm takes.
    if (name == "--cpu_bind") name = "--cpu-bind";
    if (name == "--tasks-per-node") name = "--ntasks-per-node";
    if (equals != std::string_view::npos)
      add(name, word.substr(equals + 1));
    else
      add(name, takes_value(name, program_) ? next_word() : "");
  }

  /// -vn4, -n 4, -K1.
  void read_letters(std::string_view letters) {
    while (!letters.empty()) {
      const std::string_view name = long_name(letters[0]);
      if (name.empty()) return add("-" + std::string(letters), "");
      letters.remove_prefix(1);
      // Of the options with an optional value, these take one that is joined to the letter.
      const bool joins = name == "--kill-on-bad-exit" || name == "--immediate" || name == "--no-kill";
      if (joins || (takes_value(name, program_) && !letters.empty())) return add(name, letters);
      if (takes_value(name, program_)) return add(name, next_word());
      add(name, "");
    }
  }

  std::span<const std::string> words_;
  SlurmProgram program_;
  int line_;
  std::size_t at_ = 0;
  SlurmOptions result_;
};

}  // namespace

OptionNameCheck check_option_name(std::string_view name, SlurmProgram program) {
  const SlurmProgram other = program == SlurmProgram::kSbatch ? SlurmProgram::kSrun : SlurmProgram::kSbatch;
  const std::array<std::span<const std::string_view>, 2> known = {kOfBoth, own_options(program)};
  if (is_in(known[0], name) || is_in(known[1], name)) return {};
  OptionNameCheck check;
  constexpr std::size_t kMaxLength = 64;
  if (name.size() > kMaxLength) {
    check.name = OptionName::kUnknown;
    return check;
  }
  for (const auto& names : known) {
    for (const std::string_view one : names) {
      if (one.starts_with(name)) check.close.push_back(one);
    }
  }
  // Both programs take the beginning of a name that no other name has.
  if (check.close.size() == 1) return {};
  if (!check.close.empty()) {
    check.name = OptionName::kAmbiguous;
    return check;
  }
  if (is_in(own_options(other), name)) {
    check.name = OptionName::kOtherPrograms;
    return check;
  }
  check.name = OptionName::kUnknown;
  constexpr std::size_t kLong = 8;
  int closest = name.size() > kLong ? 2 : 1;
  for (const auto& names : known) {
    for (const std::string_view one : names) {
      const int distance = edit_distance(name, one);
      if (distance > closest) continue;
      if (distance < closest) check.close.clear();
      closest = distance;
      check.close.push_back(one);
    }
  }
  return check;
}

SlurmOptions read_slurm_options(std::span<const std::string> words, SlurmProgram program, int line) {
  return OptionReader(words, program, line).read();
}

std::vector<std::string> split_directive(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
    if (quote == '\0' && blank) {
      in_word = false;
      continue;
    }
    if (quote == '\0' && c == '#') break;
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\\') {
      if (++i < text.size()) words.back() += text[i];
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace ddl::templates
