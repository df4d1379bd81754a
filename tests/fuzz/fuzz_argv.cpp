// The argv pre-pass and the parser after it, with arbitrary words: the input is split at zero bytes.
#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "cli/options/given_options.h"
#include "cli/options/request.h"
#include "fuzz/require.h"

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view input) {
  Words words;
  for (const std::string_view word : ddl::split(input, '\0')) words.emplace_back(word);
  return words;
}

void check_prepass(const Words& words) {
  const auto split = ddl::cli::split_argv(words);
  // The command is the end of the words, byte for byte.
  require(split.command.size() <= words.size());
  require(std::equal(split.command.rbegin(), split.command.rend(), words.rbegin()));
  // A word of ddlrun becomes one word, or an option and its value; no other words are added.
  require(split.options.size() <= 2 * (words.size() - split.command.size()));
  // The pre-pass does not change its own result, except for a value "--" (of "-np=--"), which would end the options.
  if (std::find(split.options.begin(), split.options.end(), "--") != split.options.end()) return;
  Words again = split.options;
  again.emplace_back("--");
  again.insert(again.end(), split.command.begin(), split.command.end());
  const auto second = ddl::cli::split_argv(again);
  require(second.options == split.options && second.command == split.command);
}

void check_parser(const Words& words) {
  const auto request = ddl::cli::parse_command_line(words, {"/home/me", 4});
  if (!request) {
    require(!request.error().message().empty() && !request.error().hint().empty());
    return;
  }
  const bool has_job =
      request->action == ddl::cli::Action::kRun || request->action == ddl::cli::Action::kDryRun;
  if (!has_job) return;
  const auto& job = request->job;
  require(!job.command.empty() && !job.command.front().empty());
  require(job.num_ranks >= 1 && job.workdir.starts_with('/'));
  require(job.timeout_seconds >= 0 && job.kill_grace_seconds >= 0);
  // "--" before the command changes nothing.
  Words marked(words.begin(), words.end() - static_cast<std::ptrdiff_t>(job.command.size()));
  if (marked.empty() || marked.back() != "--") marked.emplace_back("--");
  marked.insert(marked.end(), job.command.begin(), job.command.end());
  const auto same = ddl::cli::parse_command_line(marked, {"/home/me", 4});
  require(same && same->job.command == job.command && same->job.num_ranks == job.num_ranks);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Words words = words_of({reinterpret_cast<const char*>(data), size});
  check_prepass(words);
  check_parser(words);
  return 0;
}
