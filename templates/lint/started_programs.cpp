#include "templates/lint/started_programs.h"

#include <algorithm>
#include <array>

namespace ddl::templates {
namespace {

using Names = std::span<const std::string_view>;

bool is_name_in(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A program that starts the one behind its own options and words.
struct Prefix {
  std::string_view name;
  std::string_view with_value;  ///< letters of options whose value is the next word
  std::size_t words = 0;        ///< of its own, in front of the program
};
constexpr std::array<Prefix, 12> kPrefixes = {{{"env", "uCS"},
                                               {"exec", "a"},
                                               {"time", "fo"},
                                               {"nohup", ""},
                                               {"command", ""},
                                               {"nice", "n"},
                                               {"setsid", ""},
                                               {"stdbuf", "ioe"},
                                               {"unbuffer", ""},
                                               {"timeout", "sk", 1},
                                               {"numactl", "NmCil"},
                                               {"ionice", "cn"}}};

/// Behind the prefix's options and words.
Words behind_prefix(const Prefix& prefix, Words words) {
  while (!words.empty() && words.front().size() > 1 && words.front().starts_with('-')) {
    const std::string& option = words.front();
    const bool takes_next = option.size() == 2 && prefix.with_value.find(option[1]) != std::string_view::npos;
    words = words.subspan(std::min<std::size_t>(takes_next ? 2 : 1, words.size()));
  }
  return words.subspan(std::min(prefix.words, words.size()));
}

bool is_assignment(std::string_view word) {
  return word.find('=') != std::string_view::npos && !word.starts_with('-');
}

/// What "singularity exec" or another runtime starts; empty if it is not known. words: behind the runtime's name.
Words words_in_container(std::string_view runtime, Words words) {
  constexpr std::array<std::string_view, 16> kWithValue = {
      "-B",    "--bind", "--env",     "--env-file", "-H", "--home",  "--pwd", "-W",
      "--cwd", "-S",     "--workdir", "--overlay",  "-o", "--mount", "-i",    "--image"};
  if (runtime == "shifter") return behind_options(words, kWithValue);
  if (words.empty() || words.front() != "exec") return {};
  const Words image = behind_options(words.subspan(1), kWithValue);
  return image.empty() ? image : image.subspan(1);
}

/// What "conda run" and its like start; empty for other words.
Words words_in_environment(Words words) {
  constexpr std::array<std::string_view, 7> kRunners = {"conda",  "mamba", "micromamba", "poetry",
                                                        "pipenv", "pixi",  "uv"};
  constexpr std::array<std::string_view, 8> kWithValue = {"-n",    "--name", "-p",     "--prefix",
                                                          "--cwd", "-e",     "--with", "--python"};
  if (words.size() < 3 || words[1] != "run" || !is_name_in(kRunners, file_name_of(words.front()))) return {};
  return behind_options(words.subspan(2), kWithValue);
}

void add_started(Words words, int depth, std::vector<std::vector<std::string>>& programs) {
  constexpr int kMaxDepth = 3;
  words = without_prefixes(words);
  if (words.empty() || depth > kMaxDepth) return;
  if (const std::string_view text = text_for_shell(words); !text.empty()) {
    for (const ShellCommand& command : read_shell(text).commands)
      add_started(texts_of(command.words), depth + 1, programs);
    return;
  }
  programs.emplace_back(words.begin(), words.end());
  const Words inner = is_container(words) ? words_in_container(file_name_of(words.front()), words.subspan(1))
                                          : words_in_environment(words);
  add_started(inner, depth + 1, programs);
}

}  // namespace

std::vector<std::string> texts_of(const std::vector<ShellWord>& words) {
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const ShellWord& word : words) texts.push_back(word.text);
  return texts;
}

Words without_prefixes(Words words) {
  while (!words.empty()) {
    const std::string_view name = file_name_of(words.front());
    const auto* prefix =
        std::find_if(kPrefixes.begin(), kPrefixes.end(), [&](const Prefix& one) { return one.name == name; });
    // It only asks where the program is.
    if (name == "command" && words.size() > 1 && (words[1] == "-v" || words[1] == "-V")) break;
    if (prefix != kPrefixes.end())
      words = behind_prefix(*prefix, words.subspan(1));
    else if (is_assignment(words.front()))
      words = words.subspan(1);
    else
      break;
  }
  return words;
}

Words behind_options(Words words, Names with_value) {
  while (!words.empty() && words.front().starts_with('-')) {
    const bool takes_next = is_name_in(with_value, words.front());
    words = words.subspan(std::min<std::size_t>(takes_next ? 2 : 1, words.size()));
  }
  return words;
}

Words program_of_mpirun(Words words) {
  constexpr std::array<std::string_view, 24> kWithValue = {
      "-n",       "-np", "-c",         "-N",        "-H",           "-host",     "--host",  "--n",
      "--np",     "-f",  "--hostfile", "-hostfile", "-ppn",         "--map-by",  "-map-by", "--bind-to",
      "-bind-to", "-x",  "--npernode", "-npernode", "-machinefile", "--rank-by", "--ppn",   "-hosts"};
  return behind_options(words, kWithValue);
}

bool is_mpirun(std::string_view word) {
  constexpr std::array<std::string_view, 6> kNames = {"mpirun",     "mpiexec", "mpiexec.hydra",
                                                      "mpirun_rsh", "prterun", "orterun"};
  return is_name_in(kNames, file_name_of(word));
}

bool is_container(Words words) {
  constexpr std::array<std::string_view, 9> kRuntimes = {
      "singularity", "apptainer", "shifter", "podman", "docker", "podman-hpc", "enroot", "sarus", "ch-run"};
  return !words.empty() && is_name_in(kRuntimes, file_name_of(words.front()));
}

std::string_view text_for_shell(Words words) {
  if (words.empty() || !is_shell(words.front())) return "";
  const auto option = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return !word.starts_with('-') || (!word.starts_with("--") && word.ends_with('c'));
  });
  const bool has_text = option != words.end() && option->starts_with('-') && option + 1 != words.end();
  return has_text ? std::string_view(*(option + 1)) : "";
}

