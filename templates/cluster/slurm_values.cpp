#include "templates/cluster/slurm_values.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ddl::templates {
namespace {

/// Digits only, and so few that sums of them cannot overflow.
std::optional<std::int64_t> time_count(std::string_view text) {
  constexpr std::size_t kMaxDigits = 10;
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.size() > kMaxDigits) return std::nullopt;
  return parse_integer(text);
}

}  // namespace

std::optional<int> slurm_minutes(std::string_view text) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t seconds = 0;
  if (has_days) {
    const auto days = time_count(text.substr(0, dash));
    if (!days) return std::nullopt;
    seconds = *days * kDay;
    text.remove_prefix(dash + 1);
  }
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) return std::nullopt;
  // After days the first part is hours; otherwise its unit follows from the number of parts.
  std::int64_t unit = has_days || parts.size() == 3 ? kHour : kMinute;
  for (const std::string_view part : parts) {
    const auto count = time_count(part);
    if (!count) return std::nullopt;
    seconds += *count * unit;
    unit /= 60;
  }
  const std::int64_t minutes = (seconds + kMinute - 1) / kMinute;
  if (minutes > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(minutes);
}

std::optional<std::string> slurm_time_of(std::string_view text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"days", 86400}, {"day", 86400},  {"d", 86400},   {"hours", 3600}, {"hour", 3600},
      {"h", 3600},     {"minutes", 60}, {"minute", 60}, {"min", 60},     {"m", 60},
      {"seconds", 1},  {"sec", 1},      {"s", 1}};
  std::int64_t seconds = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto count = digits == 0 ? std::nullopt : time_count(text.substr(0, digits));
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& one) {
      return one.first == text.substr(0, letters);
    });
    if (!count || unit == std::end(kUnits)) return std::nullopt;
    seconds += *count * unit->second;
    text.remove_prefix(letters);
  }
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const auto two_digits = [](std::int64_t number) {
    return (number < 10 ? ":0" : ":") + std::to_string(number);
  };
  const std::string days = seconds >= kDay ? std::to_string(seconds / kDay) + "-" : "";
  std::string time = days + std::to_string(seconds % kDay / kHour) + two_digits(seconds % kHour / kMinute) +
                     two_digits(seconds % kMinute);
  if (!slurm_minutes(time)) return std::nullopt;
  return time;
}

std::optional<std::int64_t> slurm_megabytes(std::string_view text) {
  constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
  const char unit = text.empty() ? '\0' : text.back();
  const bool has_unit = unit != '\0' && std::string_view("kKmMgGtT").find(unit) != std::string_view::npos;
  const auto number = parse_integer(has_unit ? text.substr(0, text.size() - 1) : text);
  if (!number || *number <= 0 || *number > kMaxNumber) return std::nullopt;
  switch (has_unit ? unit : 'M') {
    case 'k':
    case 'K': return (*number + 1023) / 1024;
    case 'g':
    case 'G': return *number * 1024;
    case 't':
    case 'T': return *number * 1024 * 1024;
    default: return *number;
  }
}

