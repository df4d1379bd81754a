#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>

namespace ddl {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kPlain = "%+,-./:=@_^";
  bool plain = !word.empty();
  for (const char c : word) {
    plain = plain &&
            (std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos);
  }
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string time_limit_text(double seconds) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::general, 6);
  return std::string(text.data(), end.ptr) + " s";
}

std::string counted(std::int64_t count, std::string_view noun) {
  const char* plural = noun.ends_with('s') ? "es" : "s";
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : plural);
}

std::string list_of_numbers(const std::vector<int>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(std::to_string(numbers[first]));
    if (last > first) ranges.back() += "-" + std::to_string(numbers[last]);
    first = last + 1;
  }
  return join(ranges, ",");
}

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: three rows of the dynamic programme, rows by a, columns by b.
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& words) {
  // Longer than any name could be: not worth comparing.
  constexpr std::size_t kMaxLength = 64;
  const auto letters_of = [](std::string_view text) {
    std::string letters;
    for (const char c : text) {
      if (c != '-' && c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return letters;
  };
  if (word.empty() || word.size() > kMaxLength) return std::nullopt;
  const std::string wanted = letters_of(word);
  std::optional<std::string> nearest;
  int closest = std::numeric_limits<int>::max();
  for (const std::string& candidate : words) {
    const std::string letters = letters_of(candidate);
    const int distance = edit_distance(wanted, letters);
    if (distance >= closest || distance > static_cast<int>(std::max(wanted.size(), letters.size())) / 3)
      continue;
    closest = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string in_upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

std::string signal_text(int signal) {
  // sigabbrev_np(3) and sigdescr_np(3) would do, but glibc has them since 2.32.
  struct Row {
    int number;
    std::string_view name;
    std::string_view meaning;  // empty: it would say no more than the name
  };
  static constexpr Row kSignals[] = {
      {SIGHUP, "SIGHUP", ""},
      {SIGINT, "SIGINT", ""},
      {SIGQUIT, "SIGQUIT", ""},
      {SIGILL, "SIGILL", "illegal instruction"},
      {SIGTRAP, "SIGTRAP", "trace/breakpoint trap"},
      {SIGABRT, "SIGABRT", ""},
      {SIGBUS, "SIGBUS", "bus error"},
      {SIGFPE, "SIGFPE", "floating point exception"},
      {SIGKILL, "SIGKILL", ""},
      {SIGUSR1, "SIGUSR1", ""},
      {SIGSEGV, "SIGSEGV", "segmentation fault"},
      {SIGUSR2, "SIGUSR2", ""},
      {SIGPIPE, "SIGPIPE", "broken pipe"},
      {SIGALRM, "SIGALRM", "alarm clock"},
      {SIGTERM, "SIGTERM", ""},
      {SIGSTKFLT, "SIGSTKFLT", "stack fault"},
      {SIGCHLD, "SIGCHLD", "child exited"},
      {SIGCONT, "SIGCONT", ""},
      {SIGSTOP, "SIGSTOP", ""},
      {SIGTSTP, "SIGTSTP", ""},
      {SIGTTIN, "SIGTTIN", ""},
      {SIGTTOU, "SIGTTOU", ""},
      {SIGURG, "SIGURG", "urgent I/O condition"},
      {SIGXCPU, "SIGXCPU", "CPU time limit exceeded"},
      {SIGXFSZ, "SIGXFSZ", "file size limit exceeded"},
      {SIGVTALRM, "SIGVTALRM", "virtual timer expired"},
      {SIGPROF, "SIGPROF", "profiling timer expired"},
      {SIGWINCH, "SIGWINCH", "window changed"},
      {SIGIO, "SIGIO", "I/O possible"},
      {SIGPWR, "SIGPWR", "power failure"},
      {SIGSYS, "SIGSYS", "bad system call"},
  };
  for (const Row& row : kSignals) {
    if (row.number != signal) continue;
    return std::string(row.name) + (row.meaning.empty() ? "" : " (" + std::string(row.meaning) + ")");
  }
  return "signal " + std::to_string(signal);
}

}  // namespace ddl
