#include "cli/options/option_values.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/environment.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "cli/options/help_pages.h"
#include "contract/environment.h"
#include "contract/operations.h"
#include "launcher/job/host_list.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

namespace {

using launcher::kMaxRanks;
using launcher::LauncherChoice;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string texts_of(const std::vector<GivenValue>& values) {
  std::vector<std::string> texts;
  for (const GivenValue& value : values) texts.push_back(value.text);
  return join(texts, ", ");
}

}  // namespace

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

tl::unexpected<Error> refuse_word(std::string_view text, const std::vector<std::string>& words) {
  if (words.size() == 2) return refuse(in_quotes(text) + " is neither " + words[0] + " nor " + words[1]);
  return refuse(in_quotes(text) + " is not one of " + join(words, ", "));
}

Result<std::string> not_empty(const std::string& text) {
  if (text.empty()) return refuse("its value is empty");
  return text;
}

Result<int> parse_rank_count(std::string_view text) {
  const auto digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  const bool whole = !digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit);
  if (!whole) return refuse(in_quotes(text) + " is not a whole number of ranks");
  // A number that does not fit into an integer is too large as well.
  const auto number = parse_integer(text);
  if (text.starts_with('-') || number == 0)
    return refuse(in_quotes(text) + " is too few ranks; the minimum is 1");
  if (!number || *number > kMaxRanks) {
    return refuse(in_quotes(text) + " is too many ranks; the maximum is " + std::to_string(kMaxRanks));
  }
  return static_cast<int>(*number);
}

Result<std::vector<int>> parse_sizes(std::string_view text) {
  std::vector<int> sizes;
  for (const std::string_view part : split(text, ',')) {
    DDL_ASSIGN(size, parse_rank_count(trim(part)));
    if (std::find(sizes.begin(), sizes.end(), size) != sizes.end())
      return refuse(std::to_string(size) + " is in it twice; --repeat runs each number several times");
    sizes.push_back(size);
  }
  if (sizes.size() < 2)
    return refuse(in_quotes(text) + " is one number, and there is nothing to compare it with");
  return sizes;
}

Result<report::ScalingKind> parse_scaling_kind(std::string_view text) {
  using enum report::ScalingKind;
  return one_of<report::ScalingKind>(text, {{"strong", kStrong}, {"weak", kWeak}});
}

Result<net::SocketAddress> parse_listen_address(std::string_view text) {
  constexpr int kMaxPort = 65535;
  const auto port = parse_count(text, 0, kMaxPort);
  if (port) return net::SocketAddress::loopback().with_port(static_cast<std::uint16_t>(*port));
  auto address = net::SocketAddress::parse(text);
  if (address) return address;
  return refuse(in_quotes(text) + " is neither a port, nor an address with one, such as 192.0.2.1:9400");
}

Result<std::vector<std::string>> parse_user_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) {
    if (name.empty()) return refuse("a name of a user is empty");
    names.emplace_back(name);
  }
  return names;
}

Result<report::MetricsDetail> parse_metrics_detail(std::string_view text) {
  using enum report::MetricsDetail;
  return one_of<report::MetricsDetail>(text,
                                       {{"auto", kAuto}, {"job", kJob}, {"host", kHost}, {"rank", kRank}});
}

Result<int> parse_ranks_per_node(std::string_view text) {
  for (const std::string_view word : {"gpu", "cpu", "auto", "xpu"}) {
    if (text == word)
      return refuse(in_quotes(text) +
                    " is torchrun's; write a number, or omit it for the slots of the hosts: " +
                    "-H node1:4, or one for each CPU");
  }
  return parse_rank_count(text);
}

Result<std::pair<int, int>> parse_host_counts(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  DDL_ASSIGN(min, parse_count(text.substr(0, colon), 1, launcher::kMaxHosts));
  if (colon == text.size()) return std::pair(min, min);
  DDL_ASSIGN(max, parse_count(text.substr(colon + 1), 1, launcher::kMaxHosts));
  if (max < min) return refuse(in_quotes(text) + " has a maximum below its minimum");
  return std::pair(min, max);
}

Result<launcher::ElasticMode> parse_elastic_mode(std::string_view text) {
  return one_of<launcher::ElasticMode>(text, {{"continue", launcher::ElasticMode::kContinue},
                                              {"restart", launcher::ElasticMode::kRestart},
                                              {"off", launcher::ElasticMode::kOff}});
}