namespace {

bool is_slurm_count(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <std::size_t N>
bool is_one_of(const std::string_view (&words)[N], std::string_view text) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

/// sbatch passes over blanks behind a comma, and over nothing between two commas.
std::string_view without_blanks_in_front(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

/// "4096", "64G", "64GB"; 0 is all memory of a node.
bool is_memory(std::string_view text) {
  constexpr std::string_view kUnits[] = {"",   "K",  "M",   "G",   "T",   "KB", "MB",
                                         "GB", "TB", "KIB", "MIB", "GIB", "TIB"};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && is_one_of(kUnits, in_upper_case(text.substr(digits)));
}

/// "0-9", "1, 3, 5-11:2", each perhaps in brackets, with %4 behind or in them.
bool is_array(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::size_t limit = text.find('%');
  if (limit != std::string_view::npos && !is_slurm_count(text.substr(limit + 1))) return false;
  text = text.substr(0, limit);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto parts = split(text, ',');
  return text.find_first_not_of(',') != std::string_view::npos &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           if (part.empty()) return true;
           part = without_blanks_in_front(part);
           const std::size_t colon = part.find(':');
           const std::size_t dash = part.find('-');
           if (colon != std::string_view::npos && (dash > colon || !is_slurm_count(part.substr(colon + 1))))
             return false;
           part = part.substr(0, colon);
           if (dash == std::string_view::npos) return is_slurm_count(part);
           if (!is_slurm_count(part.substr(0, dash)) || !is_slurm_count(part.substr(dash + 1))) return false;
           return parse_integer(part.substr(0, dash)) <= parse_integer(part.substr(dash + 1));
         });
}

/// "4711", "4711_3", "4711_*", and with after also "4711+10".
bool is_job(std::string_view text) {
  text = text.substr(0, text.find('+'));
  const std::size_t task = text.find('_');
  if (task != std::string_view::npos && text.substr(task + 1) != "*" &&
      !is_slurm_count(text.substr(task + 1)))
    return false;
  return is_slurm_count(text.substr(0, task));
}

/// "afterok:4711:4712,singleton", with ? for any of them, in any case. A job without a word is Slurm's old form.
bool is_dependency(std::string_view text) {
  constexpr std::string_view kWords[] = {"AFTER",   "AFTERANY", "AFTERBURSTBUFFER", "AFTERCORR", "AFTERNOTOK",
                                         "AFTEROK", "EXPAND"};
  std::string list = in_upper_case(text);
  std::replace(list.begin(), list.end(), '?', ',');
  const auto conditions = split(list, ',');
  return std::all_of(conditions.begin(), conditions.end(), [&](std::string_view condition) {
    if (condition == "SINGLETON" || is_job(condition)) return true;
    const auto parts = split(condition, ':');
    return parts.size() > 1 && is_one_of(kWords, parts.front()) &&
           std::all_of(parts.begin() + 1, parts.end(), is_job);
  });
}

/// "USR2@120", "B:10", "R:SIGTERM@60".
bool is_signal(std::string_view text) {
  constexpr std::string_view kSignals[] = {"HUP",  "INT",  "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1",
                                           "USR2", "URG",  "CONT", "STOP", "TSTP", "TTIN", "TTOU", "XCPU",
                                           "CHLD", "PIPE", "SEGV", "TRAP", "ILL",  "FPE",  "BUS"};
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (colon == 0 || in_upper_case(text.substr(0, colon)).find_first_not_of("RB") != std::string::npos)
      return false;
    text.remove_prefix(colon + 1);
  }
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos && !is_slurm_count(text.substr(at + 1))) return false;
  const std::string name = in_upper_case(text.substr(0, at));
  return is_slurm_count(name) || is_one_of(kSignals, name.starts_with("SIG") ? name.substr(3) : name);
}

bool is_mail_type(std::string_view text) {
  constexpr std::string_view kTypes[] = {
      "NONE",          "BEGIN",          "END",          "FAIL",       "REQUEUE",
      "ALL",           "INVALID_DEPEND", "STAGE_OUT",    "TIME_LIMIT", "ARRAY_TASKS",
      "TIME_LIMIT_50", "TIME_LIMIT_80",  "TIME_LIMIT_90"};
  const auto words = split(text, ',');
  return !text.empty() && std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return word.empty() || is_one_of(kTypes, in_upper_case(without_blanks_in_front(word)));
  });
}

/// "4"; a sign in front is taken, too.
bool is_plain_count(std::string_view text) {
  return is_slurm_count(text.substr(text.starts_with('+') ? 1 : 0));
}

/// "2", "2-4", "1k"; newer Slurm also takes "1,3-5" and "2-8:2".
bool is_node_count(std::string_view text) {
  std::string list(text);
  std::replace_if(
      list.begin(), list.end(), [](char c) { return c == '-' || c == ':'; }, ',');
  const auto parts = split(list, ',');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    const bool has_unit =
        !part.empty() && std::string_view("kKmM").find(part.back()) != std::string_view::npos;
    return is_slurm_count(part.substr(0, part.size() - (has_unit ? 1 : 0)));
  });
}

/// Not "4;", "=4", "4gpus" or "a100:four". A word may be a type ("a100", "1g.10gb"), of which there is one then.
bool is_gpu_count(std::string_view text) {
  if (text.find_first_of(";= ") != std::string_view::npos) return false;
  const auto items = split(text, ',');
  return std::all_of(items.begin(), items.end(), [](std::string_view item) {
    const std::size_t colon = item.rfind(':');
    if (colon != std::string_view::npos) return is_slurm_count(item.substr(colon + 1));
    const bool has_digit = !item.empty() && item.front() >= '0' && item.front() <= '9';
    return !has_digit || is_slurm_count(item) || item.find('.') != std::string_view::npos;
  });
}

/// Of --gres: "gpu:4", "gpu:a100:4,nvme:1". Names without a count are taken.
bool is_gres(std::string_view text) {
  return text.find_first_of(";= ") == std::string_view::npos && !text.ends_with(':');
}

