#include "templates/lint/slurm_options.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ddl::templates {
namespace {

using Letter = std::pair<char, std::string_view>;

// Of srun and sbatch together: a letter that both have means the same, but -W.
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

// Those that take no value, or one behind "=" only: the word that follows is not theirs.
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
    if (name == "--cpu_bind") name = "--cpu-bind";  // the older spelling, which srun still takes
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
      // Of those that may do without a value these take one that is joined to the letter.
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
