// How argv is split, and the parser after it, with arbitrary words: the input is split at zero bytes.
#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/given_options.h"
#include "fuzz/require.h"

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view input) {
  Words words;
  for (const std::string_view word : ddl::split(input, '\0')) words.emplace_back(word);
  return words;
}

void check_split(const Words& words) {
  const auto split = ddl::cli::split_argv(words);
  // The command is the end of the words, byte for byte.
  require(split.command.size() <= words.size());
  require(std::equal(split.command.rbegin(), split.command.rend(), words.rbegin()));
  // Each option begins with a word of ddlrun, and has at most one value.
  require(split.options.size() <= words.size() - split.command.size());
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
  check_split(words);
  check_parser(words);
  return 0;
}