Result<launcher::ElasticUnit> parse_elastic_unit(std::string_view text) {
  return one_of<launcher::ElasticUnit>(
      text, {{"slot", launcher::ElasticUnit::kSlot}, {"host", launcher::ElasticUnit::kHost}});
}

Result<std::pair<double, double>> parse_cooldown(std::string_view text) {
  constexpr double kLongest = 3600;
  const std::size_t middle = text.find_first_of("=:, ");
  if (middle == std::string_view::npos)
    return refuse(in_quotes(text) +
                  " is one number of seconds; two are needed, the least and the most: 30 300");
  const std::string min_text(text.substr(0, middle)), max_text(text.substr(middle + 1));
  DDL_ASSIGN(min, parse_seconds(min_text, false));
  DDL_ASSIGN(max, parse_seconds(max_text, false));
  if (min < 1 || max > kLongest || max < min)
    return refuse(min_text + " to " + max_text +
                  " is no range of seconds from 1 to 3600, the least first and then the most");
  return std::pair(min, max);
}

Result<double> parse_seconds(std::string_view text, bool zero_is_allowed) {
  const auto number = parse_number(text);
  if (!number) return refuse(in_quotes(text) + " is not a number of seconds, such as 90 or 0.5");
  if (*number < 0) return refuse(in_quotes(text) + " seconds is negative");
  if (*number == 0 && !zero_is_allowed) return refuse(in_quotes(text) + " seconds leaves no time");
  if (*number > kMaxSeconds) return refuse(in_quotes(text) + " seconds is more than three years");
  return *number;
}

Result<double> parse_metrics_interval(std::string_view text) {
  constexpr double kShortest = 0.05;
  DDL_ASSIGN(seconds, parse_seconds(text, false));
  if (seconds < kShortest) return refuse(in_quotes(text) + " seconds is less than 0.05");
  return seconds;
}

Result<launcher::StdinTarget> parse_stdin_target(std::string_view text) {
  using enum launcher::StdinTarget;
  return one_of<launcher::StdinTarget>(text, {{"0", kRank0}, {"all", kAll}, {"none", kNone}});
}

Result<launcher::EnvironmentExport> parse_export(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (name.find(',') != std::string_view::npos)
    return refuse(in_quotes(text) + " looks like several variables; repeat -x for each");
  // execve(2) takes every name without "=": "some.setting" is one, though no shell can set it.
  const auto is_blank_or_control = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (name.empty() || name.front() == '-' || std::any_of(name.begin(), name.end(), is_blank_or_control))
    return refuse(in_quotes(name) + " is not the name of an environment variable");
  launcher::EnvironmentExport result{std::string(name), std::nullopt};
  if (equals != std::string_view::npos) result.value = std::string(text.substr(equals + 1));
  return result;
}

Result<launcher::EnvironmentExport> parse_cpu_operations(std::string_view text) {
  if (!contract::parse_cpu_operations(text)) {
    return refuse(in_quotes(text) + " is neither ddl (libddl itself) nor mpi (the site's MPI)");
  }
  return launcher::EnvironmentExport{contract::env::kCpuOperations, std::string(text)};
}

Result<launcher::EnvironmentExport> parse_gpu_operations(std::string_view text) {
  if (!contract::parse_gpu_operations(text)) {
    return refuse(in_quotes(text) +
                  " is neither auto, nccl (NCCL or RCCL) nor staged (through the memory of the host)");
  }
  return launcher::EnvironmentExport{contract::env::kGpuOperations, std::string(text)};
}

Result<launcher::EnvironmentExport> parse_fusion_threshold(std::string_view text) {
  constexpr int kMaxMegabytes = 1 << 20;
  DDL_ASSIGN(megabytes, parse_count(text, 0, kMaxMegabytes));
  return launcher::EnvironmentExport{contract::env::kFusionBytes,
                                     std::to_string(std::int64_t{megabytes} << 20)};
}

Result<launcher::EnvironmentExport> parse_gloo_timeout(std::string_view text) {
  DDL_ASSIGN(seconds, parse_count(text, 1, kMaxSeconds));
  return launcher::EnvironmentExport{contract::env::kHorovodGlooTimeout, std::to_string(seconds)};
}

