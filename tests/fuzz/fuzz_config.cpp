// The reader of --config-file with arbitrary text, alone and as part of a command line. A refusal names the file and
// a line.
#include <cstdint>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/given_options.h"
#include "fuzz/require.h"

namespace {

bool names_line(const std::string& text) {
  constexpr std::string_view kFile = "f.yaml:";
  return text.starts_with(kFile) && text.size() > kFile.size() && text[kFile.size()] >= '1' &&
         text[kFile.size()] <= '9';
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto given = ddl::cli::read_config(text, "f.yaml");
  if (!given) {
    require(names_line(given.error().message()));
    require(!given.error().hint().empty());
    return 0;
  }
  for (std::size_t id = 0; id < static_cast<std::size_t>(ddl::cli::OptionId::kCount); ++id) {
    for (const ddl::cli::GivenValue& value : (*given)[static_cast<ddl::cli::OptionId>(id)]) {
      require(names_line(value.where));
      require(value.text.find('\0') == std::string::npos);
    }
  }
  const ddl::cli::CommandLineContext context{"/home/me", 4, "head",
                                             [&text](const std::string& path) -> ddl::Result<std::string> {
                                               if (path == "f.yaml") return text;
                                               return std::string("n1 slots=2\n");
                                             }};
  const std::vector<std::string> words = {"--config-file", "f.yaml", "./train"};
  const auto request = ddl::cli::parse_command_line(words, context);
  require(request || !request.error().message().empty());
  return 0;
}
