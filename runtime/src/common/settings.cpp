#include "runtime/src/common/settings.h"

#include <limits>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {
namespace {

namespace env = contract::env;

constexpr std::size_t kCacheLine = 64;
constexpr std::int64_t kMaxStagingBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMaxSpinMicroseconds = 10'000'000;

tl::unexpected<Error> bad_value(const char* name, const std::string& value, const std::string& wanted) {
  return fail(ErrorCode::kInvalidArgument, std::string(name) + "=" + value + ": " + wanted);
}

/// nullopt if one of the variables is missing or invalid: then hinted_world() judges the others.
std::optional<PmiParameters> pmi_parameters(const Environment& environment) {
  const auto number = [&environment](const char* name) -> std::optional<int> {
    const auto value = parse_integer(environment(name).value_or(""));
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*value);
  };
  const auto fd = number(env::kPmiFd), rank = number(env::kPmiRank), size = number(env::kPmiSize);
  if (!fd || !rank || !size || *rank >= *size) return std::nullopt;
  return PmiParameters{*fd, *rank, *size};
}

/// A launcher of another version may use another format: then there is no record.
std::optional<ExitRecordLocation> exit_record_location(const Environment& environment) {
  const std::string text = environment(env::kExitRecord).value_or("");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto fd = parse_integer(std::string_view(text).substr(0, colon));
  const auto offset = parse_integer(std::string_view(text).substr(colon + 1));
  if (!fd || !offset || *fd < 0 || *fd > std::numeric_limits<int>::max() || *offset < 0) return std::nullopt;
  return ExitRecordLocation{static_cast<int>(*fd), *offset};
}

}  // namespace

Result<Settings> Settings::read(const Environment& environment) {
  Settings settings;
  if (const auto text = environment(env::kTimeoutSeconds); text && !text->empty()) {
    const auto seconds = parse_number(*text);
    if (!seconds || *seconds < 0)
      return bad_value(env::kTimeoutSeconds, *text, "expected seconds, 0 for no deadline");
    settings.timeout_seconds = *seconds;
  }
  if (const auto text = environment(env::kStartTimeoutSeconds); text && !text->empty()) {
    const auto seconds = parse_number(*text);
    if (!seconds || *seconds < 0)
      return bad_value(env::kStartTimeoutSeconds, *text, "expected seconds, 0 for no deadline");
    settings.start_timeout_seconds = *seconds;
  }
  if (const auto text = environment(env::kSpinMicroseconds); text && !text->empty()) {
    const auto microseconds = parse_integer(*text);
    if (!microseconds || *microseconds < 0 || *microseconds > kMaxSpinMicroseconds) {
      return bad_value(env::kSpinMicroseconds, *text, "expected microseconds from 0 to 10000000");
    }
    settings.spin = std::chrono::microseconds(*microseconds);
  }
  if (const auto text = environment(env::kStagingBytes); text && !text->empty()) {
    const auto bytes = parse_integer(*text);
    if (!bytes || *bytes < std::int64_t{kCacheLine} || *bytes > kMaxStagingBytes ||
        *bytes % kCacheLine != 0) {
      return bad_value(env::kStagingBytes, *text, "expected a multiple of 64 from 64 to 67108864");
    }
    settings.staging_bytes = static_cast<std::size_t>(*bytes);
  }
  if (const auto text = environment(env::kAlgorithm); text && !text->empty()) {
    auto algorithms = AlgorithmOverrides::parse(*text);
    if (!algorithms) return bad_value(env::kAlgorithm, *text, algorithms.error().message());
    settings.algorithms = *algorithms;
  }
  if (const auto text = environment(env::kCpuOperations); text && !text->empty()) {
    const auto operations = contract::parse_cpu_operations(*text);
    if (!operations) return bad_value(env::kCpuOperations, *text, "expected ddl or mpi");
    settings.cpu_operations = *operations;
  }
  if (const auto text = environment(env::kMpi); text && !text->empty()) {
    if (text->find('/') != std::string::npos || text->front() == '.')
      return bad_value(env::kMpi, *text, "expected the name of an MPI, such as openmpi or mpich");
    settings.mpi = *text;
  }
  if (const auto text = environment(env::kMpiFinalize); text && !text->empty()) {
    if (*text != "0" && *text != "1") return bad_value(env::kMpiFinalize, *text, "expected 0 or 1");
    settings.finalizes_mpi = *text == "1";
  }
  if (const auto text = environment(env::kExchange); text && !text->empty()) {
    const auto exchange = ExchangeConfig::parse(*text);
    if (!exchange) {
      return bad_value(env::kExchange, *text,
                       "expected flat, groups, or how many ranks make a group, from 2 to 1024");
    }
    settings.exchange = *exchange;
  }
  if (const auto text = environment(env::kAllowSingleton); text && !text->empty()) {
    if (*text != "0" && *text != "1") return bad_value(env::kAllowSingleton, *text, "expected 0 or 1");
    settings.allow_singleton = *text == "1";
  }
  if (const auto text = environment(env::kNetworkInterfaces); text && !text->empty()) {
    for (const std::string_view name : split(*text, ',')) {
      if (trim(name).empty()) {
        return bad_value(env::kNetworkInterfaces, *text, "expected names of interfaces, separated by commas");
      }
      settings.network_interfaces.emplace_back(trim(name));
    }
  }
  if (const auto text = environment(env::kSocketsPerPeer); text && !text->empty()) {
    const auto sockets = parse_integer(*text);
    if (!sockets || *sockets < 1 || *sockets > kMaxSocketsPerPeer)
      return bad_value(env::kSocketsPerPeer, *text, "expected a number from 1 to 8");
    settings.sockets_per_peer = static_cast<int>(*sockets);
  }
  if (const auto text = environment(env::kJobKeyFd); text && !text->empty()) {
    const auto fd = parse_integer(*text);
    if (!fd || *fd < 0 || *fd > std::numeric_limits<int>::max())
      return bad_value(env::kJobKeyFd, *text, "expected the number of a descriptor");
    settings.job_key_fd = static_cast<int>(*fd);
  }
  if (const auto text = environment(env::kVerbose); text && !text->empty()) {
    if (*text != "0" && *text != "1") return bad_value(env::kVerbose, *text, "expected 0 or 1");
    settings.verbose = *text == "1";
  }
  settings.exit_record = exit_record_location(environment);
  settings.report_start = environment(env::kReportStart).value_or("") == "1";
  settings.module_directory = environment(env::kModuleDirectory).value_or("");
  if constexpr (kFaultInjection) {
    if (const auto text = environment(env::kFault); text && !text->empty()) {
      settings.fault = FaultPlan::parse(*text);
      if (!settings.fault)
        return bad_value(env::kFault, *text, "expected point:rank:n, such as allreduce.after_publish:2:1");
    }
  }
  settings.pmix_promised =
      environment(env::kPmixNamespace).has_value() && environment(env::kPmixRank).has_value();
  settings.pmi = pmi_parameters(environment);
  settings.several_started = hinted_world(environment);
  return settings;
}

std::optional<ExchangeConfig> ExchangeConfig::parse(std::string_view text) {
  if (text == "flat") return ExchangeConfig{Way::kFlat, 0};
  if (text == "groups") return ExchangeConfig{Way::kGroups, 0};
  const auto width = parse_integer(text);
  if (!width || *width < 2 || *width > kMaxMembers) return std::nullopt;
  return ExchangeConfig{Way::kGroups, static_cast<int>(*width)};
}

}  // namespace ddl::runtime