namespace {

using launcher::Framework;
constexpr std::pair<std::string_view, Framework> kFrameworks[] = {{"auto", Framework::kAuto},
                                                                  {"torch", Framework::kTorch},
                                                                  {"tensorflow", Framework::kTensorflow},
                                                                  {"horovod", Framework::kHorovod},
                                                                  {"deepspeed", Framework::kDeepspeed},
                                                                  {"jax", Framework::kJax},
                                                                  {"mxnet", Framework::kMxnet},
                                                                  {"mpi", Framework::kMpi},
                                                                  {"none", Framework::kNone}};

}  // namespace

std::vector<std::string> words_of_value(OptionId id) {
  std::vector<std::string> words;
  switch (id) {
    case OptionId::kBindTo: return {"auto", "gpu", "numa", "l3", "socket", "core", "pu", "none"};
    case OptionId::kMapBy:
      return {"slot", "node", "socket", "package", "numa", "l3", "l3cache", "core", "pu", "hwthread"};
    case OptionId::kFormat:
      return {"table", "map_cpu",    "mask_cpu", "srun", "taskset",
              "hwloc", "omp_places", "rankfile", "json", "svg"};
    case OptionId::kHelp: return help_topics();
    case OptionId::kFramework:
      for (const auto& [word, framework] : kFrameworks) words.emplace_back(word);
      return words;
    default: return {};
  }
}

Result<launcher::Framework> parse_framework(std::string_view text) {
  for (const auto& [word, framework] : kFrameworks) {
    if (text == word) return framework;
  }
  return refuse_word(text, words_of_value(OptionId::kFramework));
}

Result<launcher::GpuView> parse_gpu_view(std::string_view text) {
  return one_of<launcher::GpuView>(text,
                                   {{"own", launcher::GpuView::kOwn}, {"node", launcher::GpuView::kNode}});
}

namespace {

Result<std::filesystem::path> absolute(std::string_view text, std::string_view current_directory) {
  const std::filesystem::path given(text);
  if (current_directory.empty() && given.is_relative())
    return refuse(in_quotes(text) +
                  " is in the current directory, which has been removed; give an absolute path");
  return std::filesystem::path(current_directory) / given;
}

}  // namespace

Result<std::string> parse_directory(std::string_view text, std::string_view current_directory) {
  if (text.empty()) return refuse("the name of the directory is empty");
  const std::filesystem::path given(text);
  DDL_ASSIGN(path, absolute(text, current_directory));
  // "link/.." is not "." when link is a symbolic link, so the kernel must resolve it.
  if (std::find(given.begin(), given.end(), "..") != given.end()) return path.string();
  std::string normal = path.lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

Result<std::pair<std::string, std::string>> parse_mca(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return refuse(in_quotes(text) + " has a name or a value, and it needs both");
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<LauncherChoice> parse_launcher(std::string_view text) {
  using enum LauncherChoice;
  return one_of<LauncherChoice>(
      text, {{"auto", kAuto}, {"local", kLocal}, {"ssh", kSsh}, {"srun", kSrun}, {"mpirun", kMpirun}});
}

Result<int> parse_port(std::string_view text) {
  constexpr int kMaxPort = 65535;
  return parse_count(text, 1, kMaxPort);
}

Result<int> parse_count(std::string_view text, int min, int max) {
  const bool whole = !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  const auto number = whole ? parse_integer(text) : std::nullopt;
  if (!number || *number < min || *number > max) {
    return refuse(in_quotes(text) + " is not a whole number from " + std::to_string(min) + " to " +
                  std::to_string(max));
  }
  return static_cast<int>(*number);
}

Result<std::string> parse_file(std::string_view text, std::string_view current_directory) {
  if (text.empty()) return refuse("the name of the file is empty");
  DDL_ASSIGN(path, absolute(text, current_directory));
  return path.string();
}

Result<std::vector<std::string>> parse_ssh_args(std::string_view text) {
  auto words = split_shell_words(text);
  if (!words) return fail(std::move(words.error()).during(in_quotes(text)));
  if (words->empty()) return refuse("it is empty");
  return words;
}

Result<std::vector<std::string>> parse_launch_agent(std::string_view text) {
  DDL_ASSIGN(words, parse_ssh_args(text));
  if (words.front().empty()) return refuse("the command is empty");
  const bool has_host = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("%h") != std::string::npos;
  });
  if (!has_host) return refuse(in_quotes(text) + " lacks %h, which stands for the name of the host");
  return words;
}

