// The values of options: each parser turns one text into a value or a sentence that states the error.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/options/given_options.h"
#include "cli/options/option_table.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "net/address.h"
#include "report/job_record.h"
#include "report/metrics.h"

namespace ddl::cli {

/// About three years; a larger value is regarded as a typing error.
inline constexpr double kMaxSeconds = 1e8;

/// 'text': as messages quote what was given.
std::string in_quotes(std::string_view text);

/// "'text' is neither a nor b", "'text' is not one of a, b, c".
tl::unexpected<Error> refuse_word(std::string_view text, const std::vector<std::string>& words);

/// The words that the value of an option may be, of options for which --help has no room for them; empty for others.
std::vector<std::string> words_of_value(OptionId id);

/// The value that belongs to the word text. Error: text is none of the words.
template <class T>
Result<T> one_of(std::string_view text, std::initializer_list<std::pair<std::string_view, T>> values) {
  std::vector<std::string> words;
  for (const auto& [word, value] : values) {
    if (text == word) return value;
    words.emplace_back(word);
  }
  return refuse_word(text, words);
}

/// A whole number from 1 to launcher::kMaxRanks.
Result<int> parse_rank_count(std::string_view text);
/// Two such numbers or more, separated by commas, all of them different.
Result<std::vector<int>> parse_sizes(std::string_view text);
Result<report::ScalingKind> parse_scaling_kind(std::string_view text);
Result<report::MetricsDetail> parse_metrics_detail(std::string_view text);
/// "9400", of 127.0.0.1, or an address with a port, which may be 0.
Result<net::SocketAddress> parse_listen_address(std::string_view text);
/// Names separated by commas.
Result<std::vector<std::string>> parse_user_names(std::string_view text);
/// As parse_rank_count; for words of torchrun, such as "gpu", the error says what to write.
Result<int> parse_ranks_per_node(std::string_view text);
/// --nnodes: "4" is {4, 4}, "1:4" is {1, 4}; from 1 to kMaxHosts.
Result<std::pair<int, int>> parse_host_counts(std::string_view text);
/// --elastic: also the word for ranks that go on, which is an error that says what there is instead.
Result<launcher::ElasticMode> parse_elastic_mode(std::string_view text);
Result<launcher::ElasticUnit> parse_elastic_unit(std::string_view text);
/// Seconds from MIN=MAX, each from 1 to 3600 as in horovodrun.
Result<std::pair<double, double>> parse_cooldown(std::string_view text);
/// A finite number of seconds up to kMaxSeconds; zero only if zero_is_allowed.
Result<double> parse_seconds(std::string_view text, bool zero_is_allowed);
/// --metrics-interval: not so often that to collect is what the hosts do.
Result<double> parse_metrics_interval(std::string_view text);
Result<launcher::StdinTarget> parse_stdin_target(std::string_view text);
/// NAME or NAME=VALUE. Names are letters, digits and _.
Result<launcher::EnvironmentExport> parse_export(std::string_view text);
/// "ddl" or "mpi", as the variable that libddl reads.
Result<launcher::EnvironmentExport> parse_cpu_operations(std::string_view text);
Result<launcher::EnvironmentExport> parse_gpu_operations(std::string_view text);
/// "64", in MiB: the variable that libddl reads, in bytes.
Result<launcher::EnvironmentExport> parse_fusion_threshold(std::string_view text);
/// Whole seconds: the variable that Horovod reads.
Result<launcher::EnvironmentExport> parse_gloo_timeout(std::string_view text);
Result<launcher::Framework> parse_framework(std::string_view text);
Result<launcher::GpuView> parse_gpu_view(std::string_view text);
Result<std::string> not_empty(const std::string& text);
/// An absolute path; a relative one starts at current_directory, and is refused if that is "". An empty one is refused.
Result<std::string> parse_directory(std::string_view text, std::string_view current_directory);

/// Name and value of a parameter of Open MPI, from NAME=VALUE.
Result<std::pair<std::string, std::string>> parse_mca(std::string_view text);
Result<launcher::LauncherChoice> parse_launcher(std::string_view text);
/// 1 to 65535.
Result<int> parse_port(std::string_view text);
/// A whole number from min to max, in decimal; leading zeros are accepted.
Result<int> parse_count(std::string_view text, int min, int max);
/// The same.
Result<std::string> parse_file(std::string_view text, std::string_view current_directory);
/// Words for ssh. Error: quotes that do not match, or no word at all.
Result<std::vector<std::string>> parse_ssh_args(std::string_view text);
/// The words of a command, one of which has %h.
Result<std::vector<std::string>> parse_launch_agent(std::string_view text);
/// An absolute path or a bare name, of letters, digits and "/._-+@:,=": every shell reads it as one word.
Result<std::string> parse_remote_path(std::string_view text);
/// "--label": an option of another program, as one word.
Result<std::string> parse_option(const std::string& text);
/// Names of interfaces, separated by commas.
Result<std::vector<std::string>> parse_interfaces(std::string_view text);

/// Applies the parsers to the options that were given, one by one. Keeps every wrong value, so that all are answered at
/// once. What contradicts each other or is missing it keeps only if nothing was wrong before: it may follow from that.
class ValueReader {
 public:
  explicit ValueReader(const GivenOptions& given);

  bool has(OptionId id) const { return given_.has(id); }
  const GivenOptions& given() const { return given_; }
  /// What is wrong, in one sentence for each.
  Status status() const;
  std::size_t num_errors() const { return errors_.size(); }
  /// Keeps the error of a step, unless there is one already.
  void check(Status step);
  /// The same; the option that is to blame adds its place in a file.
  void check(OptionId blamed, Status step);
  void refuse_once(std::string message, std::string hint) {
    check(refuse(std::move(message), std::move(hint)));
  }
  void refuse_once(OptionId blamed, std::string message, std::string hint) {
    check(blamed, refuse(std::move(message), std::move(hint)));
  }

  /// Refuses each of the options that was given; the text follows its name.
  void refuse_given(std::initializer_list<OptionId> ids, std::string_view text, const std::string& hint);

  /// Sets the target if the option was given, to what parse makes of its text and args; refuses more than one value.
  template <class Parse, class T, class... Args>
  void take(OptionId id, Parse parse, T& target, const Args&... args) {
    const std::vector<GivenValue>& values = given_[id];
    if (values.empty()) return;
    if (values.size() > 1) refuse_repeated(id);
    target = value_of(id, values.front(), parse(values.front().text, args...));
  }
  /// One of the option's values; T{} if it is refused.
  template <class T>
  T value_of(OptionId id, const GivenValue& value, Result<T> parsed) {
    if (parsed) return std::move(*parsed);
    refuse_value(id, value, std::move(parsed.error()));
    return T{};
  }
  /// Refuses the two options together.
  void exclude(OptionId one, OptionId other);

 private:
  /// "--nproc-per-node (--ranks-per-node)": the spelling that was typed, if it is not the option's own.
  static std::string name_of(const OptionEntry& entry, const GivenValue& value);
  void refuse_repeated(OptionId id);
  void refuse_value(OptionId id, const GivenValue& value, Error error);

  const GivenOptions& given_;
  std::vector<Error> errors_;
};

}  // namespace ddl::cli