/// Names of accounts, partitions and qualities of service.
bool has_no_blank(std::string_view text) { return text.find_first_of(" \t") == std::string_view::npos; }

struct ValueRule {
  std::string_view option;
  bool (*is_right)(std::string_view);
  std::string_view wrong;  ///< after the quoted value
};

constexpr std::string_view kMemory = " is not a size of memory: a whole number of megabytes, or as in 64G";
constexpr std::string_view kNumber = " is not a whole number";
constexpr std::string_view kGpus = " is not a number of GPUs, as in 4 or a100:4";
constexpr std::string_view kNoBlanks = " has a blank, and no name in Slurm has one";
constexpr ValueRule kValueRules[] = {
    {"--mem", is_memory, kMemory},
    {"--mem-per-cpu", is_memory, kMemory},
    {"--mem-per-gpu", is_memory, kMemory},
    {"--array", is_array, " is not a list of tasks, as in 0-9, 1,3,5 or 0-99%4"},
    {"--dependency", is_dependency,
     " is not a condition of Slurm, as in afterok:4711, afterany:4711:4712 or singleton"},
    {"--signal", is_signal, " is not a signal and a time, as in USR2@120"},
    {"--mail-type", is_mail_type, " is not a list of events, as in END,FAIL or ALL"},
    {"--nodes", is_node_count, " is not a number of nodes, as in 2 or 2-4"},
    {"--ntasks", is_plain_count, kNumber},
    {"--ntasks-per-node", is_plain_count, kNumber},
    {"--ntasks-per-gpu", is_plain_count, kNumber},
    {"--ntasks-per-socket", is_plain_count, kNumber},
    {"--ntasks-per-core", is_plain_count, kNumber},
    {"--cpus-per-task", is_plain_count, kNumber},
    {"--cpus-per-gpu", is_plain_count, kNumber},
    {"--mincpus", is_plain_count, kNumber},
    {"--threads-per-core", is_plain_count, kNumber},
    {"--gpus", is_gpu_count, kGpus},
    {"--gpus-per-node", is_gpu_count, kGpus},
    {"--gpus-per-task", is_gpu_count, kGpus},
    {"--gpus-per-socket", is_gpu_count, kGpus},
    {"--gres", is_gres, " is not a list of resources, as in gpu:4 or gpu:a100:4"},
    {"--account", has_no_blank, kNoBlanks},
    {"--partition", has_no_blank, kNoBlanks},
    {"--qos", has_no_blank, kNoBlanks},
};

}  // namespace

std::string wrong_slurm_value(std::string_view option, std::string_view value) {
  for (const ValueRule& rule : kValueRules) {
    if (rule.option == option && !rule.is_right(value))
      return "'" + std::string(value) + "'" + std::string(rule.wrong);
  }
  return "";
}

std::string_view signal_of(std::string_view value) {
  value = value.substr(0, value.find('@'));
  const std::size_t colon = value.find(':');
  if (colon != std::string_view::npos) value.remove_prefix(colon + 1);
  if (value.starts_with("SIG")) value.remove_prefix(3);
  return value;
}

std::string_view shells_signal(std::string_view value) {
  const std::size_t colon = value.find(':');
  const bool is_shells =
      colon != std::string_view::npos && value.substr(0, colon).find('B') != std::string_view::npos;
  return is_shells ? signal_of(value) : "";
}

namespace {

constexpr std::int64_t kMaxGpus = 65536;

/// "gpu:a100:4(S:0,2),nvme:1" without the text in parentheses, where a comma separates sockets.
std::string without_places(std::string_view gres) {
  std::string text;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) text += c;
    if (c == ')' && depth > 0) --depth;
  }
  return text;
}

/// The last part of "gpu", "gpu:4", "gpu:a100" or "gpu:a100:4" is the count if it is a number; else there is one.
std::int64_t gres_count(std::string_view item) {
  const auto parts = split(item, ':');
  if (trim(parts.front()) != "gpu") return 0;
  if (parts.size() == 1) return 1;
  const auto count = parse_integer(trim(parts.back()));
  return count ? std::clamp<std::int64_t>(*count, 0, kMaxGpus) : 1;
}

}  // namespace

int gpus_of_gres(std::string_view gres) {
  std::int64_t sum = 0;
  const std::string text = without_places(gres);
  for (const std::string_view item : split(text, ',')) sum = std::min(sum + gres_count(item), kMaxGpus);
  return static_cast<int>(sum);
}

}  // namespace ddl::templates