Result<std::string> parse_remote_path(std::string_view text) {
  constexpr std::string_view kPlain = "/._-+@:,=";
  const bool plain = std::all_of(text.begin(), text.end(), [kPlain](char c) {
    return is_alphanumeric(c) || kPlain.find(c) != std::string_view::npos;
  });
  if (text.empty() || !plain) {
    return refuse(in_quotes(text) + " is not a path of letters, digits and \"" + std::string(kPlain) + "\"");
  }
  if (text.starts_with('-')) return refuse(in_quotes(text) + " begins with a dash");
  if (!text.starts_with('/') && text.find('/') != std::string_view::npos) {
    return refuse(in_quotes(text) + " is neither an absolute path nor a bare name");
  }
  return std::string(text);
}

Result<std::string> parse_option(const std::string& text) {
  if (text.find_first_of("\r\n") != std::string::npos) return refuse("its value has several lines");
  if (!text.starts_with("-")) return refuse(in_quotes(text) + " is not an option, as in --licenses=x");
  return text;
}

Result<std::vector<std::string>> parse_interfaces(std::string_view text) {
  constexpr std::size_t kMaxName = 15;  // IFNAMSIZ less its zero
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trim(part);
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '/' && c != ':' && c != '\x7f';
    });
    if (name.empty() || name.size() > kMaxName || !plain) {
      return refuse(in_quotes(name) + " is not the name of a network interface");
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

ValueReader::ValueReader(const GivenOptions& given) : given_(given) {
  for (const WrongOption& one : given.wrong) errors_.push_back(one.error);
}

Status ValueReader::status() const {
  if (errors_.empty()) return {};
  if (errors_.size() == 1) return fail(errors_.front());
  std::vector<std::string> messages, hints;
  for (const Error& error : errors_) {
    messages.push_back(error.message());
    if (!error.hint().empty() && std::find(hints.begin(), hints.end(), error.hint()) == hints.end())
      hints.push_back(error.hint());
  }
  return refuse(join(messages, "; "), join(hints, "; "));
}

void ValueReader::check(Status step) {
  if (!step && errors_.empty()) errors_.push_back(std::move(step.error()));
}

void ValueReader::check(OptionId blamed, Status step) {
  if (!step) check(fail(std::move(step.error()).during(given_.where(blamed))));
}

void ValueReader::refuse_given(std::initializer_list<OptionId> ids, std::string_view text,
                               const std::string& hint) {
  for (const OptionId id : ids) {
    if (has(id)) refuse_once(id, display_name(entry_of(id)) + std::string(text), hint);
  }
}

std::string ValueReader::name_of(const OptionEntry& entry, const GivenValue& value) {
  const std::string usual = display_name(entry);
  const auto names = split(usual, '/');
  const bool is_usual = std::find(names.begin(), names.end(), value.name) != names.end();
  return value.name.empty() || is_usual ? usual : value.name + " (" + usual + ")";
}

void ValueReader::refuse_repeated(OptionId id) {
  const std::vector<GivenValue>& values = given_[id];
  refuse_once(id,
              name_of(entry_of(id), values.front()) + " was given " + std::to_string(values.size()) +
                  " times: " + texts_of(values),
              "give it once");
}

void ValueReader::refuse_value(OptionId id, const GivenValue& value, Error error) {
  const OptionEntry& entry = entry_of(id);
  const Error whole = error.during(name_of(entry, value)).during(value.where).with_hint(usage_line(entry));
  const bool is_new = std::none_of(errors_.begin(), errors_.end(),
                                   [&](const Error& one) { return one.message() == whole.message(); });
  if (is_new) errors_.push_back(whole);
}

void ValueReader::exclude(OptionId one, OptionId other) {
  if (!has(one) || !has(other)) return;
  refuse_once(
      other, display_name(entry_of(one)) + " and " + display_name(entry_of(other)) + " contradict each other",
      "omit one of them");
}

}  // namespace ddl::cli