std::vector<std::vector<std::string>> started_programs(Words words) {
  std::vector<std::vector<std::string>> programs;
  add_started(words, 0, programs);
  return programs;
}

Words module_of_python(Words program) {
  if (program.empty() || !file_name_of(program.front()).starts_with("python")) return {};
  constexpr std::size_t kNoLetter = std::string::npos;
  Words words = program.subspan(1);
  while (!words.empty() && words.front().starts_with('-')) {
    const std::string& option = words.front();
    // The first letter that has a value takes the rest of its word, or else the next word.
    const std::size_t letter = option.starts_with("--") ? kNoLetter : option.find_first_of("cmWX", 1);
    const bool takes_next =
        option == "--check-hash-based-pycs" || (letter != kNoLetter && letter + 1 == option.size());
    if (letter != kNoLetter && option[letter] == 'm' && takes_next) return words.subspan(1);
    if (letter != kNoLetter && (option[letter] == 'm' || option[letter] == 'c')) return {};
    words = words.subspan(std::min<std::size_t>(takes_next ? 2 : 1, words.size()));
  }
  return {};
}

NodeLauncher node_launcher(Words program) {
  if (program.empty()) return NodeLauncher::kNone;
  const std::string_view name = file_name_of(program.front());
  if (name == "torchrun") return NodeLauncher::kTorchrun;
  if (name == "deepspeed") return NodeLauncher::kDeepspeed;
  if (name == "horovodrun") return NodeLauncher::kHorovodrun;
  if (name == "accelerate" && program.size() > 1 && program[1] == "launch") return NodeLauncher::kAccelerate;
  if (const Words module = module_of_python(program); !module.empty()) {
    const std::string_view of = module.front();
    if (of == "torch.distributed.run" || of == "torch.distributed.launch") return NodeLauncher::kTorchrun;
    if (of == "accelerate.commands.launch") return NodeLauncher::kAccelerate;
  }
  return NodeLauncher::kNone;
}

std::string_view name_of(NodeLauncher launcher) {
  switch (launcher) {
    case NodeLauncher::kTorchrun: return "torchrun";
    case NodeLauncher::kAccelerate: return "accelerate launch";
    case NodeLauncher::kDeepspeed: return "deepspeed";
    case NodeLauncher::kHorovodrun: return "horovodrun";
    case NodeLauncher::kNone: break;
  }
  return "";
}

}  // namespace ddl::templates
