#include "cli/srun_options.h"

namespace ddl::cli {

namespace {

constexpr OptionId kBeyondSrun[] = {
    OptionId::kTimeout,           OptionId::kKillGrace,      OptionId::kReportBindings,
    OptionId::kStrictBind,        OptionId::kStartTimeout,   OptionId::kMemBind,
    OptionId::kNetworkInterfaces, OptionId::kOutputFilename, OptionId::kPrefixTimestamp,
};

}  // namespace

std::optional<CommandLineError> refuse_beyond_srun(const GivenOptions& given) {
  for (const OptionId id : kBeyondSrun) {
    if (!given.has(id)) continue;
    return CommandLineError{
        given.origin(id) + display_name(entry_of(id)) + " is what ddlrun does, and srun cannot",
        "omit it, or omit --launcher srun"};
  }
  return std::nullopt;
}

}  // namespace ddl::cli
